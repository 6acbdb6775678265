"""Directions to flips, and angles between them."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.results import FlipTable

SAME = 1e-6
"""Relative difference of two distances that may come from rounding."""


def angles(U: Array, V: Array) -> Array:
    """Between the rows of U and V (rows, n), in degrees, (rows,); NaN where one is 0. Exact for small angles too."""
    lengths = np.linalg.norm(U, axis=1, keepdims=True), np.linalg.norm(V, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        u, v = U / lengths[0], V / lengths[1]
    return np.asarray(np.degrees(2 * np.arctan2(np.linalg.norm(u - v, axis=1), np.linalg.norm(u + v, axis=1))))


def changes(flips: FlipTable, X: Array) -> Array:
    """x_hat - x of every entry, (entries, n); raise where their distances are not those of the 2-norm."""
    D = flips.x - X[flips.row]
    off = ~np.isclose(np.linalg.norm(D, axis=1), flips.distance, rtol=SAME, atol=0)
    if off.any():
        at = int(np.flatnonzero(off)[0])
        raise InputError(
            f"flips: expected distances in the 2-norm from X, found {flips.distance[at]:.6g} where the points of row "
            f"{flips.row[at]} are {np.linalg.norm(D[at]):.6g} apart"
        )
    return np.asarray(D)
