"""The point of a polyhedron closest to a given one, by Newton's method on the dual.

    minimise |z - x|^2 / 2   such that   A z = b or A z >= b, row by row,   lower <= z <= upper

The rows' multipliers lam determine z = clip(x + A^T lam): the box costs nothing, however many bounds are active. The
dual is concave and piecewise quadratic in lam, of the size of the few rows, so that Newton's method with an exact line
search ends after finitely many steps at an exact solution.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array

STEPS = 100
ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Of z, relative to its size and to that of the multipliers that it is made of."""
LOOSEST = 1e-10
"""Violation of a unit row, relative to the size of z, above which no rounding is an excuse."""
PROXIMAL = 1e-11
"""Added to the Hessian's diagonal, relative to unit rows: rows may be linearly dependent."""


def least_distance(
    x: Array,
    A: Array,
    b: Array,
    equations: Array,
    lower: Array,
    upper: Array,
    lam: Array,
    cap: float = np.inf,
) -> tuple[Array, Array] | None:
    """z (n,) and lam (rows,), or None if there is no such point with an objective of at most ``cap``, or none is found.

    ``lam`` is where to start, at least 0 except for ``equations`` (rows,) bool.
    """
    sizes = np.linalg.norm(A, axis=1)
    sizes[sizes == 0] = 1.0
    A, b, lam = A / sizes[:, None], b / sizes, lam * sizes
    stuck = False
    for _ in range(STEPS):
        p = x + lam @ A
        z = np.clip(p, lower, upper)
        r = b - A @ z  # the gradient of the dual
        size = 1 + float(np.linalg.norm(z))
        violation = float(np.where(equations | (lam > 0), np.abs(r), r).max(initial=0.0))
        tolerance = min(ROUNDING * (size + float(np.abs(lam).sum())), LOOSEST * size)
        if violation <= (LOOSEST * size if stuck else tolerance):
            return z, lam / sizes
        if stuck or np.sum((z - x) ** 2) / 2 + lam @ r > cap * (1 + 1e-9) + tolerance:
            return None  # the dual is a lower bound of every feasible objective
        inside = (p > lower) & (p < upper)
        H = A[:, inside] @ A[:, inside].T + PROXIMAL * np.eye(len(b))
        step = _nonnegative(H, r + H @ lam, equations, lam) - lam
        t = _line_search(p, step @ A, float(step @ b), lower, upper)
        lam = np.where(equations, lam + t * step, np.maximum(lam + t * step, 0.0))
        stuck = t == 0  # rounding is all that is left
    return None


def _nonnegative(H: Array, c: Array, equations: Array, lam: Array) -> Array:
    """The lam that maximises c . lam - lam . H lam / 2, at least 0 except for ``equations``: Lawson and Hanson."""
    passive = equations | (lam > 0)
    for _ in range(5 * len(c)):
        while True:
            rows = np.flatnonzero(passive)
            target = np.zeros_like(c)
            target[rows] = np.linalg.solve(H[np.ix_(rows, rows)], c[rows])
            out = passive & ~equations & (target <= 0)
            if not out.any():
                break
            ratios = np.full(len(c), np.inf)
            ratios[out] = lam[out] / np.maximum(lam[out] - target[out], 1e-300)
            lam = lam + ratios.min() * (target - lam)
            lam[ratios <= ratios.min()] = 0
            passive = equations | (passive & (lam > 0))
            lam[~passive] = 0
        lam = target
        gradient = np.where(passive, 0.0, c - H @ lam)
        if gradient.max(initial=0.0) <= 1e-15 * max(1.0, float(np.abs(c).max())):
            break
        passive[int(np.argmax(gradient))] = True
    return lam


def _line_search(p: Array, q: Array, gain: float, lower: Array, upper: Array) -> float:
    """The t in [0, 1] at which the dual along lam + t d is largest; q = A^T d, gain = b . d, p = x + A^T lam.

    Its slope gain - q . clip(p + t q) falls, linearly between the t at which a component meets a bound.
    """

    def slope(t: float) -> float:
        return float(gain - q @ np.clip(p + t * q, lower, upper))

    if slope(1.0) >= 0:
        return 1.0
    moving = q != 0
    meets = np.concatenate([(edge[moving] - p[moving]) / q[moving] for edge in (lower, upper)])
    corners = np.concatenate([[0.0], np.sort(meets[(meets > 0) & (meets < 1)]), [1.0]])
    low, high = 0, len(corners) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(corners[middle]) >= 0 else (low, middle)
    rise, fall = slope(corners[low]), slope(corners[high])
    if rise <= 0:
        return float(corners[low])
    return float(corners[low] + (corners[high] - corners[low]) * rise / (rise - fall))
