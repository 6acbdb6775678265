"""The batch solver against IPOPT one at a time and against attack libraries: how close, how fast, how sure?

The images are the first test images of MNIST and CIFAR-10. The constants come from images beyond the first thousand:
those of the iteration from 200 pairs, those of the softened networks, of giving classes up and of further looks from
the same pairs and from up to nine thousand images of each network, where peers or many starts were run too. Not
everything is held out: what is done with problems that are left over, and the size of chunks, was changed after a look
at the part ``speed``; when classes of ReLU networks are given up and looked at again, and the looks at cheap inputs,
after a look at the tables of peers, with values from other images. The rows of a part are kept when it is done, and
``python -m benchmarks batch`` goes on where it was stopped; times are compared only within a part.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks import batch_report
from benchmarks.batch_data import IMAGES, Data, Measured, compared, data, random_pairs, timed
from benchmarks.batch_ipopt import closeness
from benchmarks.batch_peers import peers, turns
from benchmarks.batch_sensitivity import sensitivity
from benchmarks.clock import Clock, peak
from benchmarks.rows import keeping, read_rows
from flipopt.common.checks import Array
from flipopt.features.shipped import SHIPPED
from flipopt.flips.many import closest_flip_points, stream_flip_points
from flipopt.flips.one import closest_flip_point
from flipopt.problem import flip_batch, flip_problem
from flipopt.results import FlipTable
from flipopt.runs.threads import cores
from flipopt.solvers import Batch, Ipopt

__all__ = ["IMAGES", "PAIRS", "PARTS", "Data", "data", "figures", "measure_scale", "random_pairs", "run", "show"]

PAIRS = 300
ALONE = 40
"""Inputs that are solved one at a time."""
SAMPLE, TURNS = 60, 5
"""Pairs that IPOPT is timed with, and in how many turns with the batch solver."""
FIGURES = ("part", "what", "figure", "value")


def figures(out: Path) -> dict[tuple[str, str, str], float]:
    """(part, what, name of the figure) to its value, of the parts so far."""
    return {(row["part"], row["what"], row["figure"]): row["value"] for row in read_rows(out, (), ("value",))}


def run(out: Path, parts: Iterable[str], images: int, pairs: int, folder: str, console: Console) -> None:
    """Measure the parts that are not in ``out`` (.csv) yet."""
    measure_missing(out, {part: partial(PARTS[part], out, images, pairs, folder, console) for part in parts}, console)


def measure_missing(out: Path, parts: Mapping[str, Callable[[], Measured]], console: Console) -> None:
    """Measure the parts that are not in ``out`` (.csv) yet, each into rows of its own."""
    for part, measure in parts.items():
        with keeping(out, FIGURES, console) as add:
            if any(key[0] == part for key in figures(out)):
                continue
            console.print(f"part {part}")
            measured = measure()
            add({"part": part, "what": what, "figure": name, "value": value} for what, name, value in measured)


def show(out: Path, console: Console) -> None:
    """Tables in the terminal, for the documentation, and the picture."""
    known = figures(out)
    batch_report.show(known, console)
    batch_report.write_markdown(out.with_suffix(".md"), known)
    batch_report.draw(out.with_suffix(".png"), known)
    console.print(f"figures in {out}, tables and a picture for the documentation beside it")


def speed(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """All pairs and nearest-class pairs of the images, against IPOPT one at a time on some of them, in turns."""
    here = data("mnist-net1")
    X = here.X[:images]
    clock = Clock(here.network)
    closest_flip_points(here.network, X[:2])  # compiles
    found: Measured = []
    every = timed(lambda: closest_flip_points(clock, X, "all", progress=True))
    table, seconds = every.value, every.seconds
    nearest = table.nearest()
    found += [
        ("all pairs", "pairs", float(len(table))),
        ("all pairs", "verified", float(table.success.mean())),
        ("all pairs", "ms a pair", 1e3 * seconds / len(table)),
        ("all pairs", "evaluations a pair", float(table.evaluations.mean())),
        ("all pairs", "by another solver", float(np.mean([str(word).startswith("by ") for word in table.message]))),
    ]
    for dtype, tally in clock.tallies.items():
        found += [
            (dtype, "share of the time in the network", tally.seconds / (seconds * cores())),
            (dtype, "Gflop/s of a core in the network", tally.rate),
            (dtype, "Gflop/s of a core, matrix products", peak(dtype)),
        ]
    j = nearest.classes[:, 1]
    sample = np.random.default_rng(1).choice(len(table), SAMPLE, replace=False)
    hard, easy = table[np.sort(sample)], nearest[np.sort(sample % images)]
    found.append(("all pairs", "ms a pair by ipopt", float(np.mean(_ipopt_ms(here, X, hard)))))
    # These take a second or two, in which a noisy machine may be twice as slow: in turns with IPOPT.
    ours, theirs = [], []
    for some in np.array_split(np.arange(len(easy)), TURNS):
        given = timed(lambda: closest_flip_points(here.network, X, j))
        ours.append(1e3 * given.seconds / len(X))
        theirs += _ipopt_ms(here, X, easy[some])
    found.append(("nearest pairs", "ms a pair", float(np.mean(ours))))
    found.append(("nearest pairs", "verified", float(given.value.success.mean())))
    found.append(("nearest pairs", "ms a pair by ipopt", float(np.mean(theirs))))
    own = timed(lambda: closest_flip_points(here.network, X))
    found += [
        ("nearest of all", "ms an image", 1e3 * own.seconds / len(X)),
        ("nearest of all", "verified", float(own.value.success.mean())),
        ("nearest of all", "farther than by all pairs", float((own.value.distance > nearest.distance * 1.001).mean())),
    ]
    return found


def _ipopt_ms(here: Data, X: Array, table: FlipTable) -> list[float]:
    """Milliseconds that IPOPT takes from x for each of the table's pairs, one at a time."""
    pairs = zip(table.row, table.classes.tolist(), strict=True)
    return [1e3 * Ipopt().solve(flip_problem(here.network, X[k], c), None, here.network).elapsed for k, c in pairs]


