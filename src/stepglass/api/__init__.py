"""What a notebook or a program calls."""
