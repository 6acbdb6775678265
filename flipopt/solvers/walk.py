"""A short walk to the boundary: a common start for solvers that are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import Evaluations, FlipProblem, logit_scale


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
    """Other classes within this many logits of the source, of ordinary size, are kept below it."""


DEFAULT = Walk()


def walk(problem: FlipProblem, cost: Evaluations | None = None, options: Walk = DEFAULT) -> Array:
    """A point near the boundary and near a closest flip, by short projected steps from x; adds what it costs.

    Each step goes towards the projection of x on the linearised boundary (in structural reliability: the iteration of
    Hasofer, Lind, Rackwitz and Fiessler), but no farther than a step limit: far from the boundary a saturated network's
    gradient says where to go, not how far. On a curved boundary the iteration overshoots to and fro; the part of the
    step along the boundary is therefore damped, the more the oftener it turns back. Classes that come close are kept
    below by their own linearisation.
    """
    cost = Evaluations() if cost is None else cost
    T, net, x_hat = problem.goal.T, problem.network, problem.x
    if not problem.goal.classes:
        return x_hat
    ties = int(problem.goal.equations.sum())
    root = np.sqrt(problem.weights)  # what is long or short is said by the weights
    limit = options.first * (float(np.linalg.norm(root * problem.x)) or 1.0)
    near, first_lead, crossed, damping, last = 0.0, None, False, 1.0, np.zeros_like(x_hat)
    for _ in range(options.steps):
        Y, pullback = net.linearize(x_hat)
        lead = T @ Y - np.where(problem.goal.equations, 0.0, problem.goal.lower)
        if first_lead is None:
            near, first_lead = options.watched / logit_scale(Y), lead[0]
        crossed = crossed or lead[0] * first_lead <= 0
        rows = np.flatnonzero((np.arange(len(T)) < ties) | (lead < near))
        A = np.where(problem.frozen, 0.0, pullback(T[rows]))
        cost.forward += 1
        cost.backward += len(rows)
        z, use = _project(problem, x_hat, A, lead[rows], ties)
        step = z - x_hat
        if crossed:
            back = -np.linalg.lstsq(A[use] / root, lead[rows][use], rcond=None)[0] / root  # the shortest way back
            along = step - back
            damping = min(1.0, damping * (options.calm if along @ (problem.weights * last) >= 0 else options.turn))
            step, last = back + damping * along, along
        length = float(np.linalg.norm(root * step))
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
