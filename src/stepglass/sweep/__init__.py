"""Trains with all combinations of several settings, and compares the runs."""
