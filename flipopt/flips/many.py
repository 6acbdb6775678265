"""Closest flip points of many inputs, all at once or a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.flips.batched import solve_batched
from flipopt.flips.faults import attempted, failure, some_classes
from flipopt.flips.request import Request
from flipopt.flips.serial import solve_serially
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.results import FlipTable
from flipopt.solvers import Solver

Targets = Literal["nearest", "all"] | ArrayLike

SERIAL_CHUNK = 100
"""Rows of a table where problems are solved one at a time."""


def closest_flip_points(
    network: Network,
    X: ArrayLike,
    targets: Targets = "nearest",
    solver: str | Solver | None = None,
    progress: bool = False,
    **options: Any,
) -> FlipTable:
    """Closest flip points of every row of X.

    Parameters
    ----------
    network, X
        The classifier, and inputs (rows, n_inputs): an array, a tensor or a table. A row that is not finite, or at
        which the network fails, has the status NUMERICAL_ERROR and a message, and costs no other row anything.
    targets
        "nearest": one entry a row, the nearest of all classes. "all": every row with every other class, in order. Or a
        class for each row, (rows,).
    solver
        As in :func:`closest_flip_point`, and so is the default.
    progress
        Show a progress bar.
    options
        All further ones are those of :func:`closest_flip_point`.
    """
    return FlipTable.join(list(stream_flip_points(network, X, targets, solver, progress, **options)))


def stream_flip_points(
    network: Network,
    X: ArrayLike,
    targets: Targets = "nearest",
    solver: str | Solver | None = None,
    progress: bool = False,
    **options: Any,
) -> Iterator[FlipTable]:
    """The table of :func:`closest_flip_points` in pieces, in order, for more rows than should be held in memory."""
    network = as_network(network, X, many=True)
    rows = np.atleast_2d(as_points(X, network, "X", finite=False))
    request = Request.of(network, solver, **options)
    wanted = _wanted(targets, len(rows))
    if len(rows) == 0:
        return iter([FlipTable.of([], [], network.n_inputs)])
    request.require_sound(rows, "X")
    solve = solve_batched if request.batched else _one_by_one
    return _tracked(solve(request, rows, wanted), len(rows), progress)


def _wanted(targets: Any, rows: int) -> Any:
    """ "nearest", "all", or a class for each row."""
    if isinstance(targets, str):
        if targets not in ("nearest", "all"):
            raise InputError(f"targets: expected 'nearest', 'all' or a class for each row, found {targets!r}")
        return targets
    classes = np.asarray(targets)
    if classes.shape != (rows,) or classes.dtype.kind not in "iu":
        raise InputError(f"targets: expected {rows} classes, one a row, found {classes.dtype} {classes.shape}")
    return classes


def _one_by_one(request: Request, X: Array, targets: Any) -> Iterator[FlipTable]:
    for start in range(0, len(X), SERIAL_CHUNK):
        rows, results = [], []
        for row in range(start, min(start + SERIAL_CHUNK, len(X))):
            x = X[row].astype(np.float64)
            (i,), (why,) = request.examined(x[None])
            for target in _row_targets(request, int(i), targets, row):
                classes = some_classes(int(i), None if target is None else [target])
                rows.append(row)
                results.append(
                    failure(x, classes, why, request.solver.name)
                    if why
                    else attempted(partial(solve_serially, request, x, target), x, classes, request.solver.name)
                )
        yield FlipTable.of(rows, results, request.network.n_inputs)


def _row_targets(request: Request, i: int, targets: Any, row: int) -> list[int | None]:
    if not isinstance(targets, str):
        return [int(targets[row])]
    if targets == "nearest":
        return [None]
    return [k for k in range(request.network.n_classes) if k != i]


def _tracked(tables: Iterable[FlipTable], total: int, progress: bool) -> Iterator[FlipTable]:
    with progress_bar("flip points", total, "rows", progress) as advance:
        for table in tables:
            yield table
            advance(int(table.row[-1]) + 1 if len(table) else total)
