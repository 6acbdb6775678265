"""Closest flip points of many inputs, all at once or a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_targets
from flipopt.common.progress import progress_bar
from flipopt.flips.request import Request
from flipopt.flips.work import KIND, description, work_of
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.results import FlipTable
from flipopt.runs.computing import compute
from flipopt.runs.executors import as_executor, in_turn
from flipopt.runs.store import Run
from flipopt.runs.work import Executor, Work
from flipopt.solvers import Solver

Targets = Literal["nearest", "all"] | ArrayLike


def closest_flip_points(
    network: Network,
    X: ArrayLike,
    targets: Targets = "nearest",
    solver: str | Solver | None = None,
    progress: bool = False,
    run: str | Path | None = None,
    executor: Any = None,
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
    run
        A folder that keeps what is finished: the same call goes on where an earlier one was stopped, and one with
        another network, other data or options is refused. :func:`flipopt.runs.open` and anything that reads Parquet
        look into it.
    executor
        Who does the work: None for threads, "processes", or a ``dask.distributed`` client or its address.
    options
        All further ones are those of :func:`closest_flip_point`.
    """
    return FlipTable.join(list(stream_flip_points(network, X, targets, solver, progress, run, executor, **options)))


def stream_flip_points(
    network: Network,
    X: ArrayLike,
    targets: Targets = "nearest",
    solver: str | Solver | None = None,
    progress: bool = False,
    run: str | Path | None = None,
    executor: Any = None,
    **options: Any,
) -> Iterator[FlipTable]:
    """The table of :func:`closest_flip_points` in pieces, in order, for more rows than should be held in memory."""
    network = as_network(network, X, many=True)
    rows = np.atleast_2d(as_points(X, network, "X", finite=False))
    request = Request.of(network, solver, **options)
    wanted = as_targets(targets, len(rows))
    if len(rows) == 0:
        return iter([FlipTable.of([], [], network.n_inputs)])
    request.require_sound(rows, "X")
    who = as_executor(executor)
    if run is None:
        return _tracked(in_turn(who, work_of(request, rows, wanted)), len(rows), progress)
    kept = begun(run, request, rows, wanted)
    return _kept(kept, work_of(request, rows, wanted, kept.step), who, progress)


def begun(folder: str | Path, request: Request, X: Array, targets: Any) -> Run:
    """The run of a request in a folder, new or there already."""
    step = work_of(request, X, targets).step
    return Run.begin(folder, KIND, description(request, X, targets), len(X), step)


def _kept(run: Run, work: Work[FlipTable], executor: Executor, progress: bool) -> Iterator[FlipTable]:
    """The tables of a run, all of whose rows are done first."""
    compute(run, work, executor, FlipTable.to_arrow, "rows", progress)
    yield from (FlipTable.from_arrow(table) for table in run.tables())


def _tracked(tables: Iterable[FlipTable], total: int, progress: bool) -> Iterator[FlipTable]:
    with progress_bar("flip points", total, "rows", progress) as advance:
        for table in tables:
            yield table
            advance(int(table.row[-1]) + 1 if len(table) else total)
