"""Verified first, then nearer: the one rule by which results are compared."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array


def better(success: Array, distance: Array, than_success: Array, than_distance: Array) -> Array:
    """Where one result is better than another, as a mask; distances may be NaN where there is no point."""
    distance, than_distance = (np.nan_to_num(d, nan=np.inf) for d in (distance, than_distance))
    return np.where(success == than_success, distance < than_distance, success)


def best_first(success: Array, distance: Array, groups: Array | None = None) -> Array:
    """The order of results, (k,) indices: by groups if there are any, in a group the best first."""
    keys = (np.nan_to_num(distance, nan=np.inf), ~np.asarray(success, dtype=bool))
    return np.lexsort(keys if groups is None else (*keys, groups))
