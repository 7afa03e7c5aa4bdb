"""The folder of a run: whose it is, and which checkpoints are in it."""
