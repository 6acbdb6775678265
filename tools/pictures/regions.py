"""The graph of the ships among the shipped images of cifar-200, and a chain of lines inside."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flipopt as fo
from flipopt.report import draw_regions


def draw(path: Path) -> None:
    shipped = fo.load_shipped("cifar-200")
    c = fo.regions.connectivity(shipped.network, shipped.X, of=shipped.classes.index("ship"))
    a = c.least_connected
    apart = np.setdiff1d(np.arange(len(c)), [*c.adjacency[[a]].nonzero()[1], a])
    draw_regions(path, c, chain=c.chain(a, int(apart[-1])))
