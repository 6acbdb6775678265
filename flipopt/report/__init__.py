"""Plots of results. matplotlib is imported when one is drawn."""

from flipopt.report.comparison import draw_comparison, write_page
from flipopt.report.paths import draw_path
from flipopt.report.pictures import draw_flips

__all__ = ["draw_comparison", "draw_flips", "draw_path", "write_page"]
