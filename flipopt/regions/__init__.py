"""Is the region of a class connected: samples joined by lines that stay in it."""

from flipopt.regions.connectivity import connectivity
from flipopt.regions.graph import Connectivity

__all__ = ["Connectivity", "connectivity"]
