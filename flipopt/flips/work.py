"""The closest flip points of many rows as work that any executor can do and a run can keep."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.flips.batched import rows_at_once, solve_batched
from flipopt.flips.faults import attempted, failure, some_classes
from flipopt.flips.request import Request
from flipopt.flips.serial import solve_serially
from flipopt.results import FlipTable
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.work import Work

KIND = "closest flip points"
LARGEST_LOAD = 2.0**23
"""Bytes of the points of a part: what is sent to a worker at once, and comes back."""


@dataclass(frozen=True)
class Rows:
    """Consecutive rows: the number of the first, their points (rows, n_inputs), and "nearest", "all" or (rows,)."""

    first: int
    X: Array
    targets: Any


@dataclass(frozen=True)
class Solve:
    """What a worker does: rows in chunks of ``step``, which do not depend on who does them, nor with which others."""

    request: Request
    step: int

    def __call__(self, rows: Rows) -> FlipTable:
        tables = []
        for start in range(0, len(rows.X), self.step):
            some = slice(start, start + self.step)
            targets = rows.targets if isinstance(rows.targets, str) else rows.targets[some]
            solve = solve_batched if self.request.batched else solve_one_by_one
            table = solve(self.request, rows.X[some], targets)
            tables.append(replace(table, row=table.row + (rows.first + start)))
        return FlipTable.join(tables)


def work_of(request: Request, X: Array, targets: Any, step: int | None = None) -> Work[FlipTable]:
    """The rows of X (rows, n_inputs), in steps as an earlier run had them or as fit this machine."""
    if step is None:
        step = rows_at_once(request, len(X), targets) if request.batched else 1

    def load(part: range) -> Rows:
        some = slice(part.start, part.stop)
        return Rows(part.start, np.asarray(X[some]), targets if isinstance(targets, str) else targets[some])

    entries = request.network.n_classes - 1 if isinstance(targets, str) and targets == "all" else 1
    most = int(LARGEST_LOAD / (8 * request.network.n_inputs * entries))
    return Work(Solve(request, step), load, len(X), step, most, threads=request.batched)


def description(request: Request, X: Array, targets: Any) -> dict[str, Any]:
    """What is computed, by name: values where they are short, and fingerprints of the rest."""
    network = {"network": fingerprint(request.network), "X": fingerprint(X)}
    wanted = targets if isinstance(targets, str) else fingerprint(targets)
    return network | {"targets": wanted} | _values(request, {"network"})


def _values(thing: Any, without: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (field.name for field in fields(thing) if field.name not in without):
        value = getattr(thing, name)
        found |= _values(value, without) if name == "setting" else {name: _words(value)}
    return found


def _words(value: Any) -> Any:
    """A value for people, as exact as a fingerprint."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)  # infinity too
    if isinstance(value, np.ndarray) and value.size and (value == value.flat[0]).all():
        return f"{value.flat[0]} of {value.size}"
    if is_dataclass(value):
        changed = {field.name: getattr(value, field.name) for field in fields(value) if field.init and field.repr}
        changed = {name: part for name, part in changed.items() if isinstance(part, bool | int | float | str)}
        kept = ", ".join(f"{name}={part!r}" for name, part in changed.items())
        return f"{type(value).__name__}({kept}) {fingerprint(value)[:8]}"
    return "none" if hasattr(value, "__len__") and len(value) == 0 else fingerprint(value)


def solve_one_by_one(request: Request, X: Array, targets: Any) -> FlipTable:
    """The flips of the rows of X, each on its own; what cannot be solved has a status."""
    rows, results = [], []
    for row, x in enumerate(X.astype(np.float64)):
        (i,), (why,) = request.examined(x[None])
        for target in _row_targets(request, int(i), targets, row):
            classes = some_classes(int(i), None if target is None else [target])
            solve = partial(solve_serially, request, x, target)
            rows.append(row)
            results.append(
                failure(x, classes, why, request.solver.name)
                if why
                else attempted(solve, x, classes, request.solver.name)
            )
    return FlipTable.of(rows, results, request.network.n_inputs)


def _row_targets(request: Request, i: int, targets: Any, row: int) -> list[int | None]:
    if not isinstance(targets, str):
        return [int(targets[row])]
    if targets == "nearest":
        return [None]
    return [k for k in range(request.network.n_classes) if k != i]
