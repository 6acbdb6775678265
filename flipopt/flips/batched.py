"""Many problems at once by the batch solver, in chunks on all cores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.flips.inside import NOT_INSIDE, crossed, settled, step_inside
from flipopt.flips.request import Request, checked_targets
from flipopt.problem import Evaluations, FlipBatch
from flipopt.results import FlipResult, FlipTable, Status, best_first
from flipopt.runs.threads import even_share, in_order, one_blas_thread
from flipopt.solvers import Batch
from flipopt.verification import verify

if TYPE_CHECKING:
    from flipopt.solvers.batch.result import BatchResult


@dataclass(frozen=True)
class Chunk:
    """Problems that are solved together: the row of each, and groups of those that belong to one entry."""

    batch: FlipBatch
    row: Array
    groups: Array | None


def solve_batched(request: Request, X: Array, targets: Any) -> Iterator[FlipTable]:
    """Tables of the flips of consecutive rows of X, made as they are needed."""

    def solve(chunk: Chunk) -> FlipTable:
        started = time.perf_counter()
        wide = _with_runners_up(request, chunk)
        table = _table(wide, _solved(request, wide), time.perf_counter() - started)
        if wide is not chunk:
            i = request.sources(X[chunk.row[_firsts(wide, chunk)]].astype(np.float64))
            classes = np.column_stack([i, table.classes[:, 1]])
            table = replace(table, row=chunk.row[_firsts(wide, chunk)], classes=classes)
        return _inside(request, X, table) if request.valid else table

    return in_order(solve, _chunks(request, X, targets))


def solve_as_batch(request: Request, x: Array, target: int | None) -> FlipResult:
    """The closest flip of one input: the row of a table, with the check of its point."""
    started = time.perf_counter()
    source = int(request.sources(x[None])[0])
    wanted: Any = "nearest" if target is None else np.array(checked_targets(request.network, target, source))
    (chunk,) = _chunks(request, x[None], wanted)
    chunk = _with_runners_up(request, chunk)
    with one_blas_thread():
        result = _solved(request, chunk)
        kept = np.flatnonzero(~result.dropped)
        k = int(kept[best_first(result.solved[kept], result.distance[kept])[0]])
        problem = chunk.batch.problem(k)
        check = verify(problem, result.x[k], request.network)
    flip = FlipResult(
        x=result.x[k],
        distance=float(result.distance[k]),
        classes=(source, problem.classes[1]),
        status=result.status[k],
        message=str(result.message[k]),
        check=check,
        evaluations=Evaluations(int(result.forward.sum()), int(result.backward.sum())),
        iterations=int(result.iterations[k]),
        elapsed=time.perf_counter() - started,
        solver=str(result.solver[k]),
        starts=int(result.starts[k]),
        agreeing=int(result.agreeing[k]),
        settled=bool(_settled(chunk, result).all()),
    )
    return step_inside(request.network, chunk.batch.take(slice(k, k + 1)), flip) if request.valid else flip


def _solved(request: Request, chunk: Chunk) -> BatchResult:
    from flipopt.solvers.batch.engine import solve_chunk

    assert isinstance(request.solver, Batch)
    starts = int(request.starts)  # type: ignore[arg-type]
    batch = chunk.batch
    result = solve_chunk(batch, request.solver.plan, starts, request.samples, request.seed, chunk.groups)
    return replace(result, x=settled(batch, result.x)) if request.setting.constraints else result


def _chunks(request: Request, X: Array, targets: Any) -> Iterator[Chunk]:
    """Problems of consecutive rows; those of a row stay together."""
    assert isinstance(request.solver, Batch)
    every, count = isinstance(targets, str), request.network.n_classes
    size = request.solver.chunk_size(request.setting)
    size = max(1, size // (count - 1)) if request.led else size
    step = even_share(len(X), max(1, size // (count - 1)) if every else size)
    for start in range(0, len(X), step):
        rows = np.arange(start, min(start + step, len(X)))
        points = X[rows].astype(np.float64)
        request.setting.require_possible(points)
        i = request.sources(points)
        if every:
            others = np.array([[k for k in range(count) if k != own] for own in i])
            row, j = np.repeat(rows, others.shape[1]), others.reshape(-1)
        else:
            row, j = rows, _others(targets[rows], i, count)
        own = row - start
        classes = np.column_stack([i[own], j])
        batch = FlipBatch(request.setting, points[own], classes, request.margin, beyond=request.beyond)
        yield Chunk(batch, row, own if every and targets == "nearest" else None)


def _with_runners_up(request: Request, chunk: Chunk) -> Chunk:
    """Where j must lead all classes: every problem once for each runner-up, in groups that are entries of the chunk."""
    if not request.led:
        return chunk
    j = chunk.batch.classes[:, 1]
    runners = np.array([[k for k in range(request.network.n_classes) if k != own] for own in j])
    each = np.repeat(np.arange(len(j)), runners.shape[1])
    batch = replace(chunk.batch.take(each), classes=np.column_stack([runners.reshape(-1), j[each]]))
    entry = each if chunk.groups is None else chunk.groups[each]
    return Chunk(batch, entry, entry)


def _firsts(wide: Chunk, chunk: Chunk) -> Array:
    """The first problem of the chunk of every group of the wide one."""
    return np.unique(wide.row) if chunk.groups is None else np.unique(chunk.groups, return_index=True)[1]


def _others(j: Array, i: Array, classes: int) -> Array:
    for k in np.flatnonzero((j < 0) | (j >= classes)):
        raise InputError(f"target: expected a class from 0 to {classes - 1}, found {j[k]}")
    for k in np.flatnonzero(j == i):
        raise InputError(f"target: expected classes other than the source {i[k]}, found {j[k]}")
    return j


def _table(chunk: Chunk, result: BatchResult, elapsed: float) -> FlipTable:
    """The entries of a chunk, reduced to the nearest of every group where that was asked for."""
    table = FlipTable(
        row=chunk.row,
        classes=chunk.batch.classes,
        x=result.x,
        distance=result.distance,
        status=result.status,
        solver=result.solver,
        kkt_residual=result.kkt_residual,
        boundary_gap=result.boundary_gap,
        evaluations=result.forward + result.backward,
        elapsed=np.full(len(chunk.row), elapsed / max(len(chunk.row), 1)),
        message=result.message,
        starts=result.starts,
        agreeing=result.agreeing,
        settled=np.ones(len(chunk.row), dtype=bool),
    )
    settled = _settled(chunk, result)
    return replace(table, settled=settled) if chunk.groups is None else _nearest(table, result, settled)


def _settled(chunk: Chunk, result: BatchResult) -> Array:
    """Whether there is no doubt that each entry is the nearest flip to its class or classes, (entries,)."""
    if chunk.groups is not None:
        return result.settled(np.unique(chunk.row, return_index=True)[1])
    each = np.arange(len(result))
    return result.settled(each) | np.isnan(result.lower)


def _inside(request: Request, X: Array, table: FlipTable) -> FlipTable:
    """The points of a table moved inside their classes j; where there is none to be found, the status says so."""
    rows = np.flatnonzero(np.isfinite(table.distance))
    points = X[table.row[rows]].astype(np.float64)
    batch = FlipBatch(request.setting, points, table.classes[rows], request.margin, beyond=request.beyond)
    with one_blas_thread():
        there, sure = crossed(request.network, batch, table.x[rows])
    x, distance, status, message = (getattr(table, name).copy() for name in ("x", "distance", "status", "message"))
    x[rows], distance[rows] = there, batch.distances(there)
    status[rows[~sure & table.success[rows]]] = Status.ON_BOUNDARY
    message[rows[~sure]] = NOT_INSIDE
    return replace(table, x=x, distance=distance, status=status, message=message)


def _nearest(table: FlipTable, result: BatchResult, settled: Array) -> FlipTable:
    """One entry a row, with the cost of all its classes."""
    near = table[~result.dropped].nearest()
    first = np.searchsorted(table.row, near.row)
    return replace(
        near,
        settled=settled,
        evaluations=np.add.reduceat(table.evaluations, first),
        elapsed=np.add.reduceat(table.elapsed, first),
    )
