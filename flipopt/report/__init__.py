"""Plots of results. matplotlib is imported when one is drawn."""

from flipopt.report.comparison import draw_comparison, write_page
from flipopt.report.explain import (
    draw_adversarial,
    draw_alternate,
    draw_ambiguity,
    draw_directions,
    draw_influence,
    draw_taylor,
    draw_trust,
)
from flipopt.report.flips import draw_flips
from flipopt.report.homotopy import draw_path

__all__ = [
    "draw_adversarial", "draw_alternate", "draw_ambiguity", "draw_comparison", "draw_directions", "draw_flips",
    "draw_influence", "draw_path", "draw_taylor", "draw_trust", "write_page",
]  # fmt: skip
