"""The clock, the run log and its records, and the peak speed of known devices."""
