"""First-order estimates beside closest flips, on the shipped planes and ships: Figures 5 to 8 of 001."""

from __future__ import annotations

from pathlib import Path

import flipopt as fo
from flipopt.report import draw_taylor


def draw(path: Path) -> None:
    shipped = fo.load_shipped("cifar-200")
    flips = fo.closest_flip_points(shipped.network, shipped.X)
    draw_taylor(path, fo.explain.compare_taylor(fo.paths.taylor(shipped.network, shipped.X), flips, shipped.X))
