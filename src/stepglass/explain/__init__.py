"""`stepglass explain`: what a training log says, what it hides, and what to change."""
