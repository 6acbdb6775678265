"""Lines between points, and where they cross a boundary."""

from flipopt.paths.taylor import TaylorEstimates, taylor

__all__ = ["TaylorEstimates", "taylor"]
