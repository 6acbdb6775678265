"""The batch solver: thousands of flip points at once."""

from flipopt.solvers.batch.points import Samples
from flipopt.solvers.batch.solver import Batch, BatchResult

__all__ = ["Batch", "BatchResult", "Samples"]
