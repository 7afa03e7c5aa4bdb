"""The models. Each is one file that can be read from top to bottom."""
