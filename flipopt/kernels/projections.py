"""One-sided projections of many problems at once, each by itself: no result depends on the other problems.

With the rows A (slots, n) of a problem, of which those in ``use`` count, the multipliers lam solve the dual

    minimise lam . K lam / 2 - q . lam   such that   lam_k >= 0, but for those of equations, which are free

of a projection onto {d: A d >= -c}, or of the gradient onto the cone of the rows. K = A H A^T is of the size of the few
slots, so Lawson and Hanson's active-set method (Solving Least Squares Problems, 1974, chapter 23) in a compiled loop
costs less than one call of LAPACK would.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import compiled_sums, inline

RIDGE = 1e-13
"""Added to the diagonal, relative to it and for every row: rows may be linearly dependent, and of any size."""
WRONG = 1e-11
"""A row is violated by more than this, relative to the square root of its diagonal, before it is made active."""
ROUNDS = 3
"""In which features at their bounds and multipliers are brought to agree."""


@inline
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@inline
def _dot_where(a, b, mask):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k] if mask[k] else 0.0
    return total


@inline
def _add(share, a, b):  # type: ignore[no-untyped-def]
    """b += share a."""
    for k in range(len(a)):
        b[k] += share * a[k]


@inline
def _solve(A, r, m):  # type: ignore[no-untyped-def]
    """A^-1 r for the leading m by m part of the positive definite A, by elimination in place."""
    for k in range(m):
        for row in range(k + 1, m):
            factor = A[row, k] / A[k, k]
            for column in range(k, m):
                A[row, column] -= factor * A[k, column]
            r[row] -= factor * r[k]
    for k in range(m - 1, -1, -1):
        for column in range(k + 1, m):
            r[k] -= A[k, column] * r[column]
        r[k] /= A[k, k]


@inline
def _target(K, q, active, A, r, index, target):  # type: ignore[no-untyped-def]
    """The minimiser over the active rows alone, zero elsewhere."""
    m = np.int64(0)
    for k in range(len(q)):
        target[k] = 0.0
        if active[k]:
            index[m] = k
            m += 1
    for a in range(m):
        r[a] = q[index[a]]
        for b in range(m):
            A[a, b] = K[index[a], index[b]]
        A[a, a] += RIDGE * m * A[a, a] + 1e-300
    _solve(A, r, m)
    for a in range(m):
        target[index[a]] = r[a]


@inline
def _one_sided(K, q, use, free, lam):  # type: ignore[no-untyped-def]
    """Write the minimising lam (slots,) of one problem; ``free`` (slots,) may have either sign."""
    rows = len(q)
    A, r, target = np.empty((rows, rows)), np.empty(rows), np.empty(rows)
    index, active = np.empty(rows, np.int64), np.empty(rows, np.bool_)
    for k in range(rows):
        lam[k] = 0.0
        active[k] = use[k] and free[k]
    for _ in range(3 * rows + 3):
        _target(K, q, active, A, r, index, target)
        # As far towards it as every multiplier stays nonnegative; the row that stops it is dropped.
        share, stops = 1.0, -1
        for k in range(rows):
            if active[k] and not free[k] and target[k] < 0:
                t = lam[k] / (lam[k] - target[k])
                if stops < 0 or t < share:
                    share, stops = t, k
        for k in range(rows):
            lam[k] += share * (target[k] - lam[k])
        if stops >= 0:
            active[stops] = False
            lam[stops] = 0.0
            continue
        worst, entering = WRONG, -1
        for k in range(rows):
            if use[k] and not active[k]:
                pull = q[k]
                for other in range(rows):
                    if active[other]:  # what is not used may be anything
                        pull -= K[k, other] * lam[other]
                pull /= np.sqrt(K[k, k]) + 1e-300
                if pull > worst:
                    worst, entering = pull, k
        if entering < 0:
            break
        active[entering] = True


@inline
def _gram(A, use, mask, K):  # type: ignore[no-untyped-def]
    """K = A A^T over the features in ``mask``, of the rows in ``use``; others are left."""
    for i in range(len(A)):
        for j in range(i + 1):
            if use[i] and use[j]:
                K[i, j] = K[j, i] = _dot_where(A[i], A[j], mask)


@compiled_sums
def multipliers(K: Array, q: Array, use: Array, free: Array, lam: Array) -> None:
    """Write lam for K (problems, slots, slots), q and ``use`` (problems, slots), ``free`` (slots,)."""
    for b in range(len(q)):
        _one_sided(K[b], q[b], use[b], free, lam[b])


@compiled_sums
def model_multipliers(
    A: Array, HA: Array, Hr: Array, c: Array, use: Array, free: Array, lam: Array, step: Array
) -> None:
    """Minimisers d = H (lam A - r) of quadratic models under A d + c = 0 (rows in ``free``) or >= 0.

    A and HA = H A^T are (problems, slots, n), Hr (problems, n), c and ``use`` (problems, slots), ``free`` (slots,); lam
    (problems, slots) and the step d (problems, n) are written.
    """
    slots = c.shape[1]
    K, q = np.empty((slots, slots)), np.zeros(slots)
    for b in range(len(c)):
        for i in range(slots):
            if use[b, i]:
                q[i] = _dot(A[b, i], Hr[b]) - c[b, i]
                for j in range(slots):
                    if use[b, j]:
                        K[i, j] = _dot(A[b, i], HA[b, j])
        _one_sided(K, q, use[b], free, lam[b])
        for e in range(len(Hr[b])):
            step[b, e] = -Hr[b, e]
        for i in range(slots):
            if lam[b, i] != 0.0:
                _add(lam[b, i], HA[b, i], step[b])


@compiled_sums
def cone_distances(
    A: Array, r: Array, use: Array, free: Array, low: Array, high: Array, lam: Array, moving: Array, left: Array
) -> None:
    """What is left of r after its projection onto the cone of the rows in ``use`` and of the bounds.

    A is (problems, slots, n), r (problems, n), ``use`` (problems, slots), ``free`` (slots,). ``low`` and ``high``
    (problems, n) tell which features are at a bound, of length 0 where there are none; such a feature is held if
    r - lam A would push it out. ``moving`` (problems, n), the features that may move, loses those that are held.
    Written are lam (problems, slots) and ``left``, r - lam A in the features that move, (problems, n).
    """
    slots, bounded = use.shape[1], len(low) > 0
    K, q = np.empty((slots, slots)), np.zeros(slots)
    for b in range(len(r)):
        for last in range(ROUNDS, -1, -1):
            for i in range(slots):
                if use[b, i]:
                    q[i] = _dot_where(A[b, i], r[b], moving[b])
            _gram(A[b], use[b], moving[b], K)
            _one_sided(K, q, use[b], free, lam[b])
            for e in range(len(r[b])):
                left[b, e] = r[b, e]
            for i in range(slots):
                if lam[b, i] != 0.0:
                    _add(-lam[b, i], A[b, i], left[b])
            changed = False
            if bounded and last > 0:
                for e in range(len(r[b])):
                    if low[b, e] or high[b, e]:
                        moves = not ((low[b, e] and left[b, e] > 0) or (high[b, e] and left[b, e] < 0))
                        changed = changed or moves != moving[b, e]
                        moving[b, e] = moves
            if not changed:
                break
        for e in range(len(r[b])):
            if not moving[b, e]:
                left[b, e] = 0.0


@compiled_sums
def shortest_steps(
    A: Array, c: Array, use: Array, free: Array, moving: Array, u: Array, lower: Array, upper: Array, step: Array
) -> None:
    """The shortest steps (problems, n) to where A d + c = 0 (rows in ``free``) or >= 0, features stopped at bounds.

    A is (problems, slots, n), c and ``use`` (problems, slots), ``free`` (slots,), ``moving`` and u (problems, n). The
    bounds are (n,), of length 0 where there are none. Where features stop, the others make up for it.
    """
    slots, n, bounded = c.shape[1], u.shape[1], len(lower) > 0
    K, q, lam = np.empty((slots, slots)), np.zeros(slots), np.empty(slots)
    mask = np.empty(n, np.bool_)
    for b in range(len(c)):
        for e in range(n):
            mask[e], step[b, e] = moving[b, e], 0.0
        for last in range(ROUNDS, -1, -1):
            for i in range(slots):
                if use[b, i]:
                    q[i] = -c[b, i] - _dot(A[b, i], step[b])  # what is stopped has its part of the step already
            _gram(A[b], use[b], mask, K)
            _one_sided(K, q, use[b], free, lam)
            for i in range(slots):
                if lam[i] != 0.0:
                    for e in range(n):
                        step[b, e] += lam[i] * A[b, i, e] if mask[e] else 0.0
            if not bounded:
                break
            stopped = False
            for e in range(n):
                inside = min(max(u[b, e] + step[b, e], lower[e]), upper[e])
                if inside != u[b, e] + step[b, e]:
                    stopped = stopped or mask[e]
                    mask[e], step[b, e] = False, inside - u[b, e]
            if not stopped or last == 0:
                break
            for e in range(n):
                if mask[e]:
                    step[b, e] = 0.0


@compiled_sums
def combine(lam: Array, A: Array, out: Array) -> None:
    """lam A (problems, n) for lam (problems, slots) and A (problems, slots, n)."""
    for b in range(len(lam)):
        for e in range(A.shape[2]):
            out[b, e] = 0.0
        for k in range(lam.shape[1]):
            if lam[b, k] != 0.0:
                _add(lam[b, k], A[b, k], out[b])


@compiled_sums
def products(A: Array, use: Array, d: Array, out: Array) -> None:
    """A d (problems, slots) for A (problems, slots, n) and d (problems, n), of the rows in ``use``; 0 for others."""
    for b in range(len(d)):
        for k in range(A.shape[1]):
            out[b, k] = _dot(A[b, k], d[b]) if use[b, k] else 0.0
