"""Heat maps of every ordered pair of digits for the shipped fully connected network, on its own 200 images."""

from __future__ import annotations

from pathlib import Path

import flipopt as fo
from flipopt.report import draw_profile


def draw(path: Path) -> None:
    shipped = fo.load_shipped("mnist-fcn")
    draw_profile(path, fo.borderline.profile(shipped.network, shipped.X, shipped.labels).named(shipped.classes))
