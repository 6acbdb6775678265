"""Distance and softmax as predictors of mistakes, on the shipped planes and ships."""

from __future__ import annotations

from pathlib import Path

import flipopt as fo
from flipopt.report import draw_trust


def draw(path: Path) -> None:
    shipped = fo.load_shipped("cifar-200")
    flips = fo.closest_flip_points(shipped.network, shipped.X)
    draw_trust(path, fo.explain.trust(flips, shipped.network, shipped.X, shipped.labels))
