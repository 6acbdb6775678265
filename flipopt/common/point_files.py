"""Points from files: .npy, .npz and .parquet, read as untrusted input."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npz, require_file


def read_points(path: str | Path, n_inputs: int) -> Array:
    """The points of a file, (rows, n_inputs), float64; an error names the file, and the row and column at fault.

    A .npy file holds one array. A .npz file holds an array named X or features. A .parquet file holds one numeric
    column a feature, in order, or one column X or x of lists.
    """
    path = Path(path)
    readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise FileFormatError(f"{path}: expected .npy, .npz or .parquet")
    require_file(path)
    points = readers[path.suffix](path)
    if points.dtype.kind not in "biuf":
        raise FileFormatError(f"{path}: expected numbers, found {points.dtype}")
    points = np.atleast_2d(points.astype(np.float64))
    if points.ndim != 2 or points.shape[1] != n_inputs or len(points) == 0:
        raise FileFormatError(f"{path}: expected rows of {n_inputs} numbers, found shape {points.shape}")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise FileFormatError(f"{path}: row {row}, column {column} is {points[row, column]}")
    return points


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


def _read_parquet(path: Path) -> Array:
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
    return np.column_stack([table[name].to_numpy().astype(np.float64) for name in table.column_names])
