"""The nearest of all classes of an input: which problems come first, are given up, deserve another start.

Problems of one input form a group; nothing here looks beyond a group.
"""

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
where the KKT residual is rho. In softened networks it is 1, that of a flat boundary."""
GAIN = 1e-4
"""What a restart has to gain, relative to the distance."""


class Farther:
    """Gives a problem up once another one of its group is nearer than it can become, if the boundary is not too flat.

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

    def note(self, groups: Array, distance: Array) -> None:
        """Problems of these groups end at these distances, or nearer."""
        np.minimum.at(self.best, groups, distance)

    def too_far(self, distance: Array, fall: float) -> Array:
        """Which problems are farther than another one of their group even at the share ``fall`` of their distance."""
        return np.asarray(fall * distance > self.best[self.groups])

    def __call__(self, sight: Sight) -> Array:
        groups = self.groups[sight.live]
        self.note(groups[sight.solved], sight.distance[sight.solved])
        return np.asarray(sight.met & (_floor(sight, FLATTEST) > self.best[groups]))


class Fruitless(Farther):
    """Gives a restart up once it cannot gain anything over the ``distance`` (problems,) that the problems ``rows`` of
    its group have already."""

    def __init__(self, groups: Array, distance: Array, rows: Array) -> None:
        super().__init__(groups)
        self.note(groups[rows], distance[rows])

    def __call__(self, sight: Sight) -> Array:
        enough = (1 - GAIN) * self.best[self.groups[sight.live]]
        return np.asarray(sight.met & (_floor(sight, FLATTEST) > enough))


class Hopeless(Farther):
    """Gives a problem of a softened network up that is ``factor`` times as far as another one of its group; on its way
    to the boundary, twice that.

    The other one need not be solved: once it is on the boundary, it only comes nearer. Problems in the mask ``kept``
    are never given up.
    """

    def __init__(self, groups: Array, factor: float, kept: Array) -> None:
        super().__init__(groups)
        self.factor, self.kept = factor, kept

    def part(self, rows: Array) -> Self:
        part = super().part(rows)
        part.kept = self.kept[rows]
        return part

    def __call__(self, sight: Sight) -> Array:
        groups = self.groups[sight.live]
        self.note(groups[sight.met], sight.distance[sight.met])
        floor = np.where(sight.met, _floor(sight, 1.0), sight.distance / 2)
        return np.asarray((floor > self.factor * self.best[groups]) & ~self.kept[sight.live])


def _floor(sight: Sight, flattest: float) -> Array:
    """The least distance that can be expected where curvature is at least ``flattest``."""
    return np.asarray(sight.distance * np.sqrt(np.maximum(1 - sight.residual**2 / flattest, 0.0)))


def leading(batch: FlipBatch, groups: Array, close: float) -> tuple[Array, Outcome]:
    """The problems whose boundary, by the network's linearisation at x, is no farther than ``close`` times the nearest
    of their group: a mask (problems,); and what that cost."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    cost = Outcome.starting(batch.X)
    cost.forward[first] += 1
    cost.backward += 1
    Y, pullback = linearize_rows(getattr(batch.network, "in_float32", batch.network), batch.X[first])
    each, j, setting = np.arange(len(batch)), batch.classes[:, 1], batch.setting
    slope = np.linalg.norm(pullback(batch.tie_weights, group) * (~setting.frozen / np.sqrt(setting.weights)), axis=1)
    distance = np.abs(batch.leads(Y[group])[each, j]) / np.maximum(slope, 1e-300)
    return _within(distance, group, close), cost


def front(found: Outcome, distance: Array, groups: Array, close: float) -> Array:
    """The solved problems that are no farther than ``close`` times the nearest of their group."""
    solved = np.flatnonzero(found.solved)
    return solved[_within(distance[solved], groups[solved], close)]


def waves(rows: Array, distance: Array, groups: Array) -> list[Array]:
    """The problems ``rows`` in the order to solve them in: the one of each group that is the nearest so far, then the
    others, which can be given up as soon as they are seen to be farther."""
    order = rows[np.lexsort((distance[rows], groups[rows]))]
    first = np.diff(groups[order], prepend=-1) > 0
    return [np.sort(order[first]), np.sort(order[~first])]


def ties_will_do(batch: FlipBatch, groups: Array) -> bool:
    """Whether the nearest tie of i with any class is the nearest flip, so that third classes need no attention.

    On the way from x to a tie of i and j that is below a class k, k overtakes i: there is a nearer tie of i and k. So
    the nearest of all ties is below no class, if every class has its problem, x satisfies the bounds, and there are no
    margin to keep and no constraints that x may violate.
    """
    every = len(batch) == len(np.unique(groups)) * (batch.network.n_classes - 1)
    plain = batch.margin == 0 and batch.beyond == 0 and not batch.setting.constraints
    return every and plain and np.array_equal(batch.clip(batch.X), batch.X)


def covered(batch: FlipBatch, found: Outcome, groups: Array) -> tuple[Array, Array]:
    """The problems that are the nearest of their group, but below a third class, and the problems of that class."""
    rows = waves(np.flatnonzero(found.solved & ~found.dropped), found.distances(batch), groups)[0]
    Y = batch.network.logits(found.x[rows])
    relative = batch.take(rows).leads(Y) / np.maximum(np.abs(Y).max(axis=1), 1e-300)[:, None]
    relative[np.arange(len(rows)), batch.classes[rows, 1]] = np.inf
    below = relative.min(axis=1) < -ON_BOUNDARY
    group = np.unique(groups, return_inverse=True)[1]
    problem = np.empty((int(group.max(initial=-1)) + 1, batch.network.n_classes), dtype=np.int64)
    problem[group, batch.classes[:, 1]] = np.arange(len(batch))
    return rows[below], problem[group[rows], relative.argmin(axis=1)][below]


def _within(distance: Array, groups: Array, close: float) -> Array:
    """Which distances are at most ``close`` times the least of their group."""
    return np.asarray(distance <= close * nearest(distance, groups)[groups])


def nearest(distance: Array, groups: Array) -> Array:
    """The least distance in every group, (groups,); infinite where there is none."""
    least = np.full(int(groups.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, groups, distance)
    return least
