"""One module per log format. Each turns lines of text into records."""
