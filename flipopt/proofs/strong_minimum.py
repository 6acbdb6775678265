"""The strong-minimum test: does a sphere just inside the closest flip known hold points of other classes?

Structural reliability asks this of a design point (the strong maximum test, as OpenTURNS has it): points are drawn on a
sphere around the origin, and those in the failure domain that are not near the design point speak of another one. There
the sphere is a little larger than the distance; here it is a little smaller, so that any point of another class on it
refutes the flip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from flipopt.common.checks import Array, as_number, as_point, as_whole
from flipopt.common.errors import InputError
from flipopt.networks.points import as_one_point, as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.problem import Evaluations, FlipProblem, Setting
from flipopt.proofs.sampling import View
from flipopt.results import SAME_DISTANCE, FlipResult, Status, best
from flipopt.runs.threads import one_blas_thread
from flipopt.solvers import Batch
from flipopt.verification import verify

WIDTHS = (0.03, 3.0)
"""Tangents of the angles between likely directions and their centre, spread evenly over their logarithms."""
STEPS, FIRST, SHRINK = 20, 0.3, 0.9
"""Of a descent along the sphere: how many, the first one in radians, and the factor from one to the next."""
KEPT, SOLVED = 64, 8
"""Points of other classes whose rays are halved, and of those how many go to the solver, the nearest first."""


@dataclass(frozen=True, eq=False)
class StrongMinimum:
    """What points on the sphere of ``radius`` around x say of a flip at ``distance``. Evidence, not proof.

    Attributes
    ----------
    distance, radius
        Of the flip, and of the sphere.
    dimension
        Of the space that the sphere is in: the free features, or fewer where the network sees x through fewer.
    samples, allowed, flips_found
        Independent uniform points on the sphere, how many of them are within the bounds, and how many of those are in
        another class.
    confidence, share_at_most
        With this confidence the points of other classes, within the bounds, are at most this share of the sphere's
        area (Clopper and Pearson: 1 - (1 - confidence)^(1 / samples) if none was found). It says nothing of smaller
        regions, of regions wholly inside the sphere, or of how near a flip may be.
    flat_within
        What that share amounts to: a flat boundary nearer than this would take more of the sphere than
        ``share_at_most``, with everything beyond it. In many dimensions it is a small part of the distance. NaN with
        bounds.
    likely, likely_found
        Points around the directions in which a nearer flip would likely be, and how many are in another class. They are
        not uniform, so no share follows from them.
    descents, descents_found
        Walks on the sphere towards other classes from uniform points, and how many came to one.
    nearer
        The nearest flip that was found on the way, which refutes the one given; None if there is none.
    """

    distance: float
    radius: float
    dimension: int
    samples: int
    allowed: int
    flips_found: int
    confidence: float
    share_at_most: float
    flat_within: float
    likely: int
    likely_found: int
    descents: int
    descents_found: int
    nearer: FlipResult | None

    @property
    def refuted(self) -> bool:
        """Whether there is a nearer flip."""
        return self.nearer is not None

    def summary(self) -> str:
        """In plain words."""
        looked = f"{self.samples:,} uniform points, {self.likely:,} likely ones and {self.descents:,} descents"
        where = f"on the sphere at {self.radius:.6g}"
        if self.nearer is not None:
            gain = 1 - self.nearer.distance / self.distance
            found = f"{self.flips_found:,}, {self.likely_found:,} and {self.descents_found:,}"
            return (
                f"Not the closest: of {looked} {where}, {found} are in another class, and a flip at "
                f"{self.nearer.distance:.6g} was found, {gain:.2%} nearer."
            )
        if self.flips_found or self.likely_found or self.descents_found:
            return f"Some of {looked} {where} are in another class, but no flip was found that the check accepts."
        words = (
            f"No nearer flip was found by {looked} {where}. With {self.confidence:.0%} confidence other classes have "
            f"at most {self.share_at_most:.2g} of its area in {self.dimension} dimensions"
        )
        if self.allowed < self.samples:
            return f"{words}; only {self.allowed:,} of the uniform points are within the bounds."
        return f"{words}: a flat boundary would be seen within {self.flat_within:.4g}."

    def __str__(self) -> str:
        return self.summary()


def strong_minimum(
    network: Any,
    x: ArrayLike,
    flip: FlipResult | ArrayLike,
    samples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
    likely: int = 1_000,
    descents: int = 64,
    towards: ArrayLike | None = None,
    delta: float = 0.01,
    weights: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    bounds: Any = None,
) -> StrongMinimum:
    """Look for points of other classes on a sphere just inside a flip of x, for any network, in the 2-norm.

    Where none is found that is evidence for the flip, with a stated confidence; where one is, it is brought to the
    boundary and to the nearest flip around, which refutes the flip.

    Parameters
    ----------
    network
        Any classifier.
    x
        The input, (n_inputs,).
    flip
        The nearest flip known of x, of all classes, as a result or as a point (n_inputs,).
    samples
        Uniform points on the sphere.
    confidence
        Of what is said of them.
    seed
        Of the points.
    likely
        Points around directions in which a nearer flip would likely be: that of the flip, the steepest descent of every
        other class's lead at x and at the flip, and those of ``towards``.
    descents
        Of the uniform points, how many with the least leads walk on along the sphere, down the gradient.
    towards
        Further points (k, n_inputs) in whose directions to look: flips of other classes or of similar inputs, samples.
    delta
        The radius of the sphere is (1 - delta) times the distance of the flip. A nearer flip by less than that is not
        looked for.
    weights, frozen, bounds
        As in :func:`~flipopt.closest_flip_point`. With bounds only points within them count as found, and likely points
        and descents are put within them.
    """
    net = as_network(network, x)
    setting = Setting.of(net, weights=weights, frozen=frozen, bounds=bounds)
    point = as_one_point(x, net, "x")
    setting.require_possible(point[None])
    known = as_point(flip.x if isinstance(flip, FlipResult) else flip, net.n_inputs, "flip")
    confidence = as_number(confidence, "confidence", least=0.0, below=1.0)
    delta = as_number(delta, "delta", least=0.0, below=1.0)
    counts = as_whole(samples, "samples", least=1), as_whole(likely, "likely"), as_whole(descents, "descents")
    further = np.empty((0, net.n_inputs)) if towards is None else np.atleast_2d(as_points(towards, net, "towards"))
    distance = float(setting.distance(known, point))
    if distance == 0:
        raise InputError("flip: expected a point other than x, found x itself")
    view = View.of(setting, point)
    search = _Search(view, (1 - delta) * distance, np.random.default_rng(seed))
    allowed, found = search.uniform(counts[0], counts[2])
    likely_found = search.likely(counts[1], view.reduced.coordinates(np.vstack([known[None], further])))
    walked, arrived = search.descents()
    nearer = search.nearest(net)
    if nearer is not None and not nearer.distance < distance:
        nearer = None
    share = float(betaincinv(found + 1, counts[0] - found, confidence)) if found < counts[0] else 1.0
    flat = np.nan if setting.bounded else search.radius * height(share, view.dimension)
    return StrongMinimum(
        distance, search.radius, view.dimension, counts[0], allowed, found, confidence, share, flat,
        counts[1], likely_found, walked, arrived, nearer,
    )  # fmt: skip


def height(share: float, dimension: int) -> float:
    """At which height, in radii, a plane cuts this share of the sphere's area off: 0 for a half or more.

    The cap above the height h has the share I(1 - h^2; (d - 1) / 2, 1 / 2) / 2, with I the regularised incomplete beta
    function (S. Li, Concise formulas for the area and volume of a hyperspherical cap, 2011).
    """
    if share >= 0.5:
        return 0.0
    return 1.0 if dimension == 1 else float(np.sqrt(1 - betaincinv((dimension - 1) / 2, 0.5, 2 * share)))


class _Search:
    """Points on the sphere around x, and those of other classes among them."""

    def __init__(self, view: View, radius: float, rng: np.random.Generator) -> None:
        self.view, self.radius, self.rng = view, radius, rng
        self.found = self.low = np.empty((0, len(view.x)))
        self.found_leads, self.low_leads = np.empty(0), np.empty(0)

    def uniform(self, samples: int, low: int) -> tuple[int, int]:
        """How many uniform points are within the bounds, and how many of those in another class; the ``low`` least of
        the others are kept for descents."""
        view, allowed, count = self.view, 0, 0
        for size in view.chunks(samples):
            wanted = view.x + self.radius * view.directions(self.rng, size)
            inside = (view.inner.clip(wanted, view.x) == wanted).all(axis=1)
            leads = view.leads(wanted)[0]
            flips = inside & (leads <= 0)
            allowed, count = allowed + int(inside.sum()), count + int(flips.sum())
            self._keep(wanted[flips], leads[flips])
            self.low, self.low_leads = _least(self.low, self.low_leads, wanted[~flips], leads[~flips], low)
        return allowed, count

    def likely(self, count: int, towards: Array) -> int:
        """How many of ``count`` points around likely directions are in another class."""
        view, found = self.view, 0
        centres = self._centres(towards)
        low, high = np.log(WIDTHS)
        widths = np.exp(self.rng.uniform(low, high, count))
        which = np.arange(count) % len(centres)
        for size in view.chunks(count):
            some, which = which[:size], which[size:]
            width, widths = widths[:size, None], widths[size:]
            found += int(self._look(centres[some] + width * view.directions(self.rng, size))[1].sum())
        return found

    def descents(self) -> tuple[int, int]:
        """How many walks there were along the sphere, down the gradient of the lead, and how many found a flip."""
        view, U, step = self.view, self.view.unit(self.low - self.view.x), FIRST
        left = np.arange(len(U))
        for _ in range(STEPS if len(U) else 0):
            points = view.points(self.radius * U[left])
            down = view.downhill(view.slopes(points)[1])
            along = (view.inner.weights * down * U[left]).sum(axis=1, keepdims=True)
            U[left] = view.unit(U[left] + step * view.unit(down - along * U[left]))
            left, step = left[~self._look(U[left])[1]], step * SHRINK
            if len(left) == 0:
                break
        return len(U), len(U) - len(left)

    def nearest(self, network: Network) -> FlipResult | None:
        """The nearest flip to be had from the points that were found."""
        view = self.view
        if len(self.found) == 0:
            return None
        points, classes = view.crossings(self.found)
        first = np.argsort(view.inner.distance(points, view.x), kind="stable")[:SOLVED]
        starts, batch = view.lifted(points[first]), view.batch(classes[first])
        with one_blas_thread():
            from flipopt.solvers.batch.engine import solve_from

            solved = solve_from(batch, Batch().plan, starts, soften=False)
            ends = [(k, x_hat) for points in (starts, solved.x) for k, x_hat in enumerate(points)]
            results = [_result(batch.problem(k), x_hat, network) for k, x_hat in ends]
        there = [result for result in results if np.isfinite(result.distance)]
        nearest = min(there, key=lambda result: result.distance, default=None)
        if nearest is None:
            return None
        same = [result for result in there if result.distance <= nearest.distance * (1 + SAME_DISTANCE)]
        cost = Evaluations(int(solved.forward.sum()), int(solved.backward.sum()))
        return replace(best(same), evaluations=cost)

    def _centres(self, towards: Array) -> Array:
        """Directions in which a nearer flip would likely be, (k, n): the first of ``towards`` is the flip."""
        view = self.view
        others = view.others
        steepest = [
            view.downhill(view.slopes(np.repeat(point[None], len(others), axis=0), others)[1])
            for point in (view.x, towards[0])
        ]
        centres = np.vstack([view.unit(towards - view.x), *steepest])
        return np.asarray(centres[np.abs(centres).max(axis=1) > 0])

    def _look(self, directions: Array) -> tuple[Array, Array]:
        """The leads at points of the sphere in these directions (k, n), within the bounds, and which are flips."""
        points = self.view.points(self.radius * self.view.unit(directions))
        leads = self.view.leads(points)[0]
        self._keep(points[leads <= 0], leads[leads <= 0])
        return leads, leads <= 0

    def _keep(self, points: Array, leads: Array) -> None:
        self.found, self.found_leads = _least(self.found, self.found_leads, points, leads, KEPT)


def _least(points: Array, leads: Array, more: Array, their: Array, count: int) -> tuple[Array, Array]:
    """The ``count`` points with the least leads of both."""
    points, leads = np.concatenate([points, more]), np.concatenate([leads, their])
    first = np.argsort(leads, kind="stable")[:count]
    return points[first], leads[first]


def _result(problem: FlipProblem, x_hat: Array, network: Network) -> FlipResult:
    """A point as a result, by the check alone."""
    check = verify(problem, x_hat, network)
    status = Status.ON_BOUNDARY if check.on_boundary else Status.NUMERICAL_ERROR
    status = Status.CONVERGED if check.closest() else status
    distance = float(problem.distance(x_hat)) if check.on_boundary else np.nan
    message = "found by the strong-minimum test"
    return FlipResult(x_hat, distance, problem.classes, status, message, check, Evaluations(), 0, 0.0, "strong minimum")
