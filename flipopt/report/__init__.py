"""Plots of results, and self-contained pages. matplotlib is imported when one is drawn."""

from flipopt.report.audit import Contents, Section, characterise, write_report
from flipopt.report.borderline import draw_embedding, draw_instances, draw_profile
from flipopt.report.comparison import draw_comparison, write_page
from flipopt.report.disagreement import draw_curves, draw_disagreement
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
from flipopt.report.generative import draw_exploration
from flipopt.report.generator import Exploring, write_generator_report
from flipopt.report.homotopy import draw_path
from flipopt.report.lines import draw_line
from flipopt.report.plots import plot_flip, plot_flips
from flipopt.report.regions import draw_regions
from flipopt.report.tradeoff import draw_tradeoff

__all__ = [
    "Contents", "Exploring", "Section", "characterise", "draw_adversarial", "draw_alternate", "draw_ambiguity",
    "draw_comparison", "draw_curves", "draw_directions", "draw_disagreement", "draw_embedding", "draw_exploration",
    "draw_flips", "draw_influence", "draw_instances", "draw_line", "draw_path", "draw_profile", "draw_regions",
    "draw_taylor", "draw_tradeoff", "draw_trust", "plot_flip", "plot_flips", "write_generator_report", "write_page",
    "write_report",
]  # fmt: skip
