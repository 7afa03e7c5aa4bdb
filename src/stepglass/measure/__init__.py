"""The clock, what it writes down, and what a device could do at best."""
