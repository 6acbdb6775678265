"""Borderline instances: points between two classes, where each came from, and how the search for it ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.explain.matching import counted, percent


class Outcome(Enum):
    """How the search between a source of class s and class t ended: a status that carries its message."""

    FOUND = "on the boundary of the two classes"
    CLOSEST = "a closest flip point: on the boundary of the two classes and stationary"
    LEFT = "left the two classes"
    JUMP = "no number is left between the two points, and their probabilities are still apart"
    LIMIT = "stopped by the limit of steps"
    BROKEN = "the network's scores are not numbers"
    NO_FLIP = "no point on the boundary was found"
    LOST_I = "component I does not lead to class t"
    LOST_II = "component II does not lead back to class s"
    NOT_S = "start not in class s"
    NOT_T = "end not in class t"
    SAME = "start and end in one class"
    NOT_FINITE = "start or end with something that is no number"

    @property
    def message(self) -> str:
        return self.value

    @property
    def success(self) -> bool:
        """Whether there is a point on the boundary."""
        return self in (Outcome.FOUND, Outcome.CLOSEST)

    @property
    def searched(self) -> bool:
        """Whether there was something to search between: a start in class s, an end in class t."""
        return self not in NOT_SEARCHED


NOT_SEARCHED = (
    Outcome.LOST_I,
    Outcome.LOST_II,
    Outcome.NOT_S,
    Outcome.NOT_T,
    Outcome.SAME,
    Outcome.NOT_FINITE,
)


@dataclass(frozen=True, eq=False)
class Instances(Table):
    """Borderline instances, one record a pair of a source and what it was led to.

    Attributes
    ----------
    row
        The source of each, (pairs,): its row in S, or in the X that pairs were made from.
    partner
        The row in T or X that the line leads to, (pairs,); -1 where it leads to none of them, but to what
        an autoencoder has made, and for closest flip points.
    classes
        (s, t), the class that the boundary is approached from and the other one, (pairs, 2); -1 where there is none to
        be had.
    x
        The points, (pairs, n_inputs): the last midpoint, whatever the outcome; NaN where there is none.
    alpha
        Where on the line, (pairs,): x = (1 - alpha) source + alpha partner. NaN where there is no line.
    distance
        How far x is from its source in the 2-norm, (pairs,).
    gap
        z_s - z_t in size, at x, (pairs,).
    status
        An :class:`Outcome` each, (pairs,).
    steps, evaluations
        Midpoints looked at, and evaluations of the network, (pairs,).
    third
        Where the two classes were left: the class that was ahead, (pairs,); -1 elsewhere.
    """

    row: Array
    partner: Array
    classes: Array
    x: Array
    alpha: Array
    distance: Array
    gap: Array
    status: Array
    steps: Array
    third: Array
    evaluations: Array

    @cached_property
    def success(self) -> Array:
        """Which pairs have a borderline instance, (pairs,) bool."""
        return np.array([status.success for status in self.status], dtype=bool)

    @cached_property
    def searched(self) -> Array:
        """Which pairs had a start in class s and an end in class t, (pairs,) bool."""
        return np.array([status.searched for status in self.status], dtype=bool)

    @property
    def message(self) -> Array:
        """How each search ended, in words, (pairs,): "left the two classes at step 7: class 3 is ahead"."""
        return np.array([self._words(k) for k in range(len(self))], dtype=object)

    @property
    def found(self) -> Instances:
        """The borderline instances alone."""
        return self.take(self.success)

    def between(self, s: int, t: int) -> Instances:
        """Those that approach the boundary to class t from class s."""
        return self.take((self.classes == (s, t)).all(axis=1))

    @property
    def success_rate(self) -> float:
        """Instances found, as a share of the pairs with a start in s and an end in t; NaN without such pairs."""
        return float(self.success.sum() / self.searched.sum()) if self.searched.any() else np.nan

    @property
    def yield_rate(self) -> float:
        """Sources that have an instance, as a share of all sources; NaN without sources.

        A source that the network does not put in class s, or that an autoencoder does not lead to the other class or
        back, counts here, and not in ``success_rate``.
        """
        return len(np.unique(self.row[self.success])) / len(np.unique(self.row)) if len(self) else np.nan

    @property
    def converged_rate(self) -> float:
        """Verified closest flip points, as a share of the pairs searched; NaN without such pairs."""
        closest = sum(status is Outcome.CLOSEST for status in self.status)
        return float(closest / self.searched.sum()) if self.searched.any() else np.nan

    @property
    def counts(self) -> dict[str, int]:
        """How often every outcome occurred, by its name."""
        return dict(Counter(status.name for status in self.status))

    def measured_from(self, X: Array) -> Instances:
        """The same with distances from the rows of X (rows, n_inputs): where the starts are not the sources themselves,
        but what an autoencoder made of them."""
        X = np.asarray(X)
        X = X.reshape(len(X), -1) if X.ndim > 2 else X
        if X.ndim != 2 or X.shape[1] != self.x.shape[1] or len(X) <= self.row.max(initial=-1):
            expected = f"{self.row.max(initial=-1) + 1} rows or more of {self.x.shape[1]} numbers"
            raise InputError(f"X: expected {expected}, found shape {X.shape}")
        return replace(self, distance=np.linalg.norm(self.x - X[self.row], axis=1))

    def summary(self) -> str:
        """In plain words."""
        if len(self) == 0:
            return "No pairs: there is nothing to search between."
        given = counted(int(self.searched.sum()), "pair")
        text = f"{int(self.success.sum())} of {given} ({percent(self.success_rate)}) end as a borderline instance"
        text += f", {percent(self.yield_rate)} of all sources"
        if self.success.any():
            some = self.found
            text += f"; {np.median(some.distance):.3g} from the source (median), gap {some.gap.mean():.2g} (mean)"
        failed = [f"{Outcome[name].message}: {n}" for name, n in self.counts.items() if not Outcome[name].success]
        return f"{text}. Of the others: {'; '.join(failed)}." if failed else f"{text}."

    def __str__(self) -> str:
        return self.summary()

    def _words(self, k: int) -> str:
        status = self.status[k]
        if status is Outcome.LEFT:
            return f"{status.message} at step {self.steps[k]}: class {self.third[k]} is ahead"
        return f"{status.message} ({self.steps[k]})" if status is Outcome.LIMIT else str(status.message)

    def _columns(self) -> dict[str, Any]:
        columns = super()._columns()
        columns["success"] = self.success
        columns["status"] = np.array([status.name for status in self.status], dtype=object)
        return columns | {"message": self.message}


def nothing_found(row: Array, partner: Array, classes: Array, status: Array, n_inputs: int) -> Instances:
    """Records without points, to be filled in: rows and partners (pairs,), classes (pairs, 2), outcomes (pairs,)."""
    count = len(row)
    nan, zero = np.full((3, count), np.nan), np.zeros((2, count), dtype=np.int64)
    x, none = np.full((count, n_inputs), np.nan), np.full(count, -1)
    return Instances(row, partner, classes, x, nan[0], nan[1], nan[2], status, zero[0], none, zero[1])
