"""Every setting: what it is called, what it may be, and where its value comes from."""
