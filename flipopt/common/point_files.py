"""Points from files: .npy, .npz, .csv and .parquet, read as untrusted input."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npz, require_file


def read_points(path: str | Path, n_inputs: int) -> Array:
    """The points of a file, (rows, n_inputs), float64; an error names the file, and the row and column at fault.

    A .npy file holds one array. A .npz file holds an array named X or features. A .parquet file holds one numeric
    column a feature, in order, or one column X or x of lists. A .csv file has a line of names first.
    """
    points = read_table(path, n_inputs)[0]
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise FileFormatError(f"{path}: row {row}, column {column} is {points[row, column]}")
    return points


def read_table(path: str | Path, n_inputs: int) -> tuple[Array, tuple[str, ...]]:
    """The points of a file, which may hold NaN, and the names of its columns: those of the file, or x0, x1, ...

    What is no number in a .csv file is NaN, and so is a row that is too short or too long.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Array | tuple[Array, tuple[str, ...]]]]
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}
    if path.suffix not in readers:
        raise FileFormatError(f"{path}: expected .npy, .npz, .csv or .parquet")
    require_file(path)
    read = readers[path.suffix](path)
    points, names = read if isinstance(read, tuple) else (read, tuple(f"x{k}" for k in range(n_inputs)))
    if points.dtype.kind not in "biuf":
        raise FileFormatError(f"{path}: expected numbers, found {points.dtype}")
    points = np.atleast_2d(points.astype(np.float64))
    if points.ndim != 2 or points.shape[1] != n_inputs or len(points) == 0:
        raise FileFormatError(f"{path}: expected rows of {n_inputs} numbers, found shape {points.shape}")
    return points, names


def _read_npy(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"{path}: not a readable npy file: {error}") from error


def _read_npz(path: Path) -> Array:
    arrays = read_npz(path, finite=False)
    for name in ("X", "features"):
        if name in arrays:
            return arrays[name]
    raise FileFormatError(f"{path}: expected an array X or features, found {', '.join(arrays) or 'nothing'}")


def _read_csv(path: Path) -> tuple[Array, tuple[str, ...]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise FileFormatError(f"{path}: not a CSV file: {error}") from error
    names = tuple(name.strip() for name in lines[0]) if lines else ()
    if len(set(names)) != len(names) or not all(np.isnan(_value(name)) for name in names):
        raise FileFormatError(f"{path}: expected a first line of different names, found {', '.join(names)[:80]}")
    width = len(names)
    rows = [[_value(cell) for cell in line] if len(line) == width else [np.nan] * width for line in lines[1:]]
    return np.array(rows).reshape(len(rows), width), names


def _value(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _read_parquet(path: Path) -> Array | tuple[Array, tuple[str, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, memory_map=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileFormatError(f"{path}: not a Parquet file: {error}") from error
    for name in ("X", "x"):
        if name in table.column_names:
            rows = table[name].to_pylist()
            if any(row is None or len(row) != len(rows[0]) for row in rows):
                raise FileFormatError(f"{path}: column {name}: expected lists of one length in every row")
            return np.array(rows)
    for name in table.column_names:
        kind = table.schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise FileFormatError(f"{path}: column {name}: expected numbers, found {kind}")
    columns = [table[name].to_numpy().astype(np.float64) for name in table.column_names]
    return np.column_stack(columns), tuple(table.column_names)
