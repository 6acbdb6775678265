"""Lower and upper bounds as arguments."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import InputError


def pair_of(bounds: tuple[ArrayLike | None, ArrayLike | None] | None) -> tuple[ArrayLike, ArrayLike]:
    """Lower and upper bounds as they were given, infinite where they were not."""
    if bounds is None:
        return -np.inf, np.inf
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InputError(f"bounds: expected a pair (lower, upper), found {type(bounds).__name__}")
    low, high = bounds
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def bounds_of(
    lower: ArrayLike, upper: ArrayLike, rows: int, names: tuple[str, str] = ("lower", "upper")
) -> tuple[Array, Array]:
    """Two (rows,) arrays with lower <= upper; infinities are allowed, NaN is not."""
    pair = []
    for value, name in ((lower, names[0]), (upper, names[1])):
        try:
            array = np.asarray(value, dtype=np.float64)
            array = np.broadcast_to(array, (rows,)).copy()
        except (TypeError, ValueError):
            raise InputError(f"{name}: expected a number or {rows} of them, found {np.shape(value)}") from None
        if np.isnan(array).any():
            raise InputError(f"{name}: expected numbers, found NaN at index {int(np.argmax(np.isnan(array)))}")
        pair.append(array)
    crossed = pair[0] > pair[1]
    if crossed.any():
        k = int(np.argmax(crossed))
        raise InputError(f"{names[0]}: expected at most {names[1]}, found {pair[0][k]} > {pair[1][k]} at index {k}")
    return pair[0], pair[1]
