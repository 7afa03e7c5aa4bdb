"""The project's benchmarks: ratios, both sides measured in turn in one run."""
