"""Turns text into tokens, and tokens into batches."""
