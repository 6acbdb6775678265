"""The best distances known of the benchmark's problems, kept in a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from flipopt.common.errors import FileFormatError
from flipopt.runs.rows import Row, read_rows, write_rows

CLOSER = 1e-9
"""A distance must be smaller by this, relative, to be a new best: less is rounding."""
BEST_COLUMNS = ("problem", "distance", "method", "commit")


def read_best(path: Path) -> dict[str, float]:
    """The best distances in a file, by the name of the problem."""
    return {row["problem"]: row["distance"] for row in _best_rows(path)}


def improve_best(path: Path, rows: Iterable[Row]) -> int:
    """Take over verified closer points into a file of best distances; how many there were.

    Only points on the boundary count: those beyond it, as attacks leave them, are never quite the closest.
    """
    known = {row["problem"]: row for row in _best_rows(path)}
    improved = 0
    for row in rows:
        before = known[row["problem"]]["distance"] if row["problem"] in known else np.inf
        if row["status"] in ("CONVERGED", "ON_BOUNDARY") and row["distance"] < before * (1 - CLOSER):
            known[row["problem"]] = {name: row[name] for name in BEST_COLUMNS}
            improved += 1
    if improved:
        write_rows(path, BEST_COLUMNS, known.values())
    return improved


def _best_rows(path: Path) -> list[Row]:
    rows = read_rows(path, real=["distance"], columns=BEST_COLUMNS)
    for row in rows:
        if not row["distance"] > 0:
            raise FileFormatError(
                f"{path}: problem {row['problem']}: expected a distance above 0, found {row['distance']}"
            )
    return rows
