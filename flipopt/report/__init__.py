"""Plots of results, and self-contained pages. matplotlib is imported when one is drawn."""

from flipopt.report.audit import Contents, Section, write_report
from flipopt.report.comparison import draw_comparison, write_page
from flipopt.report.flips import draw_flips
from flipopt.report.homotopy import draw_path
from flipopt.report.plots import plot_flip, plot_flips

__all__ = [
    "Contents",
    "Section",
    "draw_comparison",
    "draw_flips",
    "draw_path",
    "plot_flip",
    "plot_flips",
    "write_page",
    "write_report",
]
