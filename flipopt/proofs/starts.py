"""Many starts, and what their ends say of the minima that none of them found."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_whole
from flipopt.common.errors import InputError
from flipopt.flips.batched import Chunk, table_of
from flipopt.flips.one import closest_flip_point
from flipopt.flips.request import checked_targets
from flipopt.networks.points import as_one_point, as_points
from flipopt.networks.wrapping import as_network
from flipopt.problem import Setting
from flipopt.proofs.sampling import View
from flipopt.results import SAME_DISTANCE, FlipResult, FlipTable
from flipopt.runs.threads import in_order
from flipopt.solvers import Batch

if TYPE_CHECKING:
    from flipopt.solvers.batch.result import BatchResult


@dataclass(frozen=True, eq=False)
class Starts:
    """Where independent random starts ended. Evidence, not proof.

    Attributes
    ----------
    minima
        The distinct ends, nearest first, one entry each; ``minima.agreeing`` says how often each was found, and
        ``minima.starts`` of how many that led to the boundary. Those that the check does not find stationary
        (``minima.success``) are ends, but perhaps no minima.
    starts
        How many starts there were.
    confidence
        Of ``nearer_share_at_most``.
    known
        Distance of the flip that was known before; NaN if none was.
    """

    minima: FlipTable
    starts: int
    confidence: float
    known: float

    @property
    def found(self) -> Array:
        """How often each minimum was found, (minima,)."""
        return self.minima.agreeing

    @property
    def ended(self) -> int:
        """Starts that led to the boundary: n below. The others count for nothing."""
        return int(self.found.sum())

    @property
    def distance(self) -> float:
        """Of the nearest end; NaN if no start led to the boundary."""
        return float(self.minima.distance[0]) if len(self.minima) else np.nan

    @property
    def agreed(self) -> float:
        """Share of the starts that led to the nearest end."""
        return float(self.found[0] / self.ended) if self.ended else np.nan

    @property
    def nearer_share_at_most(self) -> float:
        """With the stated confidence, starts drawn alike end nearer than the nearest end so far at most this often.

        1 - (1 - confidence)^(1 / n), whatever the minima are: that all of n independent draws miss the nearest share p
        of all ends has the probability (1 - p)^n.
        """
        return float(1 - (1 - self.confidence) ** (1 / self.ended)) if self.ended else 1.0

    @property
    def expected_minima(self) -> float:
        """Posterior mean of the number of minima that starts can find, W (n - 1) / (n - W - 2), for W found.

        C. G. E. Boender and A. H. G. Rinnooy Kan, Bayesian stopping rules for multistart global optimization methods,
        1987: all numbers of minima and all sizes of basins are equally likely beforehand. Infinite for n <= W + 2.
        """
        n, W = self.ended, len(self.minima)
        return W * (n - 1) / (n - W - 2) if n > W + 2 else np.inf

    @property
    def unseen_share(self) -> float:
        """Posterior mean of the share of starts that end in minima not seen, W (W + 1) / (n (n - 1)), as above."""
        n, W = self.ended, len(self.minima)
        return min(1.0, W * (W + 1) / (n * (n - 1))) if n > 1 else 1.0

    @property
    def good_turing(self) -> float:
        """The same share without a prior: minima found once, over n (I. J. Good, 1953)."""
        return float((self.found == 1).sum() / self.ended) if self.ended else 1.0

    @property
    def chao1(self) -> float:
        """A lower estimate of the number of minima, W + (n - 1) / n f1 (f1 - 1) / (2 (f2 + 1)), with f1 of them found
        once and f2 twice (A. Chao, 1984, in its form without bias)."""
        n, once, twice = self.ended, int((self.found == 1).sum()), int((self.found == 2).sum())
        return len(self.minima) + (n - 1) / n * once * (once - 1) / (2 * (twice + 1)) if n else np.nan

    def summary(self) -> str:
        """In plain words."""
        if not self.ended:
            return f"None of {self.starts} starts led to the boundary."
        W = len(self.minima)
        count = f"{self.expected_minima:.3g}" if np.isfinite(self.expected_minima) else "any number of"
        words = (
            f"{self.ended} of {self.starts} starts led to the boundary, to {W} different "
            f"{'end' if W == 1 else 'ends'}; {self.found[0]} to the nearest, at {self.distance:.6g}. With "
            f"{self.confidence:.0%} confidence at most {self.nearer_share_at_most:.2g} of such starts end nearer; "
            f"{count} minima are expected, and {self.unseen_share:.2g} of the starts to lead to new ones."
        )
        if self.distance < self.known * (1 - SAME_DISTANCE):
            words += f" The flip that was known, at {self.known:.6g}, is not the closest."
        if self.distance > self.known * (1 + SAME_DISTANCE):
            words += f" None came to the flip that is known, at {self.known:.6g}: such starts miss what is nearer."
        return words

    def __str__(self) -> str:
        return self.summary()


def starts(
    network: Any,
    x: ArrayLike,
    starts: int = 50,
    seed: int = 0,
    target: int | None = None,
    flip: FlipResult | None = None,
    towards: ArrayLike | None = None,
    radius: float | None = None,
    same: float = 1e-3,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    bounds: Any = None,
    solver: Batch | None = None,
) -> Starts:
    """Solve for the closest flip of x from many independent random points, for any network, in the 2-norm.

    A start is uniform in a ball around x; one in another class is put on the boundary, on its way from x. From there
    the batch solver goes on, as it does from its further ``starts``, to the nearest of all classes that it finds.

    Parameters
    ----------
    network, x, weights, frozen, bounds
        As in :func:`~flipopt.closest_flip_point`.
    starts, seed
        How many, and of the random points.
    target
        The other class; None for the nearest of all classes.
    flip
        The flip that is known, of which only the distance counts; by default that of
        :func:`~flipopt.closest_flip_point`, if there is no ``radius``.
    towards
        Samples (samples, n_inputs): then every second start, by the toss of a coin, is on the boundary on the way to
        one of those in another class (in ``target``), chosen at random.
    radius
        Of the ball; by default twice the distance of the flip.
    same
        Ends of the same class this close to each other, in distances from x, are one.
    confidence
        Of ``nearer_share_at_most``.
    solver
        A :class:`~flipopt.solvers.Batch` with other options.
    """
    net = as_network(network, x)
    setting, point = Setting.of(net, weights=weights, frozen=frozen, bounds=bounds), as_one_point(x, net, "x")
    setting.require_possible(point[None])
    count, plan = as_whole(starts, "starts", least=1), solver or Batch()
    same = as_number(same, "same", least=0.0)
    confidence = as_number(confidence, "confidence", least=0.0, below=1.0)
    view = View.of(setting, point)
    j = None if target is None else checked_targets(net, target, view.source)[0]
    samples = None if towards is None else np.atleast_2d(as_points(towards, net, "towards")).astype(np.float64)
    if flip is None and radius is None:
        options: dict[str, Any] = {"weights": weights, "frozen": frozen, "bounds": bounds, "solver": plan}
        flip = closest_flip_point(net, point, j, **options)
    known = np.nan if flip is None else flip.distance
    if radius is None and not 0 < known < np.inf:
        raise InputError(f"radius: expected that of a ball around x, as no flip is known away from x, found {radius}")
    radius = 2 * known if radius is None else as_number(radius, "radius", least=0.0)
    points = _drawn(view, count, radius, samples, j, np.random.default_rng(seed))
    table = _solved(view, view.lifted(points), j, plan)
    return Starts(_distinct(table, setting, same), count, confidence, known)


def _drawn(
    view: View, count: int, radius: float, towards: Array | None, target: int | None, rng: np.random.Generator
) -> Array:
    """Starting points, (count, n)."""
    length = radius * rng.random(count) ** (1 / view.dimension)
    points = view.points(length[:, None] * view.directions(rng, count))
    if towards is not None:
        there = view.reduced.coordinates(towards)
        there = there[view.leads(there, target)[0] <= 0]
        if len(there) == 0:
            raise InputError("towards: expected a sample in another class, found none")
        chosen = rng.random(count) < 0.5
        points[chosen] = view.points(there[rng.integers(len(there), size=count)] - view.x)[chosen]
    beyond = view.leads(points, target)[0] <= 0
    points[beyond] = view.crossings(points[beyond], target)[0]
    return points


def _solved(view: View, points: Array, target: int | None, solver: Batch) -> FlipTable:
    """Where the starts ended, (starts, n_inputs), an entry each: at a flip to the target, or to any class."""
    from flipopt.solvers.batch.engine import solve_from

    began, classes = time.perf_counter(), view.others if target is None else np.array([target])
    start = np.repeat(np.arange(len(points)), len(classes))
    batch, groups = view.batch(np.tile(classes, len(points))), None if len(classes) == 1 else start
    size = max(1, solver.chunk_size(batch.setting) // len(classes)) * len(classes)

    def solve(some: slice) -> BatchResult:
        mine = None if groups is None else groups[some] - groups[some.start]
        return solve_from(batch.take(some), solver.plan, points[start[some]], mine)

    parts = list(in_order(solve, [slice(first, first + size) for first in range(0, len(batch), size)]))
    chunk = Chunk(batch, start, groups, np.full(len(batch), ""))
    return table_of(chunk, parts[0].join(parts), time.perf_counter() - began)


def _distinct(table: FlipTable, setting: Setting, same: float) -> FlipTable:
    """The ends on the boundary without those that are near a nearer one of the same class, nearest first."""
    left = table[np.isfinite(table.distance)]
    left, n = left[np.argsort(left.distance, kind="stable")], int(np.isfinite(table.distance).sum())
    first, found = [], []
    rest = np.arange(len(left))
    while len(rest):
        k = rest[0]
        near = setting.length(left.x[rest] - left.x[k]) <= same * left.distance[k]
        near &= left.classes[rest, 1] == left.classes[k, 1]
        first.append(k)
        found.append(int(near.sum()))
        rest = rest[~near]
    minima = left[np.array(first, dtype=np.int64)]
    return replace(minima, starts=np.full(len(minima), n), agreeing=np.array(found, dtype=np.int64))
