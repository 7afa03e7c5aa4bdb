"""Output of findings as text or JSON, in several languages."""
