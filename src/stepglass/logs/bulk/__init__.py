"""Many lines at once, where they look alike."""
