"""Measurements: speed, solvers, reproduction. A program run from a checkout (``python -m benchmarks --help``)."""
