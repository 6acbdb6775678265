"""Plots of results. matplotlib is imported when one is drawn."""

from flipopt.report.paths import draw_path
from flipopt.report.pictures import draw_flips

__all__ = ["draw_flips", "draw_path"]
