"""Points from files: .npy, .npz, .csv and .parquet, read as untrusted input."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npy, read_npz, reading, require_file
from flipopt.common.limits import limits, require_within
from flipopt.common.parquet import Parquet
from flipopt.common.quoting import listed, quoted

LINES = 64
"""Lines of a CSV file that are turned into numbers together."""


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


def read_table(path: str | Path, n_inputs: int, without: str | None = None) -> tuple[Array, tuple[str, ...]]:
    """The points of a file, which may hold NaN, and the names of its columns: those of the file, or x0, x1, ...

    What is no number in a .csv file is NaN, and so is a row that is too short or too long. The column ``without``,
    which may be of text, is no feature.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Array | tuple[Array, tuple[str, ...]]]]
    parquet, table = partial(_read_parquet, without=without), partial(_read_csv, without=without)
    readers = {".npy": read_npy, ".npz": _read_npz, ".parquet": parquet, ".csv": table}
    if path.suffix not in readers:
        raise FileFormatError(f"{path}: expected .npy, .npz, .csv or .parquet")
    read = readers[path.suffix](path)
    points, names = read if isinstance(read, tuple) else (read, tuple(f"x{k}" for k in range(n_inputs)))
    if points.dtype.kind not in "biuf":
        raise FileFormatError(f"{path}: expected numbers, found {points.dtype}")
    points = np.atleast_2d(points.astype(np.float64, copy=False))
    if points.ndim != 2 or points.shape[1] != n_inputs or len(points) == 0:
        raise FileFormatError(f"{path}: expected rows of {n_inputs} numbers, found shape {points.shape}")
    return points, names


def _read_npz(path: Path) -> Array:
    arrays = read_npz(path, finite=False)
    for name in ("X", "features"):
        if name in arrays:
            return arrays[name]
    raise FileFormatError(f"{path}: expected an array X or features, found {listed(arrays) or 'nothing'}")


def csv_lines(path: Path) -> Iterator[list[str]]:
    """The lines of a CSV file that are not empty, none of them and the file not longer than allowed."""
    require_file(path, limits().text)
    with reading(path, "a CSV file"), path.open(newline="", encoding="utf-8-sig") as file:
        yield from (line for line in csv.reader(_short_lines(file, path)) if line)


def _read_csv(path: Path, without: str | None) -> tuple[Array, tuple[str, ...]]:
    values, most = array("d"), limits().size
    with reading(path, "a CSV file"):
        lines = csv_lines(path)
        names = tuple(name.strip() for name in next(lines, ()))
        if len(set(names)) != len(names) or not all(np.isnan(_value(name)) for name in names):
            raise FileFormatError(f"{path}: expected a first line of different names, found {listed(names)}")
        missing = array("d", [np.nan]) * len(names)
        while some := list(islice(lines, LINES)):
            values.extend(_rows(some, missing))
            require_within(8 * len(values), most, f"{path}: bytes of its numbers")
    points = np.frombuffer(values).reshape(-1, max(1, len(names)))
    kept = [k for k, name in enumerate(names) if name != without]
    return (points, names) if len(kept) == len(names) else (points[:, kept], tuple(names[k] for k in kept))


def _short_lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, none longer than allowed: a line is held as a list of its cells."""
    longest = limits().directory
    while line := file.readline(longest + 1):
        if len(line) > longest:
            require_within(len(line), longest, f"{path}: characters in a line")
        yield line


def _rows(lines: list[list[str]], missing: array[float]) -> array[float]:
    """The numbers of lines, all at once where all are numbers; ``missing`` for a line that is too short or too long."""
    if all(len(line) == len(missing) for line in lines):
        try:
            return array("d", map(float, chain.from_iterable(lines)))
        except ValueError:
            pass
    found = array("d")
    for line in lines:
        found.extend(map(_value, line) if len(line) == len(missing) else missing)
    return found


@lru_cache(4096)  # what is no number is mostly one of a few words, and each costs an exception
def _value(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _read_parquet(path: Path, without: str | None) -> Array | tuple[Array, tuple[str, ...]]:
    file = Parquet(path)
    for name in ("X", "x"):
        if name in file.names and file.kind(name) == "list":
            return file.read((name,))[name]
    names = tuple(name for name in file.names if name != without)
    for name in names:
        if file.kind(name) != "number":
            kind = file.schema.field(name).type
            raise FileFormatError(f"{path}: column {quoted(name)}: expected numbers, found {kind}")
    columns = file.read(names)
    points = np.empty((file.rows, len(names)))
    for k, name in enumerate(names):
        points[:, k] = columns.pop(name)
    return points, names
