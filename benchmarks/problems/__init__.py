"""The problems on which methods are compared: families with known answers, and trained networks.

Every problem is made from its name alone, in any process. Those of trained networks are flips of shipped images to the
nearest class, as the batch solver finds it, or to a class drawn by the image's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.problems.known import Known, ellipsoid, plane, spheres
from flipopt.comparison.runner import Entry, Instance
from flipopt.many import closest_flip_points
from flipopt.problem import flip_problem
from flipopt.shipped import load_shipped

BEST = Path(__file__).parent / "best.csv"
"""The best distances known; only a verified closer point changes it."""
KNOWN: dict[str, Callable[[int, int], Known]] = {"plane": plane, "ellipsoid": ellipsoid, "spheres": spheres}
SIZES = (2, 10, 50)
TRAINED = {"erf": "mnist-net1", "erf-deep": "mnist-net2", "erf-two": "cifar-200", "relu": "mnist-fcn"}
"""Families of trained networks, and the shipped network of each."""
FIRST_IMAGE = 40


@dataclass(frozen=True)
class BenchmarkProblems:
    """``known`` problems a family and size with known answers, ``images`` of each trained network."""

    known: int = 10
    images: int = 15

    def entries(self) -> Sequence[Entry]:
        """The families with known answers first."""
        made = [
            Entry(family, f"{family} {n} {seed}", n) for family in KNOWN for n in SIZES for seed in range(self.known)
        ]
        for family, name in TRAINED.items():
            n = load_shipped(name).network.n_inputs
            rows = range(FIRST_IMAGE, FIRST_IMAGE + self.images)
            made += [Entry(family, f"{family} {row} {kind}", n) for row in rows for kind in ("nearest", "random")]
        return made

    def make(self, name: str) -> Instance:
        """The problem of this name."""
        family, first, second = name.split()
        if family in KNOWN:
            case = known_case(name)
            problem = flip_problem(case.network, case.x, (0, 1))
            return Instance(Entry(family, name, len(case.x)), problem, case.network)
        shipped, row = load_shipped(TRAINED[family]), int(first)
        i, j = flip_of(TRAINED[family], row, second)
        problem = flip_problem(shipped.network, shipped.X[row], (i, j))
        return Instance(Entry(family, name, shipped.network.n_inputs), problem, shipped.network)

    def answers(self) -> dict[str, float]:
        """The distances that are known in closed form, or to rounding."""
        return {entry.name: known_case(entry.name).distance for entry in self.entries() if entry.family in KNOWN}


@cache
def known_case(name: str) -> Known:
    """A problem with a known answer."""
    family, n, seed = name.split()
    return KNOWN[family](int(n), int(seed))


@cache
def flip_of(network: str, row: int, kind: str) -> tuple[int, int]:
    """Source and target class of an image: the nearest class, or one drawn by the row's number."""
    shipped = load_shipped(network)
    i = int(shipped.network.predict(shipped.X[row]))
    if kind == "nearest":
        return i, int(closest_flip_points(shipped.network, shipped.X[row : row + 1]).classes[0, 1])
    return i, int(np.random.default_rng(row).choice([k for k in range(shipped.network.n_classes) if k != i]))
