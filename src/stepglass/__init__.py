"""Stepglass: train a GPT from scratch, and see where every millisecond went."""

__version__ = "0.1.0"
