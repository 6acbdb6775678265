"""The batch solver: thousands of flip points at once."""

from flipopt.solvers.batch.options import Kinked, Small, Smooth, Start, Steps
from flipopt.solvers.batch.solver import Batch

__all__ = ["Batch", "Kinked", "Small", "Smooth", "Start", "Steps"]
