"""The clock, the run log and its records, the shapes of models, and the peak speed of devices."""
