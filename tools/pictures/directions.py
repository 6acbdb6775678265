"""The directions that flip the shipped digits."""

from __future__ import annotations

from pathlib import Path

import flipopt as fo
from flipopt.report import draw_directions


def draw(path: Path) -> None:
    shipped = fo.load_shipped("mnist-net1")
    flips = fo.closest_flip_points(shipped.network, shipped.X)
    draw_directions(path, fo.explain.directions(flips, shipped.X, features=shipped.features))
