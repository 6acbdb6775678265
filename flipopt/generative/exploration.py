"""GB-RRT, Algorithm 2 of Jeon, Jeong and Choi (003): a tree of samples inside a generative region."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_whole
from flipopt.common.errors import InputError
from flipopt.common.later import later
from flipopt.common.progress import Advance, progress_bar
from flipopt.common.tables import Table
from flipopt.generative.generator import Generator
from flipopt.generative.regions import POINTS, Region
from flipopt.runs.threads import one_blas_thread

SLACK = 1e-6
"""Line 6 of Algorithm 2 asks for a distance > delta, but the parent is at delta exactly, so in exact arithmetic nothing
would be accepted: >= delta (1 - SLACK) is what is meant."""
STEP = 0.08
"""delta by default, as a share of interval sqrt(d): 0.8 at d = 100."""
BLOCK = 2048
"""Nodes that are compared with points in one product."""


@dataclass(frozen=True, eq=False)
class Exploration:
    """What GB-RRT has found.

    Attributes
    ----------
    region
        The region that was explored.
    accepted
        Samples in it (k, d), float64; the first is the query, Q_N of Algorithm 2.
    tree
        For each sample the index of the one that it was expanded from, (k,); -1 for the query.
    rejected
        Expansions that ended outside the region, (r, d): Z_reject of section 4.
    crowded, left
        How many ended within delta of another sample, and how many, with segments checked, left the region on the way.
    connected
        Whether a sample is known to be joined to the query inside the region, by the segments of the tree, (k,): these
        were looked at, or the region is convex.
    evaluations
        Rows that the network was evaluated for.
    interval, delta
        I and the step of Algorithm 2.
    """

    region: Region
    accepted: Array = field(repr=False)
    tree: Array = field(repr=False)
    rejected: Array = field(repr=False)
    crowded: int
    left: int
    connected: Array = field(repr=False)
    evaluations: int
    interval: float
    delta: float

    @property
    def expansions(self) -> int:
        """N of Algorithm 2."""
        return len(self.accepted) - 1 + len(self.rejected) + self.crowded + self.left

    @cached_property
    def distances(self) -> Array:
        """Of the samples from the query, (k,)."""
        return np.asarray(np.linalg.norm(self.accepted - self.region.query, axis=1))

    @cached_property
    def verified(self) -> Array:
        """Whether each sample's signs are those of the query by an independent computation in float64, (k,)."""
        return self.region.check(self.accepted)

    @property
    def reach(self) -> tuple[float, float]:
        """Mean and largest distance of samples from the query."""
        found = self.distances[1:]
        return (float(found.mean()), float(found.max())) if len(found) else (0.0, 0.0)

    @property
    def nodes(self) -> Nodes:
        """The samples as a table."""
        return Nodes(self.tree, self.distances, self.connected, self.verified, self.accepted)

    def images(self, most: int | None = None) -> Array:
        """Images of the samples, or of ``most`` of them at even steps, (images, ...)."""
        every = np.arange(len(self.accepted))
        few = every if most is None else np.unique(np.linspace(0, every[-1], min(most, len(every))).astype(int))
        return self.region.generator.forward(self.accepted[few])

    def summary(self) -> str:
        """In plain words."""
        mean, most = self.reach
        way = f", {self.left:,} left it on the way" if self.left else ""
        joined = "" if self.connected.all() else "; whether the segments between them stay inside was not looked at"
        return (
            f"{len(self.accepted) - 1:,} samples of {self.expansions:,} expansions in layer {self.region.layer.number} "
            f"({len(self.region.units):,} of {self.region.layer.units:,} units): {len(self.rejected):,} left the "
            f"region, {self.crowded:,} came too near another{way}. They are {mean:.3g} from the query on average, "
            f"{most:.3g} at most{joined}. {self.verified.mean():.0%} have its signs in float64. {self.evaluations:,} "
            "network evaluations."
        )

    def plot(self, path: str | Path) -> None:
        """Draw the tree in two dimensions and some images, to a .png, .pdf or .svg file (needs matplotlib)."""
        later("report.generative:draw_exploration")(path, self)

    def __str__(self) -> str:
        return self.summary()


@dataclass(eq=False)
class Nodes(Table):
    """Samples, a record each: see :class:`Exploration`."""

    parent: Array
    distance: Array
    connected: Array
    verified: Array
    z: Array


