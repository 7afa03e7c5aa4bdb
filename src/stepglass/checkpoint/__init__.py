"""A checkpoint: its tensors, when it is due, and how it gets to disk."""
