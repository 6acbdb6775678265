"""Lines between points, and where they cross a boundary."""

from flipopt.paths.adaptive import Sampling
from flipopt.paths.bisection import BoundaryPoints, bisect
from flipopt.paths.crossings import Crossings, crossings
from flipopt.paths.line import Line

__all__ = ["BoundaryPoints", "Crossings", "Line", "Sampling", "bisect", "crossings"]