def explore(
    G: Generator,
    z0: ArrayLike,
    layer: int,
    mask: ArrayLike | None = None,
    interval: float = 1.0,
    delta: float | None = None,
    expansions: int = 1000,
    batch: int = 64,
    check_segments: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> Exploration:
    """Samples of the generative region of a query by GB-RRT (Algorithm 2).

    A random point of a box around the query draws its nearest sample a step towards it; where that ends in the region
    and not near another sample, it is one more. The samples are those of the algorithm one expansion at a time,
    whatever the ``batch``: many expansions go to the network together in advance, and those whose nearest sample has
    changed meanwhile once more.

    Parameters
    ----------
    G
        The generator.
    z0
        The query, a latent vector (d,).
    layer
        The layer's number, from 1.
    mask
        The units whose signs are kept, (units,) bool or indices, such as those of :func:`essential`; by default all.
    interval
        I: points are uniform in the box z0 - I to z0 + I.
    delta
        Length of a step, and least distance of samples; by default 0.08 I sqrt(d).
    expansions
        N, how many steps are tried.
    batch
        Expansions that go to the network together, at most. 1 evaluates each when its turn comes.
    check_segments
        Also look at points of the segment of every step, and refuse it where one is outside. The paper does not. So
        every sample is connected to the query; of an affine layer, whose regions are convex, every one is anyway.
    seed
        Of the random points.
    progress
        Whether to show a bar.
    """
    region = Region.of(G, z0, layer, mask)
    interval = as_number(interval, "interval", least=0.0)
    step = STEP * interval * G.n_latent**0.5 if delta is None else as_number(delta, "delta", least=0.0)
    if not (interval > 0 and step > 0):
        raise InputError(f"interval, delta: expected numbers > 0, found {interval:g} and {step:g}")
    count, batch = as_whole(expansions, "expansions", least=1), as_whole(batch, "batch", least=1)
    growth = Growth(region, step, count, bool(check_segments))
    targets = Targets(region.query, interval, count, as_whole(seed, "seed"))
    with one_blas_thread(), progress_bar(f"GB-RRT, layer {layer}", count, "expansions", progress) as advance:
        _grow(growth, targets, batch, advance)
    tree = growth.parents[: growth.size]
    accepted = growth.points[: growth.size]
    known = growth.segments or region.affine is not None
    return Exploration(
        region,
        accepted,
        tree,
        np.array(growth.rejected).reshape(-1, G.n_latent),
        growth.crowded,
        growth.left,
        known | (tree < 0),
        growth.evaluations,
        interval,
        step,
    )


class Targets:
    """The random points z_i, a few at a time."""

    def __init__(self, query: Array, interval: float, count: int, seed: int) -> None:
        self.low, self.high, self.count = query - interval, query + interval, count
        self.rng = np.random.default_rng(seed)

    def draw(self, count: int) -> Array:
        """The next ones, (at most count, d)."""
        few = min(count, self.count)
        self.count -= few
        return np.asarray(self.rng.uniform(self.low, self.high, (few, len(self.low))))


class Growth:
    """The tree so far: ``size`` nodes in ``points``, and what became of expansions that are none."""

    def __init__(self, region: Region, delta: float, count: int, segments: bool) -> None:
        self.region, self.delta = region, delta
        self.segments = segments and region.affine is None
        self.points = np.empty((count + 1, len(region.query)))
        self.parents = np.empty(count + 1, dtype=np.int64)
        self.offsets = np.empty_like(self.points)  # from the query, so that products of them round less
        self.halves = np.zeros(count + 1)
        """Half the square of each offset."""
        self.points[0], self.parents[0], self.offsets[0], self.size = region.query, -1, 0.0, 1
        self.rejected: list[Array] = []
        self.crowded = self.left = self.evaluations = 0

    def nearest(self, X: Array) -> tuple[Array, Array]:
        """The nearest node of each point (rows, d): its index, and the squared distance."""
        offsets = X - self.region.query
        index, best = np.zeros(len(X), dtype=np.int64), np.full(len(X), np.inf)
        squares = np.einsum("ij,ij->i", offsets, offsets)
        for first in range(0, self.size, BLOCK):
            block = self.offsets[first : min(first + BLOCK, self.size)]
            apart = offsets @ block.T  # |x - p|^2 is |x|^2 - 2 (x . p - |p|^2 / 2)
            apart -= self.halves[first : first + len(block)]
            k = apart.argmax(axis=1)
            value = squares - 2 * apart[np.arange(len(X)), k]
            nearer = value < best
            index[nearer], best[nearer] = first + k[nearer], value[nearer]
        return index, best

    def steps(self, targets: Array, parents: Array) -> Array:
        """Line 5 of Algorithm 2: a step of length delta from each parent towards its target, (rows, d)."""
        q = self.points[parents]
        towards = targets - q
        lengths = np.array([np.sqrt(v @ v) for v in towards])  # row by row, so that they do not depend on the batch
        return np.asarray(towards / lengths[:, None] * self.delta + q)

    def add(self, point: Array, parent: int) -> None:
        """Line 7: one more node."""
        self.points[self.size], self.parents[self.size] = point, parent
        self.offsets[self.size] = offset = point - self.region.query
        self.halves[self.size] = offset @ offset / 2
        self.size += 1

    def judged(self, points: Array, parents: Array) -> tuple[Array, Array]:
        """Whether expansions end in the region, and whether they also stay in it on the way if that is asked."""
        inside = self.region.contains(points)
        self.evaluations += len(points)
        stays, some = inside.copy(), np.flatnonzero(inside)
        if self.segments and len(some):
            stays[some] = self.region.stays(self.points[parents[some]], points[some])
            self.evaluations += POINTS * len(some)
        return inside, stays


def _grow(growth: Growth, targets: Targets, batch: int, advance: Advance) -> None:
    """Algorithm 2, with up to ``batch`` expansions evaluated in advance.

    How many are evaluated follows from how many could be used the last time: early on, every new node is the nearest to
    many targets.
    """
    waiting = Waiting.of(growth, targets.draw(batch))
    ahead, done = 1, 0
    while len(waiting.targets):
        some = slice(0, ahead)
        waiting.evaluate(growth, np.flatnonzero(waiting.parent[some] != waiting.near[some]))
        used = 0
        while used < min(ahead, len(waiting.targets)) and waiting.parent[used] == waiting.near[used]:
            waiting.settle(growth, used)
            used += 1
        ahead = min(batch, 2 * ahead if used >= ahead else max(2, 2 * used))
        waiting = waiting.after(used, Waiting.of(growth, targets.draw(used)))
        done += used
        advance(done)


@dataclass
class Waiting:
    """Targets in turn, each with its nearest node; and of those that were evaluated the expansion that came of it.

    ``parent`` is the node that it was expanded from, -1 for none yet; ``apart`` the squared distance of ``points`` from
    the nearest node.
    """

    targets: Array
    near: Array
    distance: Array
    parent: Array
    points: Array
    inside: Array
    stays: Array
    apart: Array

    @classmethod
    def of(cls, growth: Growth, targets: Array) -> Waiting:
        near, distance = growth.nearest(targets)
        rows = len(targets)
        none, blank = np.full(rows, -1), np.zeros(rows, dtype=bool)
        return cls(targets, near, distance, none, np.zeros_like(targets), blank, blank.copy(), np.full(rows, np.inf))

    def evaluate(self, growth: Growth, rows: Array) -> None:
        """Lines 4 and 5 for some rows, and whether the points are in the region."""
        if len(rows) == 0:
            return
        self.parent[rows] = self.near[rows]
        points = growth.steps(self.targets[rows], self.near[rows])
        self.points[rows] = points
        self.inside[rows], self.stays[rows] = growth.judged(points, self.near[rows])
        self.apart[rows] = growth.nearest(points)[1]

    def settle(self, growth: Growth, k: int) -> None:
        """Lines 6 and 7 for the row ``k``, all before it being settled; those after it hear of a new node."""
        if not self.inside[k]:
            growth.rejected.append(self.points[k].copy())
        elif self.apart[k] < (growth.delta * (1 - SLACK)) ** 2:
            growth.crowded += 1
        elif not self.stays[k]:
            growth.left += 1
        else:
            new, later_rows = self.points[k], slice(k + 1, None)
            growth.add(new, int(self.parent[k]))
            distance = ((self.targets[later_rows] - new) ** 2).sum(axis=1)
            nearer = distance < self.distance[later_rows]
            self.near[later_rows][nearer] = growth.size - 1
            self.distance[later_rows][nearer] = distance[nearer]
            apart = ((self.points[later_rows] - new) ** 2).sum(axis=1)
            self.apart[later_rows] = np.where(
                self.parent[later_rows] >= 0, np.minimum(self.apart[later_rows], apart), np.inf
            )

    def after(self, used: int, more: Waiting) -> Waiting:
        """Without the first ``used``, and with others at the end."""
        return Waiting(
            *(np.concatenate([a[used:], b]) for a, b in zip(vars(self).values(), vars(more).values(), strict=True))
        )
