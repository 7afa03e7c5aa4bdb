"""What a log can show: one rule for each finding."""
