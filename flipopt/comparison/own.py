"""A user's own network and points as a set of problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.comparison.runner import Entry, Instance
from flipopt.features.shipped import open_network, open_points
from flipopt.flips.many import closest_flip_points
from flipopt.problem import flip_problem
from flipopt.runs.fingerprint import fingerprint


@dataclass(frozen=True)
class OwnProblems:
    """Flips of some rows of a file: (row, source, target) of each, and where network and points are."""

    net: str
    data: str | None
    flips: tuple[tuple[int, int, int], ...]

    def identity(self) -> dict[str, str]:
        return {"network": fingerprint(_network(self.net)), "points": fingerprint(_points(self.net, self.data))}

    def entries(self) -> Sequence[Entry]:
        n, family = _network(self.net).n_inputs, Path(self.net).name
        return [Entry(family, f"row {row}, {i} to {j}", n) for row, i, j in self.flips]

    def make(self, name: str) -> Instance:
        entries = self.entries()
        k = [entry.name for entry in entries].index(name)
        row, i, j = self.flips[k]
        network = _network(self.net)
        return Instance(entries[k], flip_problem(network, _points(self.net, self.data)[row], (i, j)), network)


def own_problems(net: str, data: str | None, rows: int, target: str = "nearest") -> OwnProblems:
    """Flips of the first ``rows`` points of ``data`` (a shipped network's own points if None).

    ``target`` is a class, or nearest: the nearest of all classes as the batch solver finds it.
    """
    network, points = _network(net), _points(net, data)[:rows]
    i = np.asarray(network.predict(points))
    if target == "nearest":
        j = closest_flip_points(network, points, progress=True).classes[:, 1]
    elif target.isdigit() and int(target) < network.n_classes:
        j = np.full(len(points), int(target))
    else:
        raise InputError(f"--target: expected nearest or a class from 0 to {network.n_classes - 1}, found {target!r}")
    flips = tuple((k, int(i[k]), int(j[k])) for k in range(len(points)) if i[k] != j[k])
    if not flips:
        raise InputError(f"--target: expected a class that some point is not in, found {target!r}")
    return OwnProblems(net, data, flips)


_network = cache(open_network)


@cache
def _points(net: str, data: str | None) -> Array:
    return open_points(net, data, _network(net).n_inputs)
