"""Engines: different ways to compute an update, one file each, with the same few methods."""
