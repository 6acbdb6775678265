"""Starting points: a walk to the boundary, x itself, given points, boundary points towards samples, random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.problem import Evaluations, FlipProblem

BISECTIONS = 50
WALK_STEPS = 100
FIRST_STEP = 0.02
"""Longest first step of a walk, relative to |x|."""
GROWTH = 1.05
"""Of the longest step, until the boundary is first crossed."""
CALM, TURN = 1.2, 0.5
"""Factors of the step along the boundary when it goes on as before, and when it turns back."""
ENOUGH = 1e-3
"""A step this short, relative to the longest, ends the walk: the solver does the rest."""
WATCHED = 0.5
"""Other classes within this many logits of the source are kept below it by the walk."""


def starting_points(
    problem: FlipProblem,
    starts: int | ArrayLike,
    towards: ArrayLike | None,
    seed: int,
    evaluations: Evaluations | None = None,
) -> list[Array]:
    """Points to start from; what the walk costs is added to ``evaluations``.

    Given points are taken as they are. A number asks for the end of a walk to the boundary first, then x, then boundary
    points on the way to the nearest samples in ``towards``, then random points as far from x as the walk's end.
    """
    n = problem.network.n_inputs
    if np.ndim(starts) > 0:
        return list(np.atleast_2d(as_rows(starts, n, "starts")).astype(np.float64))
    starts = number_of_starts(starts)
    points = [walk(problem, evaluations), problem.x][:starts]
    if towards is not None:
        samples = np.atleast_2d(as_rows(towards, n, "towards")).astype(np.float64)
        order = np.argsort(np.linalg.norm(samples - problem.x, axis=1))
        found = (boundary_point(problem, samples[k]) for k in order[: max(0, int(starts) - 2)])
        points += [point for point in found if point is not None]
    rng = np.random.default_rng(seed)
    radius = np.linalg.norm(points[0] - problem.x) or 1.0
    while len(points) < starts:
        points.append(problem.clip(problem.x + radius * rng.standard_normal(n) / np.sqrt(n)))
    return points


def number_of_starts(starts: Any) -> int:
    """``starts``, which must be a whole number of at least 1."""
    if not isinstance(starts, int | np.integer) or isinstance(starts, bool) or starts < 1:
        raise InputError(f"starts: expected a number of points >= 1, or points, found {starts!r}")
    return int(starts)


def walk(problem: FlipProblem, evaluations: Evaluations | None = None) -> Array:
    """A point near the boundary and near a closest flip, by short projected steps from x.

    Each step goes towards the projection of x on the linearised boundary (in structural reliability: the HL-RF
    iteration), but no farther than a step limit: far from the boundary a saturated network's gradient says where to
    go, not how far. On a curved boundary the iteration overshoots to and fro; the part of the step along the boundary
    is therefore damped, the more the oftener it turns back. Classes that come close are kept below by their own
    linearisation. What it costs is added to ``evaluations``.
    """
    cost = Evaluations() if evaluations is None else evaluations
    T, net, x_hat = problem.goal.T, problem.network, problem.x
    if not problem.goal.classes:
        return x_hat
    ties = int(problem.goal.equations.sum())
    limit = FIRST_STEP * (float(np.linalg.norm(problem.x)) or 1.0)
    first_lead, crossed, damping, last = None, False, 1.0, np.zeros_like(x_hat)
    for _ in range(WALK_STEPS):
        Y, pullback = net.linearize(x_hat)
        lead = T @ Y - np.where(problem.goal.equations, 0.0, problem.goal.lower)
        first_lead = lead[0] if first_lead is None else first_lead
        crossed = crossed or lead[0] * first_lead <= 0
        rows = np.flatnonzero((np.arange(len(T)) < ties) | (lead < WATCHED))
        A = np.where(problem.frozen, 0.0, pullback(T[rows]))
        cost.forward += 1
        cost.backward += len(rows)
        z, use = _project(problem, x_hat, A, lead[rows], ties)
        step = z - x_hat
        if crossed:
            back = -np.linalg.lstsq(A[use], lead[rows][use], rcond=None)[0]  # the shortest way back to the boundary
            along = step - back
            damping = min(1.0, damping * (CALM if along @ last >= 0 else TURN))
            step, last = back + damping * along, along
        length = float(np.linalg.norm(step))
        if not np.isfinite(length) or length <= ENOUGH * limit:
            break
        x_hat = problem.clip(x_hat + step * min(1.0, limit / length))
        limit *= 1.0 if crossed else GROWTH
    return x_hat


def _project(problem: FlipProblem, x_hat: Array, A: Array, lead: Array, ties: int) -> tuple[Array, list[int]]:
    """The point closest to x on A (z - x_hat) + lead = 0 for the first ``ties`` rows and >= 0 for the others.

    A few rounds of an active-set method, since the result only guides a walk; also the rows that hold with equality.
    """
    use = list(range(ties))
    z = problem.x
    for _ in range(2 * len(A)):
        M = A[use]
        scaled = M / problem.weights
        lam = np.linalg.lstsq(scaled @ M.T, M @ (x_hat - problem.x) - lead[use], rcond=None)[0]
        z = problem.x + scaled.T @ lam
        pulling = [row for row, value in zip(use, lam, strict=True) if row >= ties and value < 0]
        if pulling:
            use = [row for row in use if row not in pulling]
            continue
        values = A @ (z - x_hat) + lead
        violated = [row for row in range(ties, len(A)) if values[row] < -1e-9 and row not in use]
        if not violated:
            break
        use.append(min(violated, key=lambda row: values[row]))
    return z, use


def boundary_point(problem: FlipProblem, sample: Array) -> Array | None:
    """Where the line from x to ``sample`` crosses y_i = y_j, by bisection; None if it does not."""
    row = problem.goal.T[0]

    def lead(t: float) -> float:
        return float(row @ problem.network.logits(problem.x + t * (sample - problem.x)))

    low, high = 0.0, 1.0
    side = np.sign(lead(low))
    if side == 0:
        return problem.x.copy()
    if np.sign(lead(high)) == side:
        return None
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sign(lead(middle)) == side else (low, middle)
    return problem.clip(problem.x + high * (sample - problem.x))
