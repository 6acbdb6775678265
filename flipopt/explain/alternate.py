"""The class on the other side of the nearest flip: for a mistake, likely the right one (002, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.explain.matching import as_labels, counted, left_out, nearest, on_boundary, percent
from flipopt.explain.statistics import wilson
from flipopt.results import FlipTable


@dataclass(frozen=True, eq=False)
class Alternate:
    """What mistakes flip to.

    Attributes
    ----------
    row, predicted, alternate, label
        Of every mistake that has a flip, (mistakes,): row, predicted class, the class on the other side of the nearest
        flip, and the true class.
    right
        Whether the alternate class is the true one, (mistakes,) bool.
    rank
        The place of the true class among all classes that flips of the row are known of, by distance: 1 is the nearest,
        0 if no flip to it is known, (mistakes,). For it flips to all classes are needed.
    interval
        95% interval (Wilson's) of the share of mistakes whose alternate class is right.
    matrix
        How many rows, right or wrong, are predicted as i and flip to j first, (n_classes, n_classes).
    classes
        Names of the classes.
    without_flip
        Rows that were left out because no flip is known.
    """

    row: Array = field(repr=False)
    predicted: Array = field(repr=False)
    alternate: Array = field(repr=False)
    label: Array = field(repr=False)
    right: Array = field(repr=False)
    rank: Array = field(repr=False)
    interval: tuple[float, float]
    matrix: Array = field(repr=False)
    classes: tuple[str, ...]
    without_flip: int

    @property
    def mistakes(self) -> int:
        """How many there are."""
        return len(self.row)

    @property
    def share(self) -> float:
        """Of the mistakes whose alternate class is the right one; NaN without mistakes."""
        return float(self.right.mean()) if len(self.right) else np.nan

    def summary(self) -> str:
        """In plain words."""
        i, j = np.unravel_index(int(self.matrix.argmax()), self.matrix.shape) if self.matrix.size else (0, 0)
        often = (
            f" The commonest nearest flip is from “{self.classes[i]}” to “{self.classes[j]}” "
            f"({counted(int(self.matrix[i, j]), 'input')})."
            if self.matrix.any()
            else ""
        )
        if not self.mistakes:
            return (
                f"No mistakes: whether they flip to the right class cannot be said.{often}{left_out(self.without_flip)}"
            )
        low, high = self.interval
        plain = ", as it must with two classes" if len(self.classes) == 2 else ""
        return (
            f"The nearest flip of a mistake leads to the right class for {int(self.right.sum())} of {self.mistakes} "
            f"({percent(self.share)}; 95% interval {percent(low)} to {percent(high)}){plain}.{often}"
            f"{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def alternate(flips: FlipTable, labels: ArrayLike, classes: Sequence[str] | None = None) -> Alternate:
    """The class on the other side of each mistake's nearest flip, and whether it is the right one.

    Parameters
    ----------
    flips
        Flip points from the predicted class, the nearest of all classes or one to each.
    labels
        True classes of all rows that the flips may be of, (rows,): positions, or names among ``classes``.
    classes
        Names of the classes, where they have any.
    """
    names = None if classes is None else tuple(str(name) for name in classes)
    truth = as_labels(labels, None, names, None if names is None else len(names))
    found, missing = nearest(flips, len(truth), "labels")
    (i, j), label = found.classes.T, truth[found.row]
    count = int(max(flips.classes.max(initial=-1), truth.max(initial=-1))) + 1
    if names is not None and len(names) < count:
        raise InputError(f"classes: expected {count} names or more, found {len(names)}")
    names = names or tuple(map(str, range(count)))
    matrix = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(matrix, (i, j), 1)
    wrong = i != label
    right = j[wrong] == label[wrong]
    low, high = wilson(int(right.sum()), len(right))
    rank = _ranks(on_boundary(flips, len(truth), "labels"), found.row[wrong], label[wrong])
    return Alternate(
        found.row[wrong],
        i[wrong],
        j[wrong],
        label[wrong],
        right,
        rank,
        (float(low), float(high)),
        matrix,
        names,
        missing,
    )


def _ranks(flips: FlipTable, rows: Array, labels: Array) -> Array:
    """The place of each row's label among its flips by distance, from 1; 0 if it has no flip to it."""
    flips = flips[np.isin(flips.row, rows)]
    order = np.lexsort((flips.distance, flips.row))
    row, j = flips.row[order], flips.classes[order, 1]
    place = np.arange(len(row)) - np.searchsorted(row, row) + 1
    known = {(int(r), int(k)): int(p) for r, k, p in zip(row, j, place, strict=True)}
    return np.array([known.get((int(r), int(k)), 0) for r, k in zip(rows, labels, strict=True)], dtype=np.int64)
