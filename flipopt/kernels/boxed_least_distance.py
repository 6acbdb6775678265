"""The point of a polyhedron and a box closest to x, by Newton's method on the dual.

    minimise |z - x|^2 / 2   such that   a_k . z = b_k or a_k . z >= b_k,   lower <= z <= upper

The multipliers lam of the few rows determine z = clip(x + A^T lam): the box costs nothing, however many of its bounds
are active. The dual is concave, piecewise quadratic and of the size of the rows, so that Newton's method with a line
search ends after finitely many steps (L. Qi and J. Sun, A nonsmooth version of Newton's method, Mathematical
Programming 58 (1993), 353-367). A step is a quadratic program in lam >= 0, solved by the active sets of C. L. Lawson
and R. J. Hanson, Solving least squares problems (Prentice-Hall 1974), chapter 23.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import inline
from flipopt.kernels.vectors import add, clear, clip, copy, dot, scale, squared_distance

STEPS = 100
"""Of Newton's method and of a line search; they take a few."""
ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Of z, relative to its size and to that of the multipliers that it is made of."""
LOOSEST = 1e-10
"""Violation of a unit row, relative to the size of z, above which no rounding is an excuse."""
PROXIMAL = 1e-11
"""Added to the Hessian's diagonal, relative to unit rows: rows may be linearly dependent."""
NO_GAIN = 1e-15
"""Slope of the dual in a multiplier, relative to the largest of the rows, that is none."""
FLAT = 1e-3
"""Slope at the end of a line search, relative to that at its beginning."""


class Dual(NamedTuple):
    """The rows and what a Newton step needs.

    Attributes
    ----------
    b
        Right-hand sides of the rows, (capacity,); the normals are in :class:`~flipopt.kernels.least_distance.Active`.
    H, L
        A A^T over the features inside the box, and Cholesky factors of its part that is used, (capacity, capacity).
    residual, linear, target, before
        b - A z, the linear part of the model, its solution, and the feasible point before it, (capacity,).
    passive, used
        Which multipliers may be other than 0, and their indices, (capacity,).
    p, q
        x + A^T lam and A^T times the step, (n,).
    inside
        1 for the features that are inside the box, 0 for others, (n,).
    """

    b: Array
    H: Array
    L: Array
    residual: Array
    linear: Array
    target: Array
    before: Array
    passive: Array
    used: Array
    p: Array
    q: Array
    inside: Array


@inline
def no_dual(capacity, n):  # type: ignore[no-untyped-def]
    """Room for up to ``capacity`` rows."""
    return Dual(
        b=np.empty(capacity),
        H=np.empty((capacity, capacity)),
        L=np.empty((capacity, capacity)),
        residual=np.empty(capacity),
        linear=np.empty(capacity),
        target=np.empty(capacity),
        before=np.empty(capacity),
        passive=np.empty(capacity, np.bool_),
        used=np.empty(capacity, np.int64),
        p=np.empty(n),
        q=np.empty(n),
        inside=np.ones(n),
    )


@inline
def begin(x, lower, upper, active, dual):  # type: ignore[no-untyped-def]
    """No rows, and z = clip(x)."""
    _primal(np.int64(0), x, lower, upper, active, dual)


@inline
def without_idle_rows(m, ties, active, dual):  # type: ignore[no-untyped-def]
    """Take the inequalities without a multiplier away; returns how many rows are left."""
    k = ties
    while k < m:
        if active.lam[k] > 0.0:
            k += 1
            continue
        active.held[active.ids[k]] = False
        m -= 1
        active.ids[k], active.lam[k], dual.b[k] = active.ids[m], active.lam[m], dual.b[m]
        copy(active.normals[m], active.normals[k])
        for other in range(m):
            dual.H[k, other] = dual.H[other, k] = dual.H[m, other]
        dual.H[k, k] = dual.H[m, m]
    return m


@inline
def append_row(m, chosen, b, lam, active, dual):  # type: ignore[no-untyped-def]
    """Add the row a . z >= b to m others."""
    active.ids[m], active.lam[m], active.held[chosen], dual.b[m] = chosen, lam, True, b
    copy(active.a, active.normals[m])
    for k in range(m + 1):
        total = 0.0
        for e in range(len(active.a)):
            total += active.normals[k, e] * active.a[e] * dual.inside[e]
        dual.H[k, m] = dual.H[m, k] = total


@inline
def maximise_dual(m, ties, x, lower, upper, cap, active, dual):  # type: ignore[no-untyped-def]
    """Newton's method for the m rows, of which the first ``ties`` are equations, from ``active.lam``.

    The solution is left in ``active``. Returns whether there is one with an objective of at most ``cap``.
    """
    z, lam, residual, stuck = active.z, active.lam, dual.residual, False
    for _ in range(STEPS):
        _primal(m, x, lower, upper, active, dual)
        violation, sum_lam, value = 0.0, 0.0, squared_distance(z, x) / 2
        for k in range(m):
            residual[k] = dual.b[k] - dot(active.normals[k], z)
            either = k < ties or lam[k] > 0.0
            violation = max(violation, abs(residual[k]) if either else residual[k])
            sum_lam += abs(lam[k])
            value += lam[k] * residual[k]
        size = 1 + np.sqrt(dot(z, z))
        tolerance = min(ROUNDING * (size + sum_lam), LOOSEST * size)
        if violation <= (LOOSEST * size if stuck else tolerance):
            return True
        # The dual is a lower bound of every feasible objective.
        if stuck or not value <= cap * (1 + 1e-9) + tolerance:
            return False
        _model_solution(m, ties, lam, dual)
        t = _line_search(m, lower, upper, active, dual)
        for k in range(m):
            lam[k] += t * (dual.target[k] - lam[k])
            if k >= ties:
                lam[k] = max(lam[k], 0.0)
        stuck = t == 0.0  # rounding is all that is left
    return False


