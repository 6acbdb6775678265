"""The batch solver: thousands of flip points at once."""

from flipopt.solvers.batch.solver import Batch, BatchResult, Samples

__all__ = ["Batch", "BatchResult", "Samples"]
