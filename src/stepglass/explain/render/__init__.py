"""Findings as text and as JSON, in several languages."""