@inline
def _primal(m, x, lower, upper, active, dual):  # type: ignore[no-untyped-def]
    """p and z of the multipliers, and H of the features that are inside the box now."""
    p, inside, H, column = dual.p, dual.inside, dual.H, dual.linear
    copy(x, p)
    for k in range(m):
        if active.lam[k] != 0.0:
            add(active.lam[k], active.normals[k], p)
    clip(p, lower, upper, active.z)
    for e in range(len(p)):
        now = 1.0 if lower[e] < p[e] < upper[e] else 0.0
        if now != inside[e]:
            for k in range(m):
                column[k] = active.normals[k, e]
            for k in range(m):
                add((now - inside[e]) * column[k], column[:m], H[k])
            inside[e] = now


@inline
def _model_solution(m, ties, lam, dual):  # type: ignore[no-untyped-def]
    """The ``target`` that maximises the dual's quadratic model at lam, at least 0 except for equations."""
    linear, before, target, passive = dual.linear, dual.before, dual.target, dual.passive
    for k in range(m):
        linear[k] = dual.residual[k] + dot(dual.H[k, :m], lam) + PROXIMAL * lam[k]
        before[k], passive[k] = lam[k], k < ties or lam[k] > 0.0
    size = scale(linear, 0, m)
    for _ in range(5 * m):
        _passive_solution(m, dual)
        while _step_to_feasible(m, ties, dual):
            _passive_solution(m, dual)
        copy(target[:m], before)
        steepest, most = -1, NO_GAIN * size
        for k in range(m):
            if not passive[k]:
                gain = linear[k] - dot(dual.H[k, :m], target)
                if gain > most:
                    steepest, most = k, gain
        if steepest < 0:
            break
        passive[steepest] = True


@inline
def _step_to_feasible(m, ties, dual):  # type: ignore[no-untyped-def]
    """If the ``target`` has negative multipliers, go towards it until the first is 0; those become 0. Whether it is so.

    ``before`` is where the way begins, and where it ends.
    """
    before, target, passive, t = dual.before, dual.target, dual.passive, np.inf
    for k in range(ties, m):
        if passive[k] and target[k] <= 0.0:
            t = min(t, before[k] / max(before[k] - target[k], 1e-300))
    if t == np.inf:
        return False
    for k in range(m):
        ends = k >= ties and passive[k] and target[k] <= 0.0 and before[k] <= t * max(before[k] - target[k], 1e-300)
        before[k] = 0.0 if ends else before[k] + t * (target[k] - before[k])
        passive[k] = k < ties or (passive[k] and before[k] > 0.0)
        if not passive[k]:
            before[k] = 0.0
    return True


@inline
def _passive_solution(m, dual):  # type: ignore[no-untyped-def]
    """The ``target`` at which the model has no slope in the passive multipliers, by Cholesky; others are 0."""
    used, L, target, count = dual.used, dual.L, dual.target, 0
    for k in range(m):
        target[k] = 0.0
        if dual.passive[k]:
            used[count] = k
            count += 1
    for row in range(count):
        k = used[row]
        for column in range(row + 1):
            rest = dual.H[k, used[column]] - dot(L[row, :column], L[column, :column])
            if column < row:
                L[row, column] = rest / L[column, column]
            else:
                L[row, row] = np.sqrt(max(rest + PROXIMAL, PROXIMAL))
        target[k] = dual.linear[k]
        for column in range(row):
            target[k] -= L[row, column] * target[used[column]]
        target[k] /= L[row, row]
    for row in range(count - 1, -1, -1):
        k = used[row]
        for below in range(row + 1, count):
            target[k] -= L[below, row] * target[used[below]]
        target[k] /= L[row, row]


@inline
def _line_search(m, lower, upper, active, dual):  # type: ignore[no-untyped-def]
    """The t in [0, 1] at which the dual between lam and the target is largest, nearly: regula falsi (Illinois).

    Its slope gain - q . clip(p + t q) falls, linearly between the t at which a feature meets a bound.
    """
    p, q, gain = dual.p, dual.q, 0.0
    clear(q)
    for k in range(m):
        step = dual.target[k] - active.lam[k]
        if step != 0.0:
            add(step, active.normals[k], q)
            gain += step * dual.b[k]
    low, high, fall = 0.0, 1.0, _slope(1.0, gain, p, q, lower, upper)
    if fall >= 0.0:
        return 1.0
    rise = first = _slope(0.0, gain, p, q, lower, upper)
    last = 0
    for _ in range(STEPS if rise > 0.0 else 0):
        t = low + (high - low) * rise / (rise - fall)
        slope = _slope(t, gain, p, q, lower, upper)
        if abs(slope) <= FLAT * first:
            return t
        side = 1 if slope > 0.0 else -1
        if slope > 0.0:
            low, rise, fall = t, slope, fall / 2 if side == last else fall
        else:
            high, fall, rise = t, slope, rise / 2 if side == last else rise
        last = side
    return low


@inline
def _slope(t, gain, p, q, lower, upper):  # type: ignore[no-untyped-def]
    for k in range(len(p)):
        gain -= q[k] * min(max(p[k] + t * q[k], lower[k]), upper[k])
    return gain
