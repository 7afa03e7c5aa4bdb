"""TensorBoard, wandb and trackio, fed by the run log."""
