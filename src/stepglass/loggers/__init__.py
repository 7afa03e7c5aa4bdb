"""Loggers for TensorBoard, wandb and trackio. They get their numbers from the run log."""