def softening(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """What softened networks bring: random pairs of the erf network and the nearest class of the ReLU network, with
    and without them."""
    found: Measured = []
    for name, count in (("mnist-net1", pairs), ("mnist-fcn", min(pairs, 100))):
        here = data(name)
        rows, classes = random_pairs(here.network, here.X, count, seed=5)
        X = here.X[rows].astype(np.float64)
        targets = classes[:, 1] if name == "mnist-net1" else "nearest"
        closest_flip_points(here.network, X[:2])  # compiles
        with_it, without = (
            timed(partial(closest_flip_points, here.network, X, targets, Batch(soften=soften)))
            for soften in (True, False)
        )
        mine = np.where(without.value.success, without.value.distance, np.inf)
        for what, run in ((f"{name}, softened", with_it), (f"{name}, not softened", without)):
            distance = np.where(run.value.success, run.value.distance, np.inf)
            found += compared(what, distance, mine, run.seconds / len(X))
            found.append((what, "evaluations", float(run.value.evaluations.mean())))
    return found


def chunks(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """Time a pair against the number of problems that are solved at once, and against the number of inputs."""
    names = ["mnist-net1", "mnist-fcn", *(["cifar-2500"] if folder else [])]
    found: Measured = []
    for name in names:
        here = data(name, folder)
        rows, classes = random_pairs(here.network, here.X, pairs, seed=6)
        batch = flip_batch(here.network, here.X[rows].astype(np.float64), classes)
        Batch().solve_batch(batch.take(slice(0, 2)))  # compiles
        for size in (4, 16, 64, None) if name == "mnist-net1" else (None,):
            started = time.perf_counter()
            Batch(chunk=size).solve_batch(batch)
            what = f"{name}, n = {batch.X.shape[1]}, " + (f"chunks of {size}" if size else "chunks by default")
            found.append((what, "ms a pair", 1e3 * (time.perf_counter() - started) / len(batch)))
    return found


def independence(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """The largest relative change of a distance when a batch is split, shuffled, resized or taken one by one: nearest
    of all classes, every shipped network."""
    found: Measured = []
    for name in SHIPPED:
        here = data(name)
        X = here.X[:images].astype(np.float64)
        together = closest_flip_points(here.network, X).distance
        order = np.random.default_rng(0).permutation(len(X))
        shuffled = np.empty(len(X))
        shuffled[order] = closest_flip_points(here.network, X[order]).distance
        halves = [closest_flip_points(here.network, part).distance for part in np.array_split(X, (len(X) // 3,))]
        few = np.linspace(0, len(X) - 1, min(len(X), ALONE)).astype(int)
        alone = np.array([closest_flip_point(here.network, X[k]).distance for k in few])
        found += [
            (f"{name}, shuffled", "largest change", _change(shuffled, together)),
            (f"{name}, split", "largest change", _change(np.concatenate(halves), together)),
            (f"{name}, {len(few)} one at a time", "largest change", _change(alone, together[few])),
        ]
        for chunk in (7, 250):
            resized = closest_flip_points(here.network, X, solver=Batch(chunk=chunk)).distance
            found.append((f"{name}, chunks of {chunk}", "largest change", _change(resized, together)))
    return found


def single(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """One input: the nearest of all classes against IPOPT for one class, from x and as the verb calls it, in turns."""
    here = data("mnist-net1")
    X = here.X[: min(images, ALONE)].astype(np.float64)
    j = closest_flip_points(here.network, X).classes[:, 1]
    times: dict[str, list[float]] = {"nearest of all": [], "ipopt, nearest class": [], "ipopt, a random class": []}
    for k, x in enumerate(X):
        i = int(here.network.predict(x))
        other = int((i + np.random.default_rng(k).integers(1, 10)) % 10)
        times["nearest of all"].append(closest_flip_point(here.network, x).elapsed)
        for what, target in (("ipopt, nearest class", int(j[k])), ("ipopt, a random class", other)):
            times[what].append(Ipopt().solve(flip_problem(here.network, x, (i, target)), None, here.network).elapsed)
    return [(what, "ms", 1e3 * float(np.median(some[1:]))) for what, some in times.items()]


def _change(a: Array, b: Array) -> float:
    return float(np.nanmax(np.abs(a / b - 1)))


def scale(*sizes: int) -> Callable[..., Measured]:
    """Time a pair and peak memory against the number of pairs, each in a process of its own."""

    def measure(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
        return [figure for count in sizes for figure in _scaled(count, console)]

    return measure


def _scaled(count: int, console: Console) -> Measured:
    script = f"from benchmarks.batch import measure_scale; print(*measure_scale({count}))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ms, peak = map(float, ran.stdout.split())
    console.print(f"  {count} pairs: {ms:.2f} ms a pair, {peak:.0f} MB")
    return [(f"{count} pairs", "ms a pair", ms), (f"{count} pairs", "peak MB", peak)]


def measure_scale(count: int) -> tuple[float, float]:
    """ms a pair and peak MB, the images repeated with noise as often as it takes; tables are counted, not kept."""
    here = data("mnist-net1")
    X = np.random.default_rng(0).normal(np.resize(here.X, (-(-count // 9), here.X.shape[1])), 0.01)
    closest_flip_points(here.network, X[:1])
    started = time.perf_counter()
    entries = sum(len(table) for table in stream_flip_points(here.network, X, "all"))
    return 1e3 * (time.perf_counter() - started) / entries, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


PARTS: dict[str, Callable[..., Measured]] = {
    "closeness": closeness,
    "speed": speed,
    "softening": softening,
    "chunks": chunks,
    "independence": independence,
    "single": single,
    "sensitivity": sensitivity,
    "turns": turns,
    "scale": scale(100, 1000, 10_000),
    "scale-large": scale(100_000),
    "peers-mnist-fcn": peers("mnist-fcn", 1000),
    "peers-cifar-2500": peers("cifar-2500", 1000),
    "peers-mnist-net1": peers("mnist-net1", 1000),
}
