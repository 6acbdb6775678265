"""What tables need on the command line: features by name, constraints from a file, points to a CSV file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import reading, require_file
from flipopt.common.limits import limits, require_within
from flipopt.common.quoting import listed, plain, quoted
from flipopt.common.writing import atomic_path
from flipopt.problem import LinearConstraint
from flipopt.results import FlipTable

COLUMNS = ("class", "distance", "status", "row")
"""What a CSV file of flip points has after the features."""


def features(text: str, names: tuple[str, ...], option: str) -> list[int]:
    """Indices from names or indices such as age,2."""
    found = []
    for part in (part.strip() for part in text.split(",")):
        if part in names:
            found.append(names.index(part))
        elif part.isdigit() and int(part) < len(names):
            found.append(int(part))
        else:
            expected = f"indices below {len(names)} or names such as {listed(names)}"
            raise InputError(f"{option}: expected {expected}, found {quoted(part)}")
    return found


def read_constraints(path: Path, names: tuple[str, ...]) -> LinearConstraint:
    """Linear constraints from a JSON file: a list of {"coefficients": {name: number}, "lower": ..., "upper": ...}."""
    require_file(path, limits().directory)
    with reading(path, "a JSON file"):
        entries = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(entries, list) or not entries:
        raise FileFormatError(f"{path}: expected a list of constraints, found {type(entries).__name__}")
    require_within(8 * len(entries) * len(names), limits().size, f"{path}: bytes of its coefficients")
    A, bounds = np.zeros((len(entries), len(names))), np.zeros((len(entries), 2))
    for k, entry in enumerate(entries):
        A[k], *bounds[k] = _constraint(entry, names, f"{path}: constraint {k}")
    return LinearConstraint(A, *bounds.T)


def _constraint(entry: Any, names: tuple[str, ...], where: str) -> tuple[Array, float, float]:
    allowed = {"coefficients", "lower", "upper"}
    if not isinstance(entry, dict) or not isinstance(entry.get("coefficients"), dict) or set(entry) - allowed:
        kind = f"one with {listed(entry)}" if isinstance(entry, dict) else type(entry).__name__
        raise FileFormatError(f"{where}: expected an object with coefficients, lower and upper, found {kind}")
    row = np.zeros(len(names))
    for name, value in entry["coefficients"].items():
        place = f"{where}: coefficient of {plain(name)}"
        row[_features(name, names, where)] = _number(value, place, finite=True)
    if not row.any() or not {"lower", "upper"} & set(entry):
        raise FileFormatError(f"{where}: expected a coefficient other than 0, and lower or upper")
    lower = _number(entry.get("lower", -np.inf), f"{where}: lower")
    upper = _number(entry.get("upper", np.inf), f"{where}: upper")
    if lower > upper:
        raise FileFormatError(f"{where}: expected lower <= upper, found {lower} > {upper}")
    return row, lower, upper


def _features(name: str, names: tuple[str, ...], where: str) -> list[int]:
    try:
        return features(name, names, where)
    except InputError as error:
        raise FileFormatError(str(error)) from error


def _number(value: Any, where: str, finite: bool = False) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        raise FileFormatError(f"{where}: expected a number, found {quoted(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise FileFormatError(f"{where}: expected a number below 1e308, found a longer one") from None
    if finite and not np.isfinite(number):
        raise FileFormatError(f"{where}: expected a finite number, found {number}")
    return number


def usable(X: Array, names: tuple[str, ...]) -> tuple[Array, list[str]]:
    """The rows of X without NaN and infinity, and what is wrong with each of the others."""
    bad = ~np.isfinite(X)
    rows = np.flatnonzero(bad.any(axis=1))
    words = [f"row {row}: {plain(names[int(np.argmax(bad[row]))])} is no number" for row in rows]
    return X[~bad.any(axis=1)], words


def write_csv(tables: Iterable[FlipTable], path: Path, names: tuple[str, ...]) -> None:
    """The points of tables as they come: a column a feature, then class, distance, status and row; whole or not at all.

    Where there is no point, its features are empty.
    """
    for name in set(names) & set(COLUMNS):
        raise InputError(f"{path}: expected features other than {', '.join(COLUMNS)}, its own columns; found {name!r}")
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, *COLUMNS])
        for table in tables:
            for k in range(len(table)):
                there = np.isfinite(table.distance[k])
                point = [repr(float(value)) if there else "" for value in table.x[k]]
                end = [int(table.classes[k, 1]), repr(float(table.distance[k])) if there else "", table.status[k].name]
                writer.writerow([*point, *end, int(table.row[k])])
