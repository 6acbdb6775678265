"""The rows of a comparison: one a problem and method."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from flipopt.runs import rows as files
from flipopt.runs.rows import Row, Sheet, write_rows

COLUMNS = (
    "family", "problem", "n", "method", "status", "feasible", "distance", "ratio", "boundary_gap", "kkt_residual",
    "forward", "backward", "hessian", "iterations", "seconds", "message", "cpu", "cores", "versions", "commit",
)  # fmt: skip
SHEET = Sheet(COLUMNS, ("problem", "method"))
WHOLE = ("n", "forward", "backward", "hessian", "iterations")
REAL = ("distance", "ratio", "boundary_gap", "kkt_residual", "seconds")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, with their numbers as numbers; none if there is no file yet."""
    rows = files.read_rows(path, WHOLE, REAL, COLUMNS)
    return [row | {"feasible": row["feasible"] == "True"} for row in rows]


def write_ratios(path: Path, best: Mapping[str, float]) -> None:
    """Put the ratio of every distance to the ``best`` one of its problem into a file of rows.

    It is not known before all methods have had their turn, so rows are kept without it.
    """
    rows = files.read_rows(path, columns=COLUMNS)
    for row in rows:
        row["ratio"] = f"{float(row['distance']) / best.get(row['problem'], np.nan):.9g}"
    write_rows(path, COLUMNS, rows)


def empty_row(family: str, problem: str, n: int, method: str, status: str, message: str, seconds: float) -> Row:
    """The row of a method that has left nothing but a message."""
    nothing = dict.fromkeys(("distance", "ratio", "boundary_gap", "kkt_residual"), np.nan)
    zeros = dict.fromkeys(("forward", "backward", "hessian", "iterations"), 0)
    head = {"family": family, "problem": problem, "n": n, "method": method, "status": status, "feasible": False}
    return head | nothing | zeros | {"seconds": round(seconds, 4), "message": message}
