"""One page that shows a run: a file to keep, or live while training goes on."""
