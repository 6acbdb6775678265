"""Points in the forms that people have them in: arrays, tensors, images, tables with named columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_floats, as_rows, as_sequence, rectangular
from flipopt.common.errors import InputError

LISTS = (list, tuple, np.ndarray)


def as_points(values: Any, network: Any, name: str, finite: bool = True) -> Array:
    """``values`` as floats of shape (n_inputs,) or (batch, n_inputs), all ``finite`` unless told otherwise.

    Inputs in the network's ``input_shape`` are flattened. The columns of a table, or the entries of one of its rows,
    are put in the order of the network's ``feature_names``; columns that it does not know are left out.
    """
    if hasattr(values, "to_numpy"):
        values = _numbers(_in_order(values, getattr(network, "feature_names", None), name), name)
    n, shape = network.n_inputs, tuple(getattr(network, "input_shape", ()))
    if len(shape) > 1 and (np.ndim(values) > 2 or np.shape(values)[-1:] != (n,)):
        values = as_floats(values, name, finite)
        batch = values.shape[: values.ndim - len(shape)]
        if len(batch) > 1 or values.shape != (*batch, *shape):
            raise InputError(
                f"{name}: expected points of shape ({n},), or of the input_shape {shape}, or a batch of them, "
                f"found shape {values.shape}"
            )
        values = values.reshape(*batch, n)
    return as_rows(values, n, name, finite)


def as_one_point(values: Any, network: Any, name: str) -> Array:
    """``values`` as one finite point of shape (n_inputs,), float64."""
    point = as_points(values, network, name)
    if point.ndim != 1:
        raise InputError(f"{name}: expected one point of shape ({network.n_inputs},), found {point.shape}")
    return point.astype(np.float64)


def by_position(options: dict[str, Any], network: Any) -> dict[str, Any]:
    """The options of the public verbs with features by their positions where a caller has them by name.

    That is weights and bounds with labels, such as ``1 / table.var()``, and names among frozen features, integers and
    groups of which one is 1.
    """
    found = dict(options)
    if hasattr(found.get("weights"), "to_numpy"):
        found["weights"] = as_points(found["weights"], network, "weights")
    if isinstance(found.get("bounds"), tuple | list):
        sides = zip(found["bounds"], ("bounds (lower)", "bounds (upper)"), strict=False)
        found["bounds"] = tuple(
            _numbers(_in_order(side, getattr(network, "feature_names", None), name), name)
            if hasattr(side, "to_numpy")
            else side
            for side, name in sides
        )
    for name in ("frozen", "integers"):
        if name in found:
            found[name] = _positions(found[name], network, name)
    if "one_of" in found:
        groups = as_sequence(found["one_of"], "one_of", "groups of features")
        found["one_of"] = tuple(_positions(group, network, "one_of") for group in groups)
    return found


def _positions(features: Any, network: Any, name: str) -> Any:
    """Positions of features that are given by name; anything else as it is."""
    array = rectangular(features, name, "a mask, indices or names") if isinstance(features, LISTS) else None
    if array is None or array.dtype.kind not in "UO" or not all(isinstance(feature, str) for feature in array.flat):
        return features
    known = list(getattr(network, "feature_names", None) or ())
    for feature in array.flat:
        if feature not in known:
            expected = (
                f"names among {', '.join(map(repr, known))}" if known else "positions, as the network has no names"
            )
            raise InputError(f"{name}: expected {expected}, found {str(feature)!r}")
    return [known.index(feature) for feature in array.flat]


def _in_order(table: Any, features: Sequence[str] | None, name: str) -> Any:
    """The columns of a table, or the entries of a row of one, that are the features, in their order."""
    labels: Any = getattr(table, "columns", getattr(table, "index", ()))
    if not features or (np.ndim(table) == 1 and not all(isinstance(label, str) for label in labels)):
        return table
    missing = [feature for feature in features if feature not in labels]
    if missing:
        raise InputError(
            f"{name}: lacks the {'columns' if len(missing) > 1 else 'column'} {', '.join(map(repr, missing))}; "
            f"found {', '.join(map(repr, labels))}"
        )
    return table[list(features)]


def _numbers(table: Any, name: str) -> Any:
    """The array of a table; columns of several types are made numbers one by one."""
    array = np.ascontiguousarray(table.to_numpy())  # sums are rounded otherwise if it is not
    if array.dtype != object:
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        bad = [label for label in getattr(table, "columns", ()) if not _is_numeric(table[label].to_numpy())]
        where = f" in the columns {', '.join(map(repr, bad))}" if bad else ""
        raise InputError(f"{name}: expected real numbers, found something else{where}") from None


def _is_numeric(column: Array) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
