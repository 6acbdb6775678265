"""The public verbs for many inputs: their closest flip points, all at once or a chunk at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.flips.one import checked_class, closest_flip_point
from flipopt.networks.protocol import Network
from flipopt.problem import FlipBatch, Setting, flip_batch
from flipopt.results import FlipTable
from flipopt.runs.threads import even_share, in_order
from flipopt.solvers import Batch, BatchResult, Solver, as_solver
from flipopt.solvers.batch import Samples
from flipopt.solvers.starts import number_of_starts

Targets = Literal["nearest", "all"] | ArrayLike

OPTIONS = {
    *("source", "norm", "bounds", "frozen", "weights", "margin", "constraints", "integers", "one_of", "outputs"),
    *("homotopy", "starts", "towards", "seed"),
}
SETTING = ("bounds", "frozen", "weights", "norm", "constraints", "outputs")
"""Options that all problems have in common."""
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
        The classifier, and inputs (rows, n_inputs).
    targets
        "nearest": one entry a row, the nearest of all classes. "all": every row with every other class, in order. Or a
        class for each row, (rows,).
    solver
        As in :func:`closest_flip_point`. By default the batch solver, ``fo.solvers.Batch()``, which solves many
        problems at once; where it cannot take the problem (other norms, further constraints, discrete features, a
        homotopy, probabilities), IPOPT.
    progress
        Show a progress bar.
    options
        All further ones are those of :func:`closest_flip_point`. For the batch solver ``starts`` is a number: the first
        start is x through softened networks, then come a point behind x, x through softer networks and without them,
        boundary points towards those samples in ``towards`` that the network puts in the target class, nearest first,
        and random points.
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
    rows = np.atleast_2d(as_rows(X, network.n_inputs, "X"))
    unknown = set(options) - OPTIONS
    if unknown:
        raise InputError(f"options: expected {', '.join(sorted(OPTIONS))}, found {', '.join(sorted(unknown))}")
    wanted = _checked_targets(network, targets, len(rows))
    chosen = _choose(network, solver, options)
    if len(rows) == 0:
        return iter([FlipTable.of([], [], network.n_inputs)])
    if isinstance(chosen, Batch) and _batchable(network, chosen, options):
        tables = _batched(network, rows, wanted, chosen, options)
    else:
        tables = _one_by_one(network, rows, wanted, chosen, options)
    return _tracked(tables, len(rows), progress)


def _choose(network: Network, solver: str | Solver | None, options: dict[str, Any]) -> Solver:
    """The solver that was asked for, or the best for the problem."""
    if solver is not None:
        return as_solver(solver)
    return as_solver("batch" if _batchable(network, Batch(), options) else "ipopt")


def _batchable(network: Network, solver: Batch, options: dict[str, Any]) -> bool:
    """Whether the problems that the options describe can be solved as a batch."""
    if options.get("homotopy") is not None or options.get("integers") is not None or len(options.get("one_of", ())):
        return False
    if np.ndim(options.get("starts", 1)) > 0:
        return False
    shared = {name: options[name] for name in SETTING if name in options}
    return solver.cannot(Setting.of(network, **shared)) is None


def _checked_targets(network: Network, targets: Any, rows: int) -> Any:
    """ "nearest", "all", or a class for each row."""
    if isinstance(targets, str):
        if targets not in ("nearest", "all"):
            raise InputError(f"targets: expected 'nearest', 'all' or a class for each row, found {targets!r}")
        return targets
    classes = np.asarray(targets)
    if classes.shape != (rows,) or classes.dtype.kind not in "iu":
        raise InputError(f"targets: expected {rows} classes, one a row, found {classes.dtype} {classes.shape}")
    return classes


# One at a time


def _one_by_one(
    network: Network, X: Array, targets: Any, solver: Solver, options: dict[str, Any]
) -> Iterator[FlipTable]:
    for start in range(0, len(X), SERIAL_CHUNK):
        rows, results = [], []
        for row in range(start, min(start + SERIAL_CHUNK, len(X))):
            for target in _row_targets(network, X[row], targets, row, options.get("source")):
                rows.append(row)
                results.append(closest_flip_point(network, X[row], target, solver=solver, **options))
        yield FlipTable.of(rows, results, network.n_inputs)


def _row_targets(network: Network, x: Array, targets: Any, row: int, source: int | None) -> list[int | None]:
    if not isinstance(targets, str):
        return [int(targets[row])]
    if targets == "nearest":
        return [None]
    i = int(network.predict(x)) if source is None else source
    return [k for k in range(network.n_classes) if k != i]


# As batches


@dataclass(frozen=True)
class _Chunk:
    """Problems that are solved together: the row of each, and groups of those that belong to one entry."""

    batch: FlipBatch
    row: Array
    groups: Array | None


def _batched(network: Network, X: Array, targets: Any, solver: Batch, options: dict[str, Any]) -> Iterator[FlipTable]:
    """Chunks of the problems on all cores, made as they are needed."""
    starts, seed = number_of_starts(options.get("starts", 1)), options.get("seed", 0)
    towards = options.get("towards")
    if towards is not None:
        towards = Samples.of(network, np.atleast_2d(as_rows(towards, network.n_inputs, "towards")).astype(np.float64))
    shared = {name: options[name] for name in (*SETTING, "margin") if name in options}
    size = solver.chunk_size(Setting.of(network, **{name: shared[name] for name in SETTING if name in shared}))
    chunks = _chunks(network, X, targets, options.get("source"), size, shared)

    def solve(chunk: _Chunk) -> FlipTable:
        started = time.perf_counter()
        result = solver.solve_chunk(chunk.batch, starts, towards, seed, chunk.groups)
        return _table(chunk, result, time.perf_counter() - started)

    return in_order(solve, chunks)


def _chunks(
    network: Network, X: Array, targets: Any, source: int | None, size: int, shared: dict[str, Any]
) -> Iterator[_Chunk]:
    """Problems of consecutive rows; those of a row stay together."""
    every = isinstance(targets, str)
    step = even_share(len(X), max(1, size // (network.n_classes - 1)) if every else size)
    for start in range(0, len(X), step):
        rows = np.arange(start, min(start + step, len(X)))
        points = X[rows].astype(np.float64)
        i = (
            np.asarray(network.predict(points))
            if source is None
            else np.full(len(rows), checked_class(network, source, "source"))
        )
        if every:
            others = np.array([[k for k in range(network.n_classes) if k != own] for own in i])
            row, j = np.repeat(rows, others.shape[1]), others.reshape(-1)
        else:
            row, j = rows, _others(network, targets[rows], i)
        own = row - start
        batch = flip_batch(network, points[own], np.column_stack([i[own], j]), **shared)
        yield _Chunk(batch, row, own if every and targets == "nearest" else None)


def _others(network: Network, j: Array, i: Array) -> Array:
    for k in np.flatnonzero((j < 0) | (j >= network.n_classes)):
        raise InputError(f"target: expected a class from 0 to {network.n_classes - 1}, found {j[k]}")
    for k in np.flatnonzero(j == i):
        raise InputError(f"target: expected classes other than the source {i[k]}, found {j[k]}")
    return j


def _table(chunk: _Chunk, result: BatchResult, elapsed: float) -> FlipTable:
    """The entries of a chunk, reduced to the nearest of every group where that was asked for."""
    table = FlipTable(
        row=chunk.row,
        classes=chunk.batch.classes,
        x=result.x,
        distance=result.distance,
        status=result.status,
        kkt_residual=result.kkt_residual,
        boundary_gap=result.boundary_gap,
        evaluations=result.forward + result.backward,
        elapsed=np.full(len(chunk.row), elapsed / max(len(chunk.row), 1)),
        message=result.message,
        starts=result.starts,
        agreeing=result.agreeing,
        settled=np.ones(len(chunk.row), dtype=bool),
        solver=np.full(len(chunk.row), "batch", dtype=object),
    )
    return table if chunk.groups is None else _nearest(table, result)


def _nearest(table: FlipTable, result: BatchResult) -> FlipTable:
    """One entry a row, with the cost of all its classes."""
    near = table[~result.dropped].nearest()
    ended = result.solved & ~result.dropped
    first = np.searchsorted(table.row, near.row)
    return replace(
        near,
        settled=np.logical_and.reduceat(ended, first),
        evaluations=np.add.reduceat(table.evaluations, first),
        elapsed=np.add.reduceat(table.elapsed, first),
    )


def _tracked(tables: Iterable[FlipTable], total: int, progress: bool) -> Iterator[FlipTable]:
    with progress_bar("flip points", total, "rows", progress) as advance:
        for table in tables:
            yield table
            advance(int(table.row[-1]) + 1 if len(table) else total)
