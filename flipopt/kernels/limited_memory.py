"""Limited-memory BFGS of many problems at once (Nocedal, Math. Comp. 35, 1980), each by itself.

S, Y (all problems, pairs, n) and rho = 1 / s . y (all problems, pairs) hold the pairs of every problem in a ring:
``learnt`` (all problems,) counts them, the newest is at (learnt - 1) mod pairs. ``place`` (problems,) tells where the
problems that are still there have theirs.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import compiled_sums, inline


@inline
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@inline
def _two_loops(S, Y, rho, learnt, shares, v):  # type: ignore[no-untyped-def]
    """H v in place of v (n,), with the pairs of one problem; the base is the identity."""
    pairs, n = S.shape
    count = min(learnt, pairs)
    for back in range(1, count + 1):
        k = (learnt - back) % pairs
        share = rho[k] * _dot(S[k], v)
        for e in range(n):
            v[e] -= share * Y[k, e]
        shares[k] = share
    for back in range(count, 0, -1):
        k = (learnt - back) % pairs
        share = shares[k] - rho[k] * _dot(Y[k], v)
        for e in range(n):
            v[e] += share * S[k, e]


@compiled_sums
def inverse(
    S: Array, Y: Array, rho: Array, learnt: Array, place: Array, A: Array, use: Array, r: Array, HA: Array, Hr: Array
) -> None:
    """Write H A^T (problems, slots, n) for the rows of A in ``use`` (problems, slots), and H r (problems, n)."""
    shares = np.empty(S.shape[1])
    for b in range(len(place)):
        p = place[b]
        for e in range(r.shape[1]):
            Hr[b, e] = r[b, e]
        _two_loops(S[p], Y[p], rho[p], learnt[p], shares, Hr[b])
        for row in range(A.shape[1]):
            if use[b, row]:
                for e in range(r.shape[1]):
                    HA[b, row, e] = A[b, row, e]
                _two_loops(S[p], Y[p], rho[p], learnt[p], shares, HA[b, row])


@compiled_sums
def learn(
    S: Array, Y: Array, rho: Array, learnt: Array, place: Array, rows: Array, s: Array, y: Array, least: float
) -> None:
    """Store the pairs s, y (problems, n) of the problems in the mask ``rows``, each over the oldest of its problem.

    A pair with s . y below ``least`` times s . s is damped, so that the matrix stays positive definite (Powell, in
    Numerical Analysis, Dundee 1977).
    """
    for b in range(len(place)):
        if not rows[b]:
            continue
        p, ss, sy = place[b], _dot(s[b], s[b]), _dot(s[b], y[b])
        share = (1 - least) * ss / max(ss - sy, 1e-300) if sy < least * ss else 1.0
        sy = share * sy + (1 - share) * ss
        if not (sy > 0 and np.isfinite(sy)):
            continue
        k = learnt[p] % S.shape[1]
        for e in range(S.shape[2]):
            S[p, k, e] = s[b, e]
            Y[p, k, e] = share * y[b, e] + (1 - share) * s[b, e]
        rho[p, k] = 1 / sy
        learnt[p] += 1


@compiled_sums
def gradient_changes(
    lam: Array, row: Array, use: Array, A: Array, row_after: Array, use_after: Array, A_after: Array, change: Array
) -> None:
    """lam (A after - A), (problems, n): rows are matched by the classes that they belong to, in ``row``."""
    for b in range(len(lam)):
        for e in range(A.shape[2]):
            change[b, e] = 0.0
        for k in range(lam.shape[1]):
            if not use[b, k] or lam[b, k] == 0.0:
                continue
            for e in range(A.shape[2]):
                change[b, e] -= lam[b, k] * A[b, k, e]
            for other in range(lam.shape[1]):
                if use_after[b, other] and row_after[b, other] == row[b, k]:
                    for e in range(A.shape[2]):
                        change[b, e] += lam[b, k] * A_after[b, other, e]
