"""The benchmarks of the project. They measure ratios of two programs that run alternately."""
