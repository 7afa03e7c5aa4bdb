"""Settings for a device, before, during and after a run."""
