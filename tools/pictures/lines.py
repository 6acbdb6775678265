"""Probabilities along lines between images, from an image to its flip point, and between two flip points."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flipopt as fo
from flipopt.report import draw_line


def draw(path: Path) -> None:
    shipped = fo.load_shipped("cifar-200")
    net, X = shipped.network.in_float64, shipped.X
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(len(X), 2, replace=False) for _ in range(300)])
    count = fo.paths.crossings(net, X[pairs[:, 0]], X[pairs[:, 1]], mode="adaptive").count
    typical, winding = pairs[np.flatnonzero(count == 1)[0]], pairs[count.argmax()]
    flips = fo.closest_flip_points(net, X[:2])
    ends = [
        (X[typical[0]], X[typical[1]]),
        (X[winding[0]], X[winding[1]]),
        (X[0], flips.x[0]),
        (flips.x[0], flips.x[1]),
    ]
    beyond = (0.0, 0.0, 0.5, 0.1)
    lines = [fo.paths.Line(net, a, b, more) for (a, b), more in zip(ends, beyond, strict=True)]
    titles = [
        "two images, as most are",
        f"two images, {count.max()} crossings",
        "an image (a) and its flip point (b)",
        "two flip points",
    ]
    draw_line(path, lines, shipped.classes, titles, mode="proved")
