"""Flip points beside the inputs and labels that they belong to; rows without a flip are left out and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flipopt.common.checks import Array, rectangular
from flipopt.common.errors import InputError
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.results import FlipTable, Status

ON_BOUNDARY = (Status.CONVERGED, Status.ON_BOUNDARY)
"""Statuses of points that lie on a boundary."""


def on_boundary(flips: FlipTable, rows: int, name: str) -> FlipTable:
    """The entries that are points on a boundary; raise where one belongs to none of the ``rows`` rows of ``name``."""
    if not isinstance(flips, FlipTable):
        raise InputError(f"flips: expected a FlipTable, found {type(flips).__name__}")
    if len(flips) and not 0 <= flips.row.min() <= flips.row.max() < rows:
        raise InputError(
            f"{name}: expected all {int(flips.row.max()) + 1} rows or more that the flips are of, found {rows}"
        )
    found = np.array([status in ON_BOUNDARY for status in flips.status], dtype=bool)
    return flips[found & np.isfinite(flips.distance)]


def nearest(flips: FlipTable, rows: int, name: str) -> tuple[FlipTable, int]:
    """The nearest point on a boundary of every row that has one, in the order of rows, and how many rows have none."""
    found = on_boundary(flips, rows, name).nearest()
    return found, len(np.unique(flips.row)) - len(found)


def as_inputs(X: Any, network: Network) -> Array:
    """Inputs (rows, n_inputs) as float64; they need not be finite, as rows that are not have no flips."""
    return np.atleast_2d(as_points(X, network, "X", finite=False)).astype(np.float64)


def as_rows_like(X: Any, flips: FlipTable) -> Array:
    """Inputs (rows, n_inputs) as float64, of as many features as the flips have, whose shape may be that of images."""
    array = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else rectangular(X, "X", "inputs, one a row"))
    n = flips.x.shape[1]
    if array.dtype.kind not in "biuf" or array.ndim < 2 or int(np.prod(array.shape[1:])) != n:
        raise InputError(f"X: expected numbers of shape (rows, {n}), found {array.dtype} {array.shape}")
    return array.reshape(len(array), n).astype(np.float64)


def as_labels(labels: Any, rows: int | None, classes: Sequence[str] | None, n_classes: int | None) -> Array:
    """True classes as integers (rows,): positions, or names among ``classes`` where the network has them.

    Without ``rows`` there may be any number of them, without ``n_classes`` any number of classes.
    """
    array = np.asarray(labels.to_numpy() if hasattr(labels, "to_numpy") else rectangular(labels, "labels", "classes"))
    if array.ndim != 1 or (rows is not None and len(array) != rows):
        wanted = "one class a row" if rows is None else f"{rows} classes, one a row"
        raise InputError(f"labels: expected {wanted}, found shape {array.shape}")
    found = _named(array, classes)
    if found is None:
        found = array.astype(np.int64) if array.dtype.kind in "biuf" and np.isfinite(array).all() else None
        if found is None or not (found == array).all():
            raise InputError(f"labels: expected classes as whole numbers{_or(classes)}, found {array.dtype}")
    most = np.inf if n_classes is None else n_classes
    if len(found) and not 0 <= found.min() <= found.max() < most:
        bad = found[(found < 0) | (found >= most)][0]
        raise InputError(
            f"labels: expected classes from 0{'' if n_classes is None else f' to {n_classes - 1}'}{_or(classes)}, "
            f"found {bad}"
        )
    return found


def _named(labels: Array, classes: Sequence[str] | None) -> Array | None:
    """Positions of labels among the names of classes; None if one is not among them."""
    places = {name: k for k, name in enumerate(classes or ())}
    values, inverse = np.unique(labels.astype(str), return_inverse=True)
    if not places or not all(value in places for value in values.tolist()):
        return None
    return np.array([places[value] for value in values.tolist()], dtype=np.int64)[inverse]


def _or(classes: Sequence[str] | None) -> str:
    return f" or names among {', '.join(classes)}" if classes else ""


def class_names(classes: Sequence[str] | None, network: Network) -> tuple[str, ...]:
    """``classes`` as they were given, or the network's own names, or numbers."""
    names = classes or getattr(network, "class_names", None) or range(network.n_classes)
    if len(names) != network.n_classes:
        raise InputError(f"classes: expected {network.n_classes} names, found {len(names)}")
    return tuple(str(name) for name in names)


def percent(share: float) -> str:
    """A share as people read it."""
    if np.isnan(share):
        return "an unknown share"
    digits = 1 if share < 0.1 or share > 0.9 else 0
    return f"{100 * share:.{digits}f}".removesuffix(".0") + "%"


def counted(count: int, one: str, many: str | None = None) -> str:
    """ "1 input", "2 inputs"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def left_out(count: int) -> str:
    """A sentence on rows without a flip, to follow another; empty if there are none."""
    if count == 0:
        return ""
    return f" {counted(count, 'input')} without a flip point {'is' if count == 1 else 'are'} left out."
