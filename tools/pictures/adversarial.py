"""Attacks in a ball beside closest flips, on the shipped planes and ships."""

from __future__ import annotations

from pathlib import Path

import flipopt as fo
from flipopt.report import draw_adversarial


def draw(path: Path) -> None:
    shipped = fo.load_shipped("cifar-200")
    draw_adversarial(path, fo.explain.adversarial(shipped.network, shipped.X, radius=0.5))
