"""One module for each log format: lines of text to records."""
