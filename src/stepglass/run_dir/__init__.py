"""The folder of a run: its lock, its settings and its checkpoints."""
