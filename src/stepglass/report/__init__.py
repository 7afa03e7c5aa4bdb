"""A page that shows a run, as a file or live during training."""
