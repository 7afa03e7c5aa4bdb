"""Fast readers that decode many similar lines at once."""
