"""The project's benchmarks: ratios, both sides measured by turns in one run."""
