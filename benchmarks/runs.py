"""What a run costs beside the plain call, and what processes and Dask workers do beside threads.

The same pairs, from the same network: by threads without a run, by threads into a run, by as many processes, by as many
Dask workers. Each is given all pairs, so starting the workers counts; with several turns the order changes from one to
the next, because the machine's speed does. On a machine that others use too, the processor's time says more than the
clock; Dask workers, which live on, are not in it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import flipopt as fo
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.runs.threads import cores

PAIRS = 100_000
COLUMNS = ("turn", "how", "pairs", "workers", "seconds", "cpu_seconds", "pairs_per_second", "farthest", "verified")
Solve = Callable[[Array], fo.FlipTable]


def points(pairs: int) -> tuple[fo.DenseNetwork, Array]:
    """A shipped network, and its images with noise, as many as have so many pairs of classes."""
    shipped = fo.load_shipped("mnist-fcn")  # quick to solve, so that all else counts for more
    rows = -(-pairs // (shipped.network.n_classes - 1))
    X = np.resize(shipped.X, (rows, shipped.X.shape[1]))
    return shipped.network, X + 0.02 * np.random.default_rng(0).standard_normal(X.shape)


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A Dask client with workers of its own on this machine."""
    import distributed

    local = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with local, distributed.Client(local) as client:
        yield client


def run(out: Path, pairs: int, turns: int, console: Console) -> None:
    """Measure every way, in turns; rows to ``out`` (.csv)."""
    network, X = points(pairs)
    fo.closest_flip_points(network, X[:32], targets="all")  # compiles

    with tempfile.TemporaryDirectory() as folder, cluster(cores()) as client:
        fresh = count()

        def kept(executor: Any) -> Solve:
            return lambda X: _solved(network, X, run=Path(folder) / f"{next(fresh)}", executor=executor)

        ways: dict[str, Solve] = {
            "threads, no run": lambda X: _solved(network, X),
            "threads": kept(None),
            "processes": kept("processes"),
            "Dask workers": kept(client),
        }
        names = list(ways)
        order = [(turn, names[(turn + k) % len(names)]) for turn in range(turns) for k in range(len(names))]
        reference: fo.FlipTable | None = None
        with keeping(out, COLUMNS, console) as add:
            for turn, name in tracked(order, "ways", console):
                started, busy = time.perf_counter(), sum(os.times()[:4])
                table = ways[name](X)
                seconds, busy = time.perf_counter() - started, sum(os.times()[:4]) - busy
                reference = reference or table
                add([_row(turn, name, table, reference, seconds, busy)])


def _solved(network: fo.DenseNetwork, X: Array, **options: Any) -> fo.FlipTable:
    return fo.closest_flip_points(network, X, targets="all", **options)


def _row(turn: int, how: str, table: fo.FlipTable, reference: fo.FlipTable, seconds: float, busy: float) -> Row:
    apart = np.abs(table.distance / reference.distance - 1)
    return {
        "turn": turn,
        "how": how,
        "pairs": len(table),
        "workers": cores(),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(busy, 2),
        "pairs_per_second": round(len(table) / seconds, 1),
        "farthest": float(np.nanmax(apart)),
        "verified": round(float(table.success.mean()), 5),
    }


def show(out: Path, console: Console) -> None:
    """Rates beside those of threads without a run in the same turn."""
    rows = read_rows(out, ("turn", "pairs"), ("seconds", "cpu_seconds", "pairs_per_second", "farthest"))
    plain = {row["turn"]: row["seconds"] for row in rows if row["how"] == "threads, no run"}
    busy = {row["turn"]: row["cpu_seconds"] for row in rows if row["how"] == "threads, no run"}
    threads = {row["turn"]: row["seconds"] for row in rows if row["how"] == "threads"}
    heads = ("time / no run", "CPU / no run", "rate / threads", "largest difference")
    table = Table("turn", "how", "pairs", "seconds", *heads)
    for row in rows:
        turn, seconds = row["turn"], row["seconds"]
        ratios = (seconds / plain[turn], row["cpu_seconds"] / busy[turn], threads.get(turn, np.nan) / seconds)
        cells = (turn, row["how"], row["pairs"], f"{seconds:.1f}", *(f"{ratio:.3f}" for ratio in ratios))
        table.add_row(*map(str, cells), f"{row['farthest']:.1e}")
    console.print(table)
