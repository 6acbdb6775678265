"""The compiled loop of :mod:`flipopt.kernels.projections`, imported where it is used."""

from __future__ import annotations

import numba
import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import OPTIONS, compiled

RIDGE = 1e-13
"""Added to the diagonal, relative to the trace: rows may be linearly dependent."""
WRONG = 1e-11
"""A row is violated by more than this, relative to the square root of its diagonal, before it is made active."""


@numba.njit(**OPTIONS)
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


@numba.njit(**OPTIONS)
def _target(K, q, active, A, r, index, target):  # type: ignore[no-untyped-def]
    """The minimiser over the active rows alone, zero elsewhere."""
    m, trace = 0, 0.0
    for k in range(len(q)):
        target[k] = 0.0
        if active[k]:
            index[m] = k
            trace += K[k, k]
            m += 1
    for a in range(m):
        r[a] = q[index[a]]
        for b in range(m):
            A[a, b] = K[index[a], index[b]]
        A[a, a] += RIDGE * trace + 1e-300
    _solve(A, r, m)
    for a in range(m):
        target[index[a]] = r[a]


@compiled
def nonnegative_multipliers(K: Array, q: Array, use: Array, free: Array, lam: Array) -> None:
    """Write the multipliers of every problem to ``lam``; see ``multipliers`` for the shapes."""
    rows = q.shape[1]
    A, r, target = np.empty((rows, rows)), np.empty(rows), np.empty(rows)
    index, active = np.empty(rows, np.int64), np.empty(rows, np.bool_)
    for b in range(len(q)):
        for k in range(rows):
            active[k] = use[b, k] and free[k]
        for _ in range(3 * rows + 3):
            _target(K[b], q[b], active, A, r, index, target)
            # As far towards it as every multiplier stays nonnegative; the row that stops it is dropped.
            share, stops = 1.0, -1
            for k in range(rows):
                if active[k] and not free[k] and target[k] < 0:
                    t = lam[b, k] / (lam[b, k] - target[k])
                    if stops < 0 or t < share:
                        share, stops = t, k
            for k in range(rows):
                lam[b, k] += share * (target[k] - lam[b, k])
            if stops >= 0:
                active[stops] = False
                lam[b, stops] = 0.0
                continue
            worst, entering = WRONG, -1
            for k in range(rows):
                if use[b, k] and not active[k]:
                    pull = q[b, k]
                    for other in range(rows):
                        pull -= K[b, k, other] * lam[b, other]
                    pull /= np.sqrt(K[b, k, k]) + 1e-300
                    if pull > worst:
                        worst, entering = pull, k
            if entering < 0:
                break
            active[entering] = True
