"""Ways to compute an update: each is one file behind the same few verbs."""
