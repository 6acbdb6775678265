"""Starting points: x, a walk to the boundary, points towards samples of the target class, random points, reflections.

All but the walk are made for many problems at once, and none depends on a problem's place in its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.networks.blocks import times
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipBatch, FlipProblem

SPREAD = 0.1
"""How far from x the random points are, relative to |x|."""
BISECTIONS = 8
"""Of the segment from x to a sample: a solver does the rest."""


def number_of_starts(starts: Any) -> int:
    """``starts``, which must be a whole number of at least 1."""
    if not isinstance(starts, int | np.integer) or isinstance(starts, bool) or starts < 1:
        raise InputError(f"starts: expected a number of points >= 1, or points, found {starts!r}")
    return int(starts)


@dataclass(frozen=True)
class Samples:
    """Points X (samples, n_inputs) to start towards, and the classes that the network gives them, (samples,)."""

    X: Array
    classes: Array

    @classmethod
    def of(cls, network: Network, towards: ArrayLike | None) -> Samples | None:
        """From the argument ``towards`` of the public verbs."""
        if towards is None:
            return None
        X = np.atleast_2d(as_rows(towards, network.n_inputs, "towards")).astype(np.float64)
        return cls(X, np.asarray(network.predict(X)))


def further_points(batch: FlipBatch, k: int, samples: Samples | None, seed: int) -> Array:
    """The k-th further start of every problem, (problems, n_inputs): near the boundary on the way to the k-th nearest
    sample of its target class, or, where there is none, a random point."""
    points = random_points(batch, (seed, 100 + k))
    return points if samples is None else towards_samples(batch, samples, k, points)


def random_points(batch: FlipBatch, seed: tuple[int, int]) -> Array:
    """x + SPREAD |x| z for one random direction z: the same for every problem, so that none depends on its batch."""
    z = np.random.default_rng(seed).standard_normal(batch.X.shape[1])
    size = np.maximum(np.linalg.norm(batch.X, axis=1), 1e-3)
    return batch.clip(batch.X + SPREAD * size[:, None] * z / np.linalg.norm(z))


def reflected(batch: FlipBatch, X_hat: Array, back: float) -> Array:
    """Points behind x as seen from X_hat (problems, n_inputs), at ``back`` times its distance; beyond it if negative;
    x itself if 0."""
    return batch.clip(batch.X - back * (X_hat - batch.X)) if back else batch.X


def towards_samples(batch: FlipBatch, samples: Samples, rank: int, otherwise: Array) -> Array:
    """Points near the boundary on the way to the sample of the target class that is the nearest but ``rank``."""
    points = otherwise.copy()
    for j in np.unique(batch.classes[:, 1]):
        mine, theirs = np.flatnonzero(batch.classes[:, 1] == j), samples.X[samples.classes == j]
        if len(theirs) <= rank:
            continue
        squares = (theirs**2).sum(axis=1) - 2 * times(batch.X[mine], theirs.T)
        points[mine] = _bisected(batch.take(mine), theirs[np.argsort(squares, axis=1, kind="stable")[:, rank]])
    return batch.clip(points)


def _bisected(batch: FlipBatch, samples: Array) -> Array:
    """Where the lead over the target changes its sign on the way from x to the sample of each problem."""
    low, high = np.zeros(len(batch)), np.ones(len(batch))
    rows, j = np.arange(len(batch)), batch.classes[:, 1]
    for _ in range(BISECTIONS):
        t = (low + high) / 2
        ahead = batch.leads(batch.network.logits(batch.X + t[:, None] * (samples - batch.X)))[rows, j] > 0
        low, high = np.where(ahead, t, low), np.where(ahead, high, t)
    return np.asarray(batch.X + high[:, None] * (samples - batch.X))


# For solvers that take one problem at a time


def starting_points(
    problem: FlipProblem, starts: int | ArrayLike, samples: Samples | None, seed: int, first: Array | None = None
) -> tuple[list[Array], Evaluations]:
    """Points to start from, and what they cost.

    Given points are taken as they are. A number asks for the end of a walk to the boundary first, then x, then
    :func:`further_points`. A point ``first`` takes the place of the first.
    """
    cost = Evaluations()
    if np.ndim(starts) > 0:
        given = list(np.atleast_2d(as_rows(starts, problem.network.n_inputs, "starts")).astype(np.float64))
        return given if first is None else [first, *given[1:]], cost
    count, classes = number_of_starts(starts), problem.classes[:2] or (0, 1)
    batch = FlipBatch(problem.setting, problem.x[None], np.array([classes]))
    points = [walk(problem, cost) if first is None else first, problem.x][:count]
    return [*points, *(further_points(batch, k, samples, seed)[0] for k in range(count - 2))], cost


@dataclass(frozen=True)
class Walk:
    """How :func:`walk` steps."""

    steps: int = 100
    """At most."""
    first: float = 0.02
    """Longest first step, relative to |x|."""
    growth: float = 1.05
    """Of the longest step, until the boundary is first crossed."""
    calm: float = 1.2
    """Factor of the step along the boundary when it goes on as before."""
    turn: float = 0.5
    """The same when it turns back."""
    enough: float = 1e-3
    """A step this short, relative to the longest, ends the walk: the solver does the rest."""
    watched: float = 0.5
    """Other classes within this many logits of the source are kept below it."""


DEFAULT = Walk()


def walk(problem: FlipProblem, cost: Evaluations, options: Walk = DEFAULT) -> Array:
    """A point near the boundary and near a closest flip, by short projected steps from x; adds what it costs.

    Each step goes towards the projection of x on the linearised boundary (in structural reliability: the iteration of
    Hasofer, Lind, Rackwitz and Fiessler), but no farther than a step limit: far from the boundary a saturated network's
    gradient says where to go, not how far. On a curved boundary the iteration overshoots to and fro; the part of the
    step along the boundary is therefore damped, the more the oftener it turns back. Classes that come close are kept
    below by their own linearisation.
    """
    T, net, x_hat = problem.goal.T, problem.network, problem.x
    if not problem.goal.classes:
        return x_hat
    ties = int(problem.goal.equations.sum())
    limit = options.first * (float(np.linalg.norm(problem.x)) or 1.0)
    first_lead, crossed, damping, last = None, False, 1.0, np.zeros_like(x_hat)
    for _ in range(options.steps):
        Y, pullback = net.linearize(x_hat)
        lead = T @ Y - np.where(problem.goal.equations, 0.0, problem.goal.lower)
        first_lead = lead[0] if first_lead is None else first_lead
        crossed = crossed or lead[0] * first_lead <= 0
        rows = np.flatnonzero((np.arange(len(T)) < ties) | (lead < options.watched))
        A = np.where(problem.frozen, 0.0, pullback(T[rows]))
        cost.forward += 1
        cost.backward += len(rows)
        z, use = _project(problem, x_hat, A, lead[rows], ties)
        step = z - x_hat
        if crossed:
            back = -np.linalg.lstsq(A[use], lead[rows][use], rcond=None)[0]  # the shortest way back to the boundary
            along = step - back
            damping = min(1.0, damping * (options.calm if along @ last >= 0 else options.turn))
            step, last = back + damping * along, along
        length = float(np.linalg.norm(step))
        if not np.isfinite(length) or length <= options.enough * limit:
            break
        x_hat = problem.clip(x_hat + step * min(1.0, limit / length))
        limit *= 1.0 if crossed else options.growth
    return x_hat


def _project(problem: FlipProblem, x_hat: Array, A: Array, lead: Array, ties: int) -> tuple[Array, Array]:
    """The point closest to x on A (z - x_hat) + lead = 0 for the first ``ties`` rows and >= 0 for the others, and a
    mask of the rows that hold with equality."""
    from flipopt.kernels.projections import multipliers

    scaled, free = A / problem.weights, np.arange(len(A)) < ties
    q, lam = A @ (x_hat - problem.x) - lead, np.empty((1, len(A)))
    multipliers((scaled @ A.T)[None], q[None], np.ones((1, len(A)), dtype=bool), free, lam)
    return problem.x + scaled.T @ lam[0], free | (lam[0] > 0)
