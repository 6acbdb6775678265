"""Taylor series of erf(c(u) / sigma) for many neurons at once: the recurrences of bounds/series.py, in one pass."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import compiled
from flipopt.kernels.erf import erf_and_slope


@compiled
def _erf_series(C: Array, inverse_square: Array, slope: Array, V: Array) -> None:
    """With s = phi'(c): k s_k = -sum_j j (c^2 / sigma^2)_j s_(k - j), and k V_k = sum_j j C_j s_(k - j)."""
    order, width = C.shape[1] - 1, C.shape[2]
    squares, s = np.empty((order + 1, width)), np.empty((order + 1, width))
    for row in range(C.shape[0]):
        s[0] = slope[row]
        for k in range(1, order + 1):
            for n in range(width):
                squares[k, n] = C[row, 0, n] * C[row, k, n]
                s[k, n] = 0.0
                V[row, k, n] = 0.0
            for j in range(1, k + 1):
                for n in range(width):
                    squares[k, n] += C[row, j, n] * C[row, k - j, n]
            for n in range(width):
                squares[k, n] *= k * inverse_square[n]
            for j in range(1, k + 1):
                for n in range(width):
                    s[k, n] -= squares[j, n] * s[k - j, n]
                    V[row, k, n] += j * C[row, j, n] * s[k - j, n]
            for n in range(width):
                s[k, n] /= k
                V[row, k, n] /= k


def erf_series(C: Array, sigma: float | Array) -> Array:
    """The series V of erf(c / sigma) from that of c, (rows, order + 1, n) each, float64."""
    C = np.ascontiguousarray(C)
    V = np.empty_like(C)
    V[:, 0], slope = erf_and_slope(np.ascontiguousarray(C[:, 0]), sigma)
    _erf_series(C, np.full(C.shape[2], 1 / np.asarray(sigma) ** 2), slope, V)
    return V
