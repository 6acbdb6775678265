"""The columns of a table of flip points out of a Parquet file from anyone (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.parquet import Parquet
from flipopt.common.quoting import quoted
from flipopt.results.status import Status


def read_columns(path: Path, values: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """The columns ``values`` (name to type), ``classes``, ``x`` and ``status``, which make sense together."""
    file = Parquet(path)
    missing = [name for name in required if name not in file.names]
    if missing:
        raise FileFormatError(f"{path}: lacks the columns {', '.join(missing)}")
    types = {**values, "i": np.int64, "j": np.int64, "status": np.object_}
    wanted = {"x": "list", **{name: "text" if kind is np.object_ else "number" for name, kind in types.items()}}
    chosen = {name: kind for name, kind in wanted.items() if name in file.names}
    for name, kind in chosen.items():
        if file.kind(name) != kind:
            _refuse(path, f"column {name}", kind, file.schema.field(name).type)
    found = file.read(tuple(chosen))
    columns = {name: _typed(path, name, found[name], kind) for name, kind in types.items() if name in found}
    columns.setdefault("solver", np.full(file.rows, "", dtype=object))
    columns.setdefault("lower_bound", np.full(file.rows, np.nan))
    columns["status"] = _statuses(path, columns["status"])
    columns["classes"] = np.column_stack([columns.pop("i"), columns.pop("j")])
    columns["x"] = found["x"]
    _require_sense(path, columns)
    return columns


def _refuse(path: Path, where: str, expected: str, found: object) -> None:
    raise FileFormatError(f"{path}: not a table of flip points: {where}: expected {expected}, found {quoted(found)}")


def _typed(path: Path, name: str, column: Array, kind: Any) -> Array:
    """A column without nulls in the type of the table's; whole numbers and truths are not made of others."""
    if kind is np.object_:
        for row in _where(column, None)[:1]:
            _refuse(path, f"column {name}, row {row}", "text", "nothing")
    family = {np.int64: "iu", np.bool_: "b"}.get(kind, "Ofiu")
    if len(column) and column.dtype.kind not in family:
        _refuse(path, f"column {name}", np.dtype(kind).name, column.dtype)
    if column.dtype == np.uint64 and len(column) and column.max() > np.iinfo(np.int64).max:
        _refuse(path, f"column {name}", "int64", column.max())
    return np.asarray(column.astype(kind, copy=False))


def _where(column: Array, value: object) -> Array:
    """Rows of a column of objects that are ``value``."""
    return np.array([row for row, other in enumerate(column) if other is value], dtype=np.intp)


def _statuses(path: Path, names: Array) -> Array:
    known = Status.__members__
    found = np.array([known.get(name) for name in names], dtype=object)
    for row in _where(found, None)[:1]:
        _refuse(path, f"column status, row {row}", "the name of a status", names[row])
    return found


def _require_sense(path: Path, columns: Mapping[str, Array]) -> None:
    """Raise if an entry says what the package never says: rules by column, and what must hold, an entry."""
    converged, there = np.zeros((2, len(columns["status"])), dtype=bool)
    converged[_where(columns["status"], Status.CONVERGED)] = True
    there[_where(columns["status"], Status.ON_BOUNDARY)] = True
    there |= converged
    i, j = columns["classes"].T
    rules: list[tuple[str, str, Array]] = [
        (name, "0 or more", columns[name] >= 0) for name in ("row", "evaluations", "starts", "agreeing")
    ]
    rules += [
        (name, "0 or more, or NaN", (columns[name] >= 0) | np.isnan(columns[name]))
        for name in ("distance", "kkt_residual", "boundary_gap", "elapsed", "lower_bound")
    ]
    rules += [
        ("distance", "a finite number for a point on the boundary", np.isfinite(columns["distance"]) | ~there),
        ("x", "finite numbers for a point on the boundary", np.isfinite(columns["x"]).all(axis=1) | ~there),
        ("kkt_residual", "a finite number for a CONVERGED point", np.isfinite(columns["kkt_residual"]) | ~converged),
        ("boundary_gap", "a finite number for a CONVERGED point", np.isfinite(columns["boundary_gap"]) | ~converged),
        ("i", "a class, 0 or more, of a point on the boundary", (i >= 0) | ~there),
        ("j", "a class, 0 or more and other than i, of a point on the boundary", ((j >= 0) & (i != j)) | ~there),
    ]
    for name, expected, holds in rules:
        for row in np.flatnonzero(~holds)[:1]:
            value = columns["classes"][row] if name in ("i", "j") else columns[name][row]
            _refuse(path, f"column {name}, row {row}", expected, value)
