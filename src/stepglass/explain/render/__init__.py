"""Findings as text, as JSON, and in four languages."""
