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

from benchmarks.problems import cnn
from benchmarks.problems.known import Known, ellipsoid, plane, spheres
from flipopt.comparison.runner import Entry, Instance
from flipopt.features.shipped import load_shipped
from flipopt.flips.many import closest_flip_points
from flipopt.networks.protocol import Network
from flipopt.problem import flip_problem
from flipopt.runs.fingerprint import fingerprint

BEST = Path(__file__).parent / "best.csv"
"""The best distances known; only a verified closer point changes it."""
KNOWN: dict[str, Callable[[int, int], Known]] = {"plane": plane, "ellipsoid": ellipsoid, "spheres": spheres}
SIZES = (2, 10, 50)
TRAINED = {
    "erf": "mnist-net1",
    "erf-deep": "mnist-net2",
    "erf-two": "cifar-200",
    "relu": "mnist-fcn",
    "cnn": "mnist-fcn",
}
"""Families of trained networks, and the shipped network whose images each has; all but cnn have that network too."""
FIRST_IMAGE, MANY_INPUTS = 40, 500


@dataclass(frozen=True)
class BenchmarkProblems:
    """``known`` problems a family and size with known answers, ``images`` of each trained network; of those with many
    inputs, which take most solvers all their time, half as many."""

    known: int = 19
    images: int = 4

    def identity(self) -> dict[str, str]:
        """The trained networks and their images; the other problems follow from their names."""
        return {family: fingerprint(trained(family), load_shipped(name).X) for family, name in TRAINED.items()}

    def entries(self) -> Sequence[Entry]:
        """The families with known answers first."""
        made = [
            Entry(family, f"{family} {n} {seed}", n) for family in KNOWN for n in SIZES for seed in range(self.known)
        ]
        for family, name in TRAINED.items():
            n = load_shipped(name).X.shape[1]
            rows = range(FIRST_IMAGE, FIRST_IMAGE + (self.images if n < MANY_INPUTS else -(-self.images // 2)))
            made += [Entry(family, f"{family} {row} {kind}", n) for row in rows for kind in ("nearest", "random")]
        return made

    def make(self, name: str) -> Instance:
        """The problem of this name."""
        family, first, second = name.split()
        if family in KNOWN:
            case = known_case(name)
            problem = flip_problem(case.network, case.x, (0, 1))
            return Instance(Entry(family, name, len(case.x)), problem, case.network)
        network, x = trained(family), load_shipped(TRAINED[family]).X[int(first)]
        problem = flip_problem(network, x, flip_of(family, int(first), second))
        return Instance(Entry(family, name, len(x)), problem, network)

    def answers(self) -> dict[str, float]:
        """The distances that are known in closed form, or to rounding."""
        return {entry.name: known_case(entry.name).distance for entry in self.entries() if entry.family in KNOWN}


@cache
def known_case(name: str) -> Known:
    """A problem with a known answer."""
    family, n, seed = name.split()
    return KNOWN[family](int(n), int(seed))


def trained(family: str) -> Network:
    """The network of a family, in its own precision."""
    return cnn.network() if family == "cnn" else load_shipped(TRAINED[family]).network


@cache
def flip_of(family: str, row: int, kind: str) -> tuple[int, int]:
    """Source and target class of an image: the nearest class, or one drawn by the row's number."""
    network, x = trained(family), load_shipped(TRAINED[family]).X[row]
    i = int(network.predict(x))
    if kind == "nearest":
        return i, int(closest_flip_points(network, x[None]).classes[0, 1])
    return i, int(np.random.default_rng(row).choice([k for k in range(network.n_classes) if k != i]))
