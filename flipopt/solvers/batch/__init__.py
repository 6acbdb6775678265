"""The batch solver: thousands of flip points at once."""

from flipopt.solvers.batch.options import Kinked, Smooth, Start, Steps
from flipopt.solvers.batch.solver import Batch

__all__ = ["Batch", "Kinked", "Smooth", "Start", "Steps"]
