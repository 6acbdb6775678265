"""The nearest of all classes of an input: which problems come first, can be given up, deserve a second look."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.protocol import linearize_rows
from flipopt.problem import FlipBatch
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.sqp import ON_BOUNDARY, Sight

FLATTEST = 0.1
"""Curvature mu of the Lagrangian along the boundary that pruning reckons with: F falls by rho^2 |r|^2 / (2 mu) at most
where the KKT residual is rho."""
SOFT_FLATTEST = 1.0
"""The same in softened networks, bolder: that of a flat boundary."""

ABOUT_TO_END, GAIN = 0.03, 1e-4
"""The KKT residual at which another look can be given up, and what it has to gain, relative to the distance."""


class Nearest:
    """Drops a problem once another one of its group is nearer than it can become, if the boundary is not too flat.

    At a distance |r| on the boundary with KKT residual rho, and a Lagrangian whose curvature along the boundary is at
    least mu, the minimum that the problem descends to is no nearer than |r| sqrt(1 - rho^2 / mu). The other one must be
    solved.
    """

    def __init__(self, groups: Array) -> None:
        self.groups = groups
        self.best = np.full(int(groups.max(initial=-1)) + 1, np.inf)

    def part(self, rows: Array) -> Self:
        """The same for the problems ``rows``; what is solved among them is known to all."""
        part = copy(self)
        part.groups = self.groups[rows]
        return part

    def solved(self, groups: Array, distance: Array) -> None:
        """Take note of problems that end at these distances, or nearer."""
        np.minimum.at(self.best, groups, distance)

    def __call__(self, sight: Sight) -> Array:
        groups = self.groups[sight.live]
        self.solved(groups[sight.solved], sight.distance[sight.solved])
        return np.asarray(sight.met & (_floor(sight, FLATTEST) > self.best[groups]))


class Known(Nearest):
    """Drops a problem of another look once it is about to end where nothing is gained over the ``distance`` (problems,)
    that the problems ``rows`` of its group have already."""

    def __init__(self, groups: Array, distance: Array, rows: Array) -> None:
        super().__init__(groups)
        self.solved(groups[rows], distance[rows])

    def __call__(self, sight: Sight) -> Array:
        enough = (1 - GAIN) * self.best[self.groups[sight.live]]
        return np.asarray(sight.met & (sight.residual <= ABOUT_TO_END) & (_floor(sight, FLATTEST) > enough))


class Hopeless(Nearest):
    """Drops a problem of a softened network that is much farther than another one of its group: by the factor
    ``reach`` on the boundary, or by ``approach`` on its way there.

    The other one need not be solved: once it is on the boundary, it only comes nearer. Problems in the mask ``kept``
    are never dropped.
    """

    def __init__(self, groups: Array, reach: float, approach: float, kept: Array) -> None:
        super().__init__(groups)
        self.reach, self.approach, self.kept = reach, approach, kept

    def part(self, rows: Array) -> Self:
        part = super().part(rows)
        part.kept = self.kept[rows]
        return part

    def __call__(self, sight: Sight) -> Array:
        groups = self.groups[sight.live]
        self.solved(groups[sight.met], sight.distance[sight.met])
        floor = np.where(sight.met, _floor(sight, SOFT_FLATTEST) / self.reach, sight.distance / self.approach)
        return np.asarray((floor > self.best[groups]) & ~self.kept[sight.live])


def _floor(sight: Sight, flattest: float) -> Array:
    """The least distance that can be expected where curvature is at least ``flattest``."""
    return np.asarray(sight.distance * np.sqrt(np.maximum(1 - sight.residual**2 / flattest, 0.0)))


def leading(batch: FlipBatch, found: Outcome, groups: Array, close: float) -> Array:
    """The problems whose boundary, by the network's linearisation at x, is no farther than ``close`` times the nearest
    of their group: a mask (problems,). The cost is counted in ``found``."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    if len(first) == len(batch):
        return np.ones(len(batch), dtype=bool)
    Y, pullback = linearize_rows(getattr(batch.network, "in_float32", batch.network), batch.X[first])
    each, (i, j) = np.arange(len(batch)), batch.classes.T
    V = np.zeros((len(batch), Y.shape[1]))
    V[each, i], V[each, j] = 1.0, -1.0
    shared = batch.setting
    slope = np.linalg.norm(pullback(V, group) * (~shared.frozen / np.sqrt(shared.weights)), axis=1)
    found.forward[first] += 1
    found.backward[:] += 1
    return _close(batch.leads(Y[group])[each, j] / np.maximum(slope, 1e-300), group, close)


def front(found: Outcome, distance: Array, groups: Array, close: float) -> Array:
    """The solved problems that are no farther than ``close`` times the nearest of their group."""
    left = np.flatnonzero(found.solved)
    return left[_close(distance[left], groups[left], close)]


def ties_will_do(batch: FlipBatch, groups: Array) -> bool:
    """Whether the nearest tie of i with any class is the nearest flip, so that third classes need no attention.

    On the way from x to a tie of i and j that is below a class k, k overtakes i: there is a nearer tie of i and k. So
    the nearest of all ties is below no class, if every class has its problem, x satisfies the bounds, and there is no
    margin to keep.
    """
    every = len(batch) == len(np.unique(groups)) * (batch.network.n_classes - 1)
    return every and batch.margin == 0 and np.array_equal(batch.clip(batch.X), batch.X)


def covered(batch: FlipBatch, found: Outcome, groups: Array) -> tuple[Array, Array]:
    """The problems that are the nearest of their group, but below a third class, and the problems of that class."""
    rows = waves(np.flatnonzero(found.solved & ~found.dropped), batch.distances(found.x), groups)[0]
    Y = batch.network.logits(found.x[rows])
    found.forward[rows] += 1
    relative = batch.take(rows).leads(Y) / np.maximum(1.0, np.abs(Y).max(axis=1))[:, None]
    relative[np.arange(len(rows)), batch.classes[rows, 1]] = np.inf
    below = relative.min(axis=1) < -ON_BOUNDARY
    group = np.unique(groups, return_inverse=True)[1]
    problem = np.empty((int(group.max(initial=-1)) + 1, batch.network.n_classes), dtype=np.int64)
    problem[group, batch.classes[:, 1]] = np.arange(len(batch))
    return rows[below], problem[group[rows], relative.argmin(axis=1)][below]


def _close(distance: Array, groups: Array, close: float) -> Array:
    """Which distances are at most ``close`` times the least of their group."""
    least = np.full(int(groups.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, groups, distance)
    return np.asarray(distance <= close * least[groups])


def waves(rows: Array, distance: Array, groups: Array) -> list[Array]:
    """The problems ``rows`` in the order to solve them in: the one of each group that is the nearest so far, then the
    others, which can be given up as soon as they are seen to be farther."""
    order = rows[np.lexsort((distance[rows], groups[rows]))]
    first = np.diff(groups[order], prepend=-1) > 0
    return [np.sort(order[first]), np.sort(order[~first])]
