"""The live report: a small local server that reads runs and never writes."""
