"""The report, live: a small server on this machine that reads runs and never writes."""
