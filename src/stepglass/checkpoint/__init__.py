"""Checkpoints: their tensors, when they are saved, and how they are written."""
