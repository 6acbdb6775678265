"""Weights from data: what counts as the same change of two features of different units."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats
from flipopt.common.errors import InputError

NORMAL_QUARTILES = 1.3489795003921634
"""Distance of the quartiles of a normal distribution, in standard deviations."""


def scale_of(X: ArrayLike) -> Array:
    """Weights (n_inputs,) from data X (rows, n_inputs), 1 / spread^2: distances then count in spreads.

    The spread is that of the quartiles, as a standard deviation, so that a few large incomes do not count; the standard
    deviation itself where the quartiles are equal; the distance of the two values of a column that has only two, such
    as one of a group of which exactly one is 1; and the size of the value, or 1, in a column that is constant.
    """
    array = as_floats(X, "X").astype(np.float64)
    if array.ndim != 2 or len(array) == 0:
        raise InputError(f"X: expected shape (rows, n_inputs) with at least one row, found {array.shape}")
    return np.array([1 / _spread(column) ** 2 for column in array.T])


def _spread(column: Array) -> float:
    low, high = float(column.min()), float(column.max())
    if low == high:
        return abs(low) or 1.0
    if ((column == low) | (column == high)).all():
        return high - low
    first, third = np.quantile(column, (0.25, 0.75))
    return float((third - first) / NORMAL_QUARTILES or column.std())
