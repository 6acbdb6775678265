"""Plots of results. matplotlib is imported when one is drawn."""

from flipopt.report.comparison import draw_comparison, write_page
from flipopt.report.flips import draw_flips
from flipopt.report.homotopy import draw_path
from flipopt.report.lines import draw_line
from flipopt.report.regions import draw_regions

__all__ = ["draw_comparison", "draw_flips", "draw_line", "draw_path", "draw_regions", "write_page"]
