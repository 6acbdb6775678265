"""What is asked of the outputs at the point sought: a flip between classes, or a given range of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number
from flipopt.common.errors import InputError
from flipopt.common.intervals import bounds_of


@dataclass(frozen=True, eq=False)
class Goal:
    """lower <= T o <= upper, for the outputs o (logits or probabilities) at x_hat.

    T is (rows, n_classes); a row with equal bounds is an equation. ``classes`` are those that tie, if it is a flip.
    """

    T: Array
    lower: Array
    upper: Array
    classes: tuple[int, ...] = ()

    @property
    def equations(self) -> Array:
        """Which rows are equations, (rows,) bool."""
        return np.asarray(self.lower == self.upper)


def flip(n_classes: int, classes: Sequence[int], margin: float = 0.0, beyond: float = 0.0) -> Goal:
    """Equal scores of all of ``classes``, and every other class at least ``margin`` below: constraints (3) and (4).

    With ``beyond`` the point is past the boundary: all but the first of ``classes`` lead it by so much.
    """
    for k in classes:
        if not (isinstance(k, int | np.integer) and 0 <= k < n_classes):
            raise InputError(f"classes: expected integers from 0 to {n_classes - 1}, found {k!r}")
    if len(classes) < 2 or len(set(classes)) != len(classes):
        raise InputError(f"classes: expected at least two different classes, found {tuple(map(int, classes))}")
    as_number(margin, "margin", least=0.0)
    i, *ties = (int(k) for k in classes)
    others = [k for k in range(n_classes) if k not in classes]
    T = np.zeros((n_classes - 1, n_classes))
    T[:, i] = 1
    T[np.arange(n_classes - 1), ties + others] = -1
    tie = np.full(len(ties), 0.0 - beyond)
    lower, upper = (np.append(tie, np.full(len(others), bound)) for bound in (float(margin), np.inf))
    return Goal(T, lower, upper, (i, *ties))


def reach(n_classes: int, lower: ArrayLike, upper: ArrayLike) -> Goal:
    """Outputs in [lower, upper]: the least change that obtains a specific output (appendix E.3)."""
    low, high = bounds_of(lower, upper, n_classes)
    return Goal(np.eye(n_classes), low, high)


def within(n_classes: int, j: int, beyond: float = 0.0) -> Goal:
    """A point in the class j, which leads every other one by ``beyond``."""
    T = np.delete(-np.eye(n_classes), j, axis=0)
    T[:, j] = 1
    return Goal(T, np.full(n_classes - 1, float(beyond)), np.full(n_classes - 1, np.inf))
