"""The rules. Each module looks for one kind of finding in a log."""
