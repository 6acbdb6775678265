"""BerOpt for a target error: ten queries in every hidden layer of the committed generator, and what it costs."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.gbrrt import LAYERS, TARGET, generator, latent
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.progress import tracked
from flipopt.generative import BerOpt, Generator, essential

QUERIES = 10
OPTIONS = {"concrete": BerOpt(estimator="concrete"), "score": BerOpt(estimator="score")}
"""The relaxation through torch, and forward passes of the ONNX file alone."""
COLUMNS = (
    "query", "layer", "estimator", "target_error", "error", "reached", "units", "active", "essential", "smallest",
    "smallest_error", "lambda", "images", "cpu_seconds", "seconds",
)  # fmt: skip


def run(out: Path, queries: int, scored: int, console: Console) -> None:
    """All queries with the relaxation, and the first ``scored`` of them by the score function; what is in ``out``
    (.csv) is not run again."""
    G = generator()
    wanted = [
        (estimator, query, layer)
        for estimator, count in (("concrete", queries), ("score", scored))
        for query in range(count)
        for layer in LAYERS
    ]
    with keeping(out, COLUMNS, console) as add:
        known = {(row["estimator"], row["query"], row["layer"]) for row in read_rows(out, ("query", "layer"))}
        left = [one for one in wanted if one not in known]
        for estimator, query, layer in tracked(left, "queries and layers", console):
            add([solved(G, query, layer, OPTIONS[estimator])])


def solved(G: Generator, query: int, layer: int, options: BerOpt) -> Row:
    """A query in a layer."""
    started, busy = time.perf_counter(), time.process_time()
    found = essential(G, latent(G, query), layer, target_error=TARGET, options=options)
    return {
        "query": query,
        "layer": layer,
        "estimator": found.estimator,
        "target_error": TARGET,
        "error": round(found.error, 5),
        "reached": int(found.success),
        "units": len(found.mask),
        "active": found.active,
        "essential": int(found.mask.sum()),
        "smallest": int(found.smallest.sum()),
        "smallest_error": round(found.smallest_error, 5),
        "lambda": f"{found.lam:.4g}",
        "images": found.evaluations,
        "cpu_seconds": round(time.process_time() - busy, 2),
        "seconds": round(time.perf_counter() - started, 2),
    }


def show(out: Path, console: Console) -> None:
    """How many queries reach the target in each layer, and with how many units."""
    whole = ("query", "layer", "reached", "units", "active", "essential", "smallest", "images")
    rows = read_rows(out, whole, ("error", "smallest_error", "cpu_seconds", "seconds"))
    table = Table(
        "estimator", "layer", "reached", "largest error", "active", "essential", "smallest", "images", "CPU s"
    )
    for estimator in OPTIONS:
        for layer in LAYERS:
            mine = [row for row in rows if (row["estimator"], row["layer"]) == (estimator, layer)]
            if mine:
                means = {name: sum(row[name] for row in mine) / len(mine) for name in (*whole, "cpu_seconds")}
                counts = (f"{means[name]:,.0f}" for name in ("active", "essential", "smallest", "images"))
                reached, worst = sum(row["reached"] for row in mine), max(row["error"] for row in mine)
                cells = (f"{reached} of {len(mine)}", f"{worst:.4f}", *counts, f"{means['cpu_seconds']:.1f}")
                table.add_row(estimator, str(layer), *cells)
    console.print(table)
