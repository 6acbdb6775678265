"""The nearest of all classes of an input: which problems come first, can be given up, deserve a second look."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from flipopt.checks import Array
from flipopt.solvers.batch.sqp import Outcome

FLATTEST = 0.1
"""Curvature mu of the Lagrangian along the boundary that pruning reckons with: F falls by rho^2 |r|^2 / (2 mu) at most
where the KKT residual is rho."""


class Nearest:
    """Drops a problem once another one of its group is nearer than it can become, if the boundary is not too flat.

    At a distance |r| on the boundary with KKT residual rho, and a Lagrangian whose curvature along the boundary is at
    least mu, the minimum that the problem descends to is no nearer than |r| sqrt(1 - rho^2 / mu). With ``reach`` > 1
    the other one must be nearer by this factor. Then mu (``flattest``) may be bolder, and it need not be solved: once
    it is on the boundary, it only comes nearer.
    """

    def __init__(self, groups: Array, reach: float = 1.0, flattest: float = FLATTEST) -> None:
        self.groups, self.reach, self.flattest = groups, reach, flattest
        self.best = np.full(int(groups.max(initial=-1)) + 1, np.inf)

    def part(self, rows: Array) -> Self:
        """The same for the problems ``rows``; what is solved among them is known to all."""
        part = copy(self)
        part.groups = self.groups[rows]
        return part

    def solved(self, groups: Array, distance: Array) -> None:
        """Take note of problems that end at these distances, or nearer."""
        np.minimum.at(self.best, groups, distance)

    def __call__(self, live: Array, distance: Array, residual: Array, solved: Array) -> Array:
        groups = self.groups[live]
        known = solved if self.reach == 1.0 else distance > 0.0  # it is 0 before the boundary is met
        self.solved(groups[known], distance[known])
        floor = distance * np.sqrt(np.maximum(1 - residual**2 / self.flattest, 0.0))
        return np.asarray(floor > self.reach * self.best[groups])


def front(found: Outcome, distance: Array, groups: Array, close: float) -> Array:
    """The solved problems that are no farther than ``close`` times the nearest of their group."""
    left = np.flatnonzero(found.solved)
    least = np.full(int(groups.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, groups[left], distance[left])
    return left[distance[left] <= close * least[groups[left]]]


def waves(rows: Array, distance: Array, groups: Array) -> list[Array]:
    """The problems ``rows`` in the order to solve them in: the one of each group that is the nearest so far, then the
    others, which can be given up as soon as they are seen to be farther."""
    order = rows[np.lexsort((distance[rows], groups[rows]))]
    first = np.diff(groups[order], prepend=-1) > 0
    return [np.sort(order[first]), np.sort(order[~first])]
