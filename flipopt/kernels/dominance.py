"""The matrices of bounds/smooth.py that dominate polynomials: all products of their elements in one pass."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import compiled


@compiled
def _polynomials(G: Array, K: Array, shares: Array, F: Array, Y: Array) -> None:
    order, width = F.shape[1], G.shape[1]
    t = np.empty(width)
    for row in range(len(G)):
        for i in range(width):
            y = Y[row, i]
            for j in range(width):
                t[j] = shares[row, 0] * G[row, i, j] + shares[row, 1] * K[row, i, j]
                y[j] = F[row, order - 1, i] * F[row, order - 1, j]
            for k in range(order - 2, 0, -1):
                for j in range(width):
                    y[j] = y[j] * t[j] + F[row, k, i] * F[row, k, j]
            for j in range(width):
                y[j] = y[j] * t[j] * t[j] + F[row, 0, i] * F[row, 0, j] * K[row, i, j]


def polynomials(G: Array, K: Array, shares: Array, F: Array) -> Array:
    """Y = F_1 o K + sum_(k > 1) F_k o T o ... o T, k times, with T = shares_0 G + shares_1 K and F_k = f_k f_k^T.

    For G, K (rows, width, width), shares (rows, 2) and f as (rows, order, width), order of at least 2.
    """
    Y = np.empty_like(K)
    _polynomials(G, np.ascontiguousarray(K), shares, np.ascontiguousarray(F), Y)
    return Y
