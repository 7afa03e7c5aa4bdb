"""Writes a trained model in the formats of other programs."""
