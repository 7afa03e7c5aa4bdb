"""The models, one file each, read top to bottom."""
