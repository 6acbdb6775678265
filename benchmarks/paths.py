"""Crossings along lines, proved and by samples: what they cost, what is missed; connectivity of a region.

- ``spirals``: small erf and ReLU networks on random lines, against a scan so fine that it misses nothing.
- ``lines``: cifar-200 on lines between test images, proved against adaptive: time, share decided, agreement.
- ``bounds``: how many steps a line would take by the global Lipschitz constant, and by local ones.
- ``orders`` and ``sampling``: other orders of the series, other first samples and safety factors.
- ``regions``: all pairs of samples of one class of cifar-200.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import flipopt as fo
from benchmarks.batch_data import data
from benchmarks.homotopy import cells
from benchmarks.rows import Row, keeping, read_rows
from benchmarks.spirals import spirals
from flipopt.bounds.lipschitz import distance_lower_bound, global_bound
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.common.writing import atomic_path
from flipopt.paths import Crossings, Proving, Sampling, crossings

LINES, SAMPLES = 1000, 1000
SPIRAL_LINES, SCAN = 500, 20001
FEWER, POINTS = 64, 12
"""Lines and points for what takes long."""
ORDERS = (3, 5, 7, 9, 11)
SAMPLINGS = tuple((points, safety) for points in (5, 9, 17) for safety in (1.0, 2.0, 4.0))
COLUMNS = ("part", "what", "figure", "value")
Figures = Iterator[tuple[str, str, float]]


def run(out: Path, parts: list[str], lines: int, samples: int, console: Console) -> None:
    """Measure the parts; a row a figure to ``out`` (.csv)."""
    with keeping(out, COLUMNS, console) as add:
        for part in tracked(parts, "parts", console):
            rows = [
                {"part": part, "what": what, "figure": figure, "value": float(f"{value:.6g}")}
                for what, figure, value in PARTS[part](lines, samples)
            ]
            add(rows)
            show(part, rows, console)
    write_markdown(out.with_suffix(".md"), read_rows(out, real=("value",)))


def write_markdown(path: Path, rows: list[Row]) -> None:
    """For the documentation, a table for each part, or for each set of figures in it: what is measured goes down, and
    figures across."""
    tables = []
    for part in dict.fromkeys(row["part"] for row in rows):
        by_what: dict[str, dict[str, str]] = {}
        for row in rows:
            if row["part"] == part:
                by_what.setdefault(row["what"], {})[row["figure"]] = _shown(row["value"])
        kinds: dict[tuple[str, ...], list[str]] = {}
        for what, values in by_what.items():
            kinds.setdefault(tuple(values), []).append(cells([what, *values.values()]))
        tables += [
            "\n".join([cells([part, *kind]), cells(["---"] * (len(kind) + 1)), *body]) for kind, body in kinds.items()
        ]
    with atomic_path(path) as temporary:
        temporary.write_text("\n\n".join(tables) + "\n")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and value < 1e7 else f"{value:.3g}"


def show(part: str, rows: list[dict[str, object]], console: Console) -> None:
    """The figures of a part."""
    table = Table("what", "figure", "value", title=part)
    for row in rows:
        table.add_row(str(row["what"]), str(row["figure"]), f"{row['value']:g}")
    console.print(table)


def _spirals(lines: int, samples: int) -> Figures:
    A, B = np.random.default_rng(2).uniform(-1.2, 1.2, size=(2, SPIRAL_LINES, 2))
    alphas = np.linspace(0, 1, SCAN)[:, None]
    for kind in ("erf", "relu"):
        net = spirals(kind)
        scan = np.array(
            [(np.diff(net.predict((1 - alphas) * a + alphas * b)) != 0).sum() for a, b in zip(A, B, strict=True)]
        )
        yield f"spirals, {kind}", "lines", SPIRAL_LINES
        yield f"spirals, {kind}", "crossings of the scan", float(scan.sum())
        for mode in ("proved", "adaptive"):
            found = crossings(net, A, B, mode)
            yield f"spirals, {kind}, {mode}", "crossings", len(found)
            yield f"spirals, {kind}, {mode}", "lines with fewer than the scan", float((found.count < scan).sum())
            yield f"spirals, {kind}, {mode}", "share decided", float(found.decided.mean())
            yield f"spirals, {kind}, {mode}", "evaluations a line", float(found.evaluations.mean())


def images(count: int) -> tuple[fo.DenseNetwork, Array, Array]:
    """cifar-200, and the ends of lines between random pairs of the first test images."""
    known, rng = data("cifar-200"), np.random.default_rng(0)
    pairs = np.array([rng.choice(len(known.X), 2, replace=False) for _ in range(count)])
    return known.network, known.X[pairs[:, 0]], known.X[pairs[:, 1]]


def _lines(lines: int, samples: int) -> Figures:
    net, A, B = images(lines)
    for mode in ("adaptive", "proved"):
        crossings(net, A[:4], B[:4], mode)  # compiles
    found: dict[str, Crossings] = {}
    spent: dict[str, float] = {}
    for mode in ("adaptive", "proved"):
        started, used = time.perf_counter(), time.process_time()
        found[mode] = crossings(net, A, B, mode, progress=True)
        spent[mode] = time.process_time() - used
        yield f"cifar-200, {mode}", "seconds", time.perf_counter() - started
        yield f"cifar-200, {mode}", "seconds of all cores", spent[mode]
        yield f"cifar-200, {mode}", "crossings", len(found[mode])
        yield f"cifar-200, {mode}", "share decided", float(found[mode].decided.mean())
        yield f"cifar-200, {mode}", "evaluations a line", float(found[mode].evaluations.mean())
    proved, sampled = found["proved"], found["adaptive"]
    same = proved.count == sampled.count
    yield "cifar-200", "lines", len(A)
    yield "cifar-200", "proved over adaptive, seconds of all cores", spent["proved"] / spent["adaptive"]
    yield "cifar-200", "lines with other crossings in adaptive mode", float((~same).sum())
    both = [table.alpha[same[table.line]] for table in (proved, sampled)]
    yield "cifar-200", "largest difference of alpha", float(np.abs(both[0] - both[1]).max(initial=0.0))
    yield "cifar-200", "lines without a crossing", float((proved.count == 0).mean())
    yield "cifar-200", "most crossings of a line", float(proved.count.max())


def _bounds(lines: int, samples: int) -> Figures:
    """A step of length s is proved where the lead exceeds s times the constant; steps add up to the line."""
    net, A, B = images(POINTS)
    alphas = (np.arange(POINTS) + 0.5) / POINTS
    L = np.sqrt(2) * global_bound(net)  # of a difference of two logits
    by_constant, by_ball = [], []
    for a, b in zip(A, B, strict=True):
        length, X = np.linalg.norm(b - a), a + alphas[:, None] * (b - a)
        Y = np.sort(net.logits(X), axis=1)
        by_constant.append(np.mean(length * L / (2 * (Y[:, -1] - Y[:, -2]))))
        by_ball.append(np.mean([length / (2 * distance_lower_bound(net, x)) for x in X[::4]]))
    yield "cifar-200", "global Lipschitz constant", global_bound(net)
    yield "cifar-200", "steps a line by the global constant", float(np.mean(by_constant))
    yield "cifar-200", "steps a line by local constants", float(np.mean(by_ball))
    expansions = crossings(net, A, B).evaluations.mean() / (Proving().order + 4)
    yield "cifar-200", "expansions a line", float(expansions)


def _orders(lines: int, samples: int) -> Figures:
    net, A, B = images(FEWER)
    for order in ORDERS:
        used = time.process_time()
        found = crossings(net, A, B, options=Proving(order=order))
        yield f"order {order}", "ms of a core, a line", (time.process_time() - used) / FEWER * 1e3
        yield f"order {order}", "expansions a line", float(found.evaluations.mean() / (order + 4))
        yield f"order {order}", "share decided", float(found.decided.mean())


def _sampling(lines: int, samples: int) -> Figures:
    net, A, B = images(lines)
    finest = crossings(net, A, B, "adaptive", options=Sampling(65, 8.0))
    for points, safety in SAMPLINGS:
        found = crossings(net, A, B, "adaptive", options=Sampling(points, safety))
        yield f"{points} points, safety {safety:g}", "evaluations a line", float(found.evaluations.mean())
        missed = float((found.count < finest.count).sum())
        yield f"{points} points, safety {safety:g}", "lines with fewer crossings than 65 points, safety 8", missed


def _regions(lines: int, samples: int) -> Figures:
    known = data("cifar-200")
    X = np.concatenate([known.X, known.rest()]) if known.rest else known.X
    classes = known.network.predict(X)
    larger = int(np.bincount(classes).argmax())
    started, used = time.perf_counter(), time.process_time()
    c = fo.regions.connectivity(known.network, X[classes == larger][:samples], progress=True)
    what = f"cifar-200, {len(c)} samples of class {larger}"
    yield what, "seconds", time.perf_counter() - started
    yield what, "seconds of all cores", time.process_time() - used
    yield what, "lines", c.n_lines
    yield what, "evaluations a line", c.evaluations
    yield what, "share inside", c.share
    yield what, "components", c.n_components
    yield what, "centres", len(c.centres)
    yield what, "fewest neighbours", float(c.degrees.min())
    yield what, "largest memory, GB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


PARTS: dict[str, Callable[[int, int], Figures]] = {
    "spirals": _spirals,
    "lines": _lines,
    "bounds": _bounds,
    "orders": _orders,
    "sampling": _sampling,
    "regions": _regions,
}
