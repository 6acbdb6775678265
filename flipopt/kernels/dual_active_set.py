"""A strictly convex quadratic program by its dual, with an active set that another program has left.

    minimise |z|^2 / 2   such that   s = b + G^T z >= 0

has the dual problem: minimise lam . M lam / 2 + lam . b over lam >= 0 with M = G^T G, and z = G lam. The multipliers
that may be positive are a working set. Where the equations of the working set have a negative solution, the first
multiplier to reach 0 on the way leaves it; where they have none, the constraint that is violated the most enters. One
that depends on the working set gives a direction in which the dual falls for ever (there is no feasible point), or
takes the place of another.

D. Goldfarb and A. Idnani, A numerically stable dual method for solving strictly convex quadratic programs, Mathematical
Programming 27 (1983), 1-33; D. Arnstroem, A. Bemporad and D. Axehill, A dual active-set solver for embedded quadratic
programming using recursive LDL^T updates, IEEE Transactions on Automatic Control 67 (2022), 4362-4369.
"""

from __future__ import annotations

import numpy as np

from flipopt.kernels.compiled import compiled_sums, inline
from flipopt.kernels.vectors import add, dot

OPTIMAL, INFEASIBLE, LIMIT = 1, -1, 0
"""What :func:`solve_dual` returns."""
DEPENDENT = 1e-11
"""Part of a constraint's M_kk that the working set leaves, below which the constraint counts as dependent."""


@compiled_sums
def solve_dual(M, b, tolerance, most, lam, working, size, L, s):  # type: ignore[no-untyped-def]
    """Solve from the working set ``working[:size[0]]`` and multipliers ``lam`` >= 0, which are 0 outside it.

    Parameters
    ----------
    M, b
        (m, m) with a diagonal of 1, and (m,).
    tolerance
        Violation -s that is none.
    most
        Steps, at most.
    lam, working, size
        (m,), (m,) and (1,): in place. For an infeasible program lam is the direction, of which M lam = 0.
    L, s
        Room for a Cholesky factor (m, m), and the slacks (m,).
    """
    k = _factor(M, working, size[0], lam, L)
    star, p = np.empty(len(b)), np.empty(len(b))
    for _ in range(most):
        for row in range(k):
            star[row] = -b[working[row]]
        _solve(L, k, star)
        t, stops = 1.0, -1
        for row in range(k):
            before = lam[working[row]]
            if star[row] < 0.0 and before <= t * (before - star[row]):
                t, stops = before / (before - star[row]), row
        for row in range(k):
            lam[working[row]] += t * (star[row] - lam[working[row]])
        if stops >= 0:
            k = _leave(M, working, k, stops, lam, L)
            continue
        for j in range(len(b)):
            s[j] = b[j]
        for row in range(k):
            add(lam[working[row]], M[working[row]], s)
        for row in range(k):
            s[working[row]] = 0.0
        j = int(np.argmin(s))
        if s[j] >= -tolerance:
            size[0] = k
            return OPTIMAL
        for row in range(k):
            star[row] = M[j, working[row]]
        _forward(L, k, star)
        left = M[j, j] - dot(star[:k], star[:k])
        if left > DEPENDENT * M[j, j]:
            for row in range(k):
                L[k, row] = star[row]
            L[k, k], working[k], lam[j] = np.sqrt(left), j, 0.0
            k += 1
            continue
        for row in range(k):
            p[row] = -star[row]
        _backward(L, k, p)
        t, stops = np.inf, -1
        for row in range(k):
            if p[row] < 0.0 and lam[working[row]] < -t * p[row]:
                t, stops = -lam[working[row]] / p[row], row
        if stops < 0:
            for row in range(len(b)):
                lam[row] = 0.0
            for row in range(k):
                lam[working[row]] = p[row]
            lam[j], size[0] = 1.0, k
            return INFEASIBLE
        for row in range(k):
            lam[working[row]] = max(0.0, lam[working[row]] + t * p[row])
        k = _leave(M, working, k, stops, lam, L)
        working[k], lam[j] = j, t
        k = _factor_from(M, working, k, k + 1, lam, L)
    size[0] = k
    return LIMIT


@inline
def _factor(M, working, count, lam, L):  # type: ignore[no-untyped-def]
    """L of the working set; constraints that depend on others leave it. Returns how many are left."""
    return _factor_from(M, working, 0, count, lam, L)


@inline
def _factor_from(M, working, first, count, lam, L):  # type: ignore[no-untyped-def]
    """The same where the rows before ``first`` have their factor already."""
    k = first
    for place in range(first, count):
        j = working[place]
        for column in range(k):
            L[k, column] = (M[j, working[column]] - dot(L[k, :column], L[column, :column])) / L[column, column]
        left = M[j, j] - dot(L[k, :k], L[k, :k])
        if left > DEPENDENT * M[j, j]:
            L[k, k], working[k] = np.sqrt(left), j
            k += 1
        else:
            lam[j] = 0.0
    return k


@inline
def _leave(M, working, k, place, lam, L):  # type: ignore[no-untyped-def]
    """Take a constraint out of the working set, and factorise what comes after it anew."""
    lam[working[place]] = 0.0
    for other in range(place, k - 1):
        working[other] = working[other + 1]
    return _factor_from(M, working, place, k - 1, lam, L)


@inline
def _forward(L, k, x):  # type: ignore[no-untyped-def]
    """x = L^-1 x."""
    for row in range(k):
        x[row] = (x[row] - dot(L[row, :row], x[:row])) / L[row, row]


@inline
def _backward(L, k, x):  # type: ignore[no-untyped-def]
    """x = L^-T x."""
    for row in range(k - 1, -1, -1):
        x[row] /= L[row, row]
        add(-x[row], L[row, :row], x[:row])


@inline
def _solve(L, k, x):  # type: ignore[no-untyped-def]
    _forward(L, k, x)
    _backward(L, k, x)
