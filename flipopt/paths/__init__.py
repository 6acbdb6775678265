"""Lines between points, where they cross a boundary, and how far it seems from one of them."""

from flipopt.paths.adaptive import Sampling
from flipopt.paths.bisection import BoundaryPoints, bisect
from flipopt.paths.crossings import Crossings, crossings
from flipopt.paths.line import Line
from flipopt.paths.proving import Proving
from flipopt.paths.taylor import TaylorEstimates, taylor

__all__ = [
    "BoundaryPoints",
    "Crossings",
    "Line",
    "Proving",
    "Sampling",
    "TaylorEstimates",
    "bisect",
    "crossings",
    "taylor",
]
