"""Many problems at once by the batch solver."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.flips.faults import failure, isolated
from flipopt.flips.inside import NOT_INSIDE, crossed, settled, step_inside
from flipopt.flips.request import Request, checked_targets
from flipopt.problem import Evaluations, FlipBatch
from flipopt.results import FlipResult, FlipTable, Status, best_first
from flipopt.runs.threads import even_share, one_blas_thread
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
    why: Array
    """Why a problem's input cannot be evaluated, else "", (problems,)."""

    def of(self, rows: Array) -> Chunk:
        """The problems of these rows of the inputs."""
        mine = np.flatnonzero(np.isin(self.row, rows))
        groups = None if self.groups is None else np.unique(self.groups[mine], return_inverse=True)[1]
        return Chunk(self.batch.take(mine), self.row[mine], groups, self.why[mine])


def rows_at_once(request: Request, rows: int, targets: Any) -> int:
    """How many of so many rows make a chunk, so that every core gets as many."""
    assert isinstance(request.solver, Batch)
    others = request.network.n_classes - 1
    size = request.solver.chunk_size(request.setting)
    size = max(1, size // others) if request.led else size
    return even_share(rows, max(1, size // others) if isinstance(targets, str) else size)


def solve_batched(request: Request, X: Array, targets: Any) -> FlipTable:
    """The flips of the rows of X, as one chunk. No row costs the others: what cannot be solved has a status."""
    chunk = _chunk(request, X, targets)
    rows, bad = np.arange(len(X)), np.unique(chunk.row[chunk.why != ""])
    tables = isolated(
        lambda some: _solve(request, X, chunk if len(some) == len(rows) else chunk.of(some)),
        np.setdiff1d(rows, bad),
        lambda some, why: _failed(request, chunk.of(some), why),
    )
    if len(bad) == 0:
        return FlipTable.join(tables)
    table = FlipTable.join([*tables, _failed(request, chunk.of(bad), None)])
    return table[np.argsort(table.row, kind="stable")]


def _solve(request: Request, X: Array, chunk: Chunk) -> FlipTable:
    started = time.perf_counter()
    wide = _with_runners_up(request, chunk)
    table = table_of(wide, _solved(request, wide), time.perf_counter() - started)
    if wide is not chunk:
        row = chunk.row[_firsts(wide, chunk)]
        i = request.sources(X[row].astype(np.float64))
        table = replace(table, row=row, classes=np.column_stack([i, table.classes[:, 1]]))
    return _inside(request, X, table) if request.valid else table


def solve_as_batch(request: Request, x: Array, target: int | None) -> FlipResult:
    """The closest flip of one input: the row of a table, with the check of its point."""
    started = time.perf_counter()
    source = int(request.sources(x[None])[0])
    wanted: Any = "nearest" if target is None else np.array(checked_targets(request.network, target, source))
    chunk = _with_runners_up(request, _chunk(request, x[None], wanted))
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


def _failed(request: Request, chunk: Chunk, why: str | None) -> FlipTable:
    """The entries of a chunk that could not be solved, because of ``why``, or of what is known of its inputs."""
    first = np.arange(len(chunk.row)) if chunk.groups is None else np.unique(chunk.groups, return_index=True)[1]
    results = [
        failure(chunk.batch.X[k], tuple(chunk.batch.classes[k]), why or str(chunk.why[k]), request.solver.name)
        for k in first
    ]
    return replace(FlipTable.of(chunk.row[first].tolist(), results, request.network.n_inputs), results=())


def _chunk(request: Request, X: Array, targets: Any) -> Chunk:
    """The problems of the rows of X; those of a row are neighbours."""
    every, count, rows = isinstance(targets, str), request.network.n_classes, np.arange(len(X))
    points = X.astype(np.float64)
    request.setting.require_possible(points)
    i, why = request.examined(points)
    if every:
        others = np.array([[k for k in range(count) if k != own] for own in i])
        row, j = np.repeat(rows, others.shape[1]), others.reshape(-1)
    else:
        i = np.where((why != "") & (i == targets), (targets + 1) % count, i)
        row, j = rows, _others(targets, i, count)
    classes = np.column_stack([i[row], j])
    batch = FlipBatch(request.setting, points[row], classes, request.margin, beyond=request.beyond)
    return Chunk(batch, row, row if every and targets == "nearest" else None, why[row])


def _with_runners_up(request: Request, chunk: Chunk) -> Chunk:
    """Where j must lead all classes: every problem once for each runner-up, in groups that are entries of the chunk."""
    if not request.led:
        return chunk
    j = chunk.batch.classes[:, 1]
    runners = np.array([[k for k in range(request.network.n_classes) if k != own] for own in j])
    each = np.repeat(np.arange(len(j)), runners.shape[1])
    batch = replace(chunk.batch.take(each), classes=np.column_stack([runners.reshape(-1), j[each]]))
    entry = each if chunk.groups is None else chunk.groups[each]
    return Chunk(batch, entry, entry, chunk.why[each])


def _firsts(wide: Chunk, chunk: Chunk) -> Array:
    """The first problem of the chunk of every group of the wide one."""
    return np.unique(wide.row) if chunk.groups is None else np.unique(chunk.groups, return_index=True)[1]


def _others(j: Array, i: Array, classes: int) -> Array:
    for k in np.flatnonzero((j < 0) | (j >= classes)):
        raise InputError(f"target: expected a class from 0 to {classes - 1}, found {j[k]}")
    for k in np.flatnonzero(j == i):
        raise InputError(f"target: expected classes other than the source {i[k]}, found {j[k]}")
    return j


def table_of(chunk: Chunk, result: BatchResult, elapsed: float) -> FlipTable:
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
        lower_bound=np.full(len(chunk.row), np.nan),
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
