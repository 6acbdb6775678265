"""Which result is better: the verified first, then the nearer. A distance that is NaN is farther than any other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flipopt.common.checks import Array
from flipopt.results.result import FlipResult

SAME_DISTANCE = 1e-6
"""Two starts agree if their distances differ by less than this, relative."""


def order(success: Array, distance: Array) -> tuple[Array, Array]:
    """Keys for :func:`numpy.lexsort` that put the best of some entries, (entries,), first; equal ones stay in order."""
    return np.nan_to_num(distance, nan=np.inf), ~success


def better(success: Array, distance: Array, before: Array, distance_before: Array) -> Array:
    """Which entries are better than those ``before`` them in the same place, (entries,) bool; equal ones are not."""
    nearer = np.nan_to_num(distance, nan=np.inf) < np.nan_to_num(distance_before, nan=np.inf)
    return np.where(success == before, nearer, success)


def best_first(success: Array, distance: Array) -> Array:
    """Indices of some entries, the best first."""
    return np.lexsort(order(success, distance))


def best(results: Sequence[FlipResult]) -> FlipResult:
    """The best of several results; the first of equals."""
    success = np.array([result.success for result in results])
    distance = np.array([result.distance for result in results])
    return results[int(best_first(success, distance)[0])]
