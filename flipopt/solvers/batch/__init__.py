"""The batch solver: thousands of flip points at once."""

from flipopt.solvers.batch.solver import Batch
from flipopt.solvers.batch.starts import Samples
from flipopt.solvers.batch.verdict import BatchResult

__all__ = ["Batch", "BatchResult", "Samples"]
