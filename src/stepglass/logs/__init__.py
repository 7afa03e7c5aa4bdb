"""Reads training logs of many trainers: one module per format turns text into run-log records."""
