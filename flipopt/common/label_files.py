"""Labels from files: whole numbers or names of classes, in a file of their own or in a column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npy, read_npz
from flipopt.common.parquet import Parquet
from flipopt.common.point_files import csv_lines
from flipopt.common.quoting import listed, quoted

NAMES = ("labels", "y", "label")
"""Of the array in a .npz file, or of the column in a .parquet file."""


def read_labels(path: str | Path, rows: int) -> Array:
    """Labels (rows,), integers or text, of a .npy, .npz, .csv or .parquet file.

    A .csv file has a label a line, and may have a line with a name first.
    """
    path = Path(path)
    if path.suffix == ".npy":
        labels = read_npy(path)
    elif path.suffix == ".npz":
        labels = _chosen(read_npz(path), path)
    elif path.suffix == ".parquet":
        file = Parquet(path)
        name = file.names[0] if len(file.names) == 1 else _name(file.names, path)
        labels = file.read((name,))[name]
    elif path.suffix == ".csv":
        labels = _of_lines(path, rows)
    else:
        raise FileFormatError(f"{path}: expected .npy, .npz, .csv or .parquet")
    if labels.shape != (rows,):
        raise FileFormatError(f"{path}: expected {rows} labels, one a row of the data, found shape {labels.shape}")
    return labels


def read_column(path: Path, name: str) -> Array | None:
    """The column ``name`` (rows,) of a .csv or .parquet file, or the array of a .npz file; None if it has none."""
    if path.suffix == ".parquet":
        file = Parquet(path)
        return file.read((name,))[name] if name in file.names else None
    if path.suffix == ".npz":
        return read_npz(path, finite=False).get(name)
    if path.suffix != ".csv":
        return None
    lines = csv_lines(path)
    names = [cell.strip() for cell in next(lines, [])]
    if name not in names:
        return None
    at = names.index(name)
    return _as_labels([line[at].strip() if len(line) == len(names) else "" for line in lines])


def _of_lines(path: Path, rows: int) -> Array:
    lines = list(csv_lines(path))
    if any(len(line) != 1 for line in lines):
        raise FileFormatError(f"{path}: expected a label a line, found a line of {max(map(len, lines))} cells")
    cells = [line[0].strip() for line in lines]
    return _as_labels(cells[1:] if len(cells) == rows + 1 else cells)


def _as_labels(cells: list[str]) -> Array:
    """Whole numbers where all cells are, else text."""
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(cells, dtype=object)


def _chosen(arrays: dict[str, Any], path: Path) -> Array:
    return np.asarray(arrays[_name(tuple(arrays), path)])


def _name(names: tuple[str, ...], path: Path) -> str:
    found = next((name for name in NAMES if name in names), None)
    if found is None:
        raise FileFormatError(f"{path}: expected {quoted(NAMES[0])} among its names, found {listed(names) or 'none'}")
    return found
