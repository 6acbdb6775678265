"""The compiled loops of :mod:`flipopt.solvers.batch.limited_memory`, imported where they are used."""

from __future__ import annotations

import numba
import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import SUMS, compiled_sums


@numba.njit(**SUMS)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled_sums
def two_loops(S: Array, Y: Array, rho: Array, learnt: Array, place: Array, wanted: Array, V: Array) -> None:
    """H v in place of every wanted v in V; see :class:`flipopt.solvers.batch.limited_memory.Memory` for the shapes."""
    pairs, n = S.shape[1], S.shape[2]
    shares = np.empty(pairs)
    for b in range(len(place)):
        p = place[b]
        count = min(learnt[p], pairs)
        for row in range(V.shape[1]):
            if not wanted[b, row]:
                continue
            v = V[b, row]
            for back in range(1, count + 1):
                k = (learnt[p] - back) % pairs
                share = rho[p, k] * _dot(S[p, k], v)
                for e in range(n):
                    v[e] -= share * Y[p, k, e]
                shares[k] = share
            for back in range(count, 0, -1):
                k = (learnt[p] - back) % pairs
                share = shares[k] - rho[p, k] * _dot(Y[p, k], v)
                for e in range(n):
                    v[e] += share * S[p, k, e]


@compiled_sums
def learn(
    S: Array, Y: Array, rho: Array, learnt: Array, place: Array, rows: Array, s: Array, y: Array, least: float
) -> None:
    """Store the damped pairs of the problems in the mask ``rows``, each over the oldest of its problem."""
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
