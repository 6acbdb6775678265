"""The batch solver against IPOPT one at a time and against attack libraries: how close, how fast, how sure?

The images are the first test images of MNIST, through the shipped networks. The constants come from images beyond the
first thousand: those of the iteration from 200 pairs, those of the softened networks, of giving classes up and of
further looks from the same pairs and the second thousand images of each network (200 of CIFAR-10), where the peers were
run too. Not everything is held out: what is done with problems that are left over, and the size of chunks, was changed
after a look at the part ``speed`` of an earlier version. Each part appends its rows to its own file, and ``python -m
benchmarks batch`` goes on where it was stopped; times are compared only within a part.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks import batch_report
from benchmarks.clock import Clock, peak
from benchmarks.rows import Row, appending, read_rows
from data_prep.datasets import load_dataset
from data_prep.sources import source
from flipopt.checks import Array
from flipopt.features import WaveletFeatures
from flipopt.many import closest_flip_points, stream_flip_points
from flipopt.networks import DenseNetwork, load_network
from flipopt.parallel import cores
from flipopt.problem import FlipBatch, flip_batch, flip_problem
from flipopt.result import FlipTable
from flipopt.shipped import SHIPPED, load_shipped
from flipopt.solvers import Batch, Ipopt
from flipopt.starts import boundary_point

IMAGES, PAIRS = 1000, 300
IPOPT_STARTS = 6
CLOSER = 1e-3
"""A distance is smaller or larger if it differs by more than this, relative."""


@dataclass(frozen=True)
class Data:
    """A network, the inputs of the first test images, and those of the training images with their classes."""

    network: DenseNetwork
    X: Array
    samples: Callable[[], tuple[Array, Array]]

    @cached_property
    def train(self) -> Array:
        return self.samples()[0]

    @cached_property
    def train_classes(self) -> Array:
        return self.samples()[1]


@cache
def data(name: str, folder: str = "") -> Data:
    """A shipped network, or one that ``python -m models train`` has written to ``folder``.

    Without the data set it is the 200 images that ship with the network: good for a smoke run.
    """
    dataset = "cifar-10" if name.startswith("cifar") else "mnist"
    if source(dataset).find() is None and name in SHIPPED:
        shipped = load_shipped(name)
        return Data(shipped.network, shipped.X, lambda: (shipped.X, np.asarray(shipped.network.predict(shipped.X))))
    images = load_dataset(dataset)
    if name.startswith("cifar"):
        images = images.only(("airplane", "ship"))
    if name in SHIPPED:
        network, features = load_shipped(name).network, load_shipped(name).features
    else:
        network = load_network(Path(folder) / f"{name}.npz")
        features = WaveletFeatures.load(Path(folder) / f"{name}.features.npz")

    def inputs(pixels: Array) -> Array:
        return np.asarray(pixels.reshape(len(pixels), -1) / 255.0) if features is None else features.transform(pixels)

    @cache
    def samples() -> tuple[Array, Array]:
        return inputs(images.train.images), images.train.labels

    return Data(network, inputs(images.test.images[:IMAGES]), samples)


def random_pairs(network: DenseNetwork, X: Array, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of X (count,) and (source, target) classes (count, 2)."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(X), count, replace=False))
    i = np.asarray(network.predict(X[rows]))
    j = (i + rng.integers(1, network.n_classes, count)) % network.n_classes
    return rows, np.column_stack([i, j])


# Distances: IPOPT from x and from its own six starts


REFERENCE = ("row", "i", "j", "start", "status", "distance", "forward", "seconds")


def reference(out: Path, pairs: int, console: Console) -> list[Row]:
    """IPOPT on random pairs from x, from x with noise, and from boundary points towards the nearest training samples
    of the target class."""
    here = data("mnist-net1")
    rows, classes = random_pairs(here.network, here.X, pairs)
    have = {(row["row"], row["start"]) for row in read_reference(out)}
    todo = [k for k in range(pairs) if any((rows[k], start) not in have for start in range(IPOPT_STARTS))]
    with appending(out, REFERENCE, console, "pairs by IPOPT", len(todo)) as add:
        for k in todo:
            add(_reference_rows(here, int(rows[k]), (int(classes[k, 0]), int(classes[k, 1]))))
    return read_reference(out)


def read_reference(out: Path) -> list[Row]:
    """The rows so far."""
    return read_rows(out, ("row", "i", "j", "start", "forward"), ("distance", "seconds"))


def _reference_rows(here: Data, row: int, classes: tuple[int, int]) -> list[Row]:
    problem = flip_problem(here.network, here.X[row], classes)
    x, solver = problem.x, Ipopt()
    first = solver.solve(problem, x, here.network)
    size = np.nan_to_num(first.distance, nan=1.0)
    noise = np.random.default_rng(row).standard_normal(len(x))
    mine = here.train[here.train_classes == classes[1]].astype(np.float64)
    order = np.argsort(((mine - x) ** 2).sum(axis=1))
    crossings = (boundary_point(problem, mine[k]) for k in order[:50])
    on_the_way = islice((point for point in crossings if point is not None), IPOPT_STARTS - 2)
    points = [x + size * noise / np.linalg.norm(noise), *on_the_way]
    flips = [first, *(solver.solve(problem, point, here.network) for point in points)]
    return [
        {"row": row, "i": classes[0], "j": classes[1], "start": start, "status": flip.status.name,
         "distance": flip.distance, "forward": flip.evaluations.forward, "seconds": round(flip.elapsed, 4)}
        for start, flip in enumerate(flips)
    ]  # fmt: skip


# Everything else: one row a figure


FIGURES = ("part", "what", "figure", "value")


def figures(out: Path) -> dict[tuple[str, str, str], float]:
    """(part, what, name of the figure) to its value, of the parts so far."""
    return {(row["part"], row["what"], row["figure"]): row["value"] for row in read_rows(out, (), ("value",))}


def run(out: Path, parts: Iterable[str], images: int, pairs: int, folder: str, console: Console) -> None:
    """Measure the parts that are not in ``out`` (.csv) yet."""
    for part in parts:
        if any(key[0] == part for key in figures(out)):
            continue
        console.print(f"part {part}")
        measured = PARTS[part](out, images, pairs, folder, console)
        with appending(out, FIGURES, console, part, 1) as add:
            add([{"part": part, "what": what, "figure": name, "value": value} for what, name, value in measured])


def show(out: Path, console: Console) -> None:
    """Tables in the terminal, for the documentation, and the picture."""
    known = figures(out)
    batch_report.show(known, console)
    batch_report.write_markdown(out.with_suffix(".md"), known)
    batch_report.draw(out.with_suffix(".png"), known)
    console.print(f"figures in {out}, tables and a picture for the documentation beside it")


Measured = list[tuple[str, str, float]]
"""What was measured, the name of the figure, its value."""


def closeness(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """On the reference pairs: the batch solver with 1, 6 and 20 starts against IPOPT from x and from six starts."""
    rows = reference(out.with_name(f"{out.stem}_reference.csv"), pairs, console)
    here, table = data("mnist-net1"), _by_pair(rows)
    solved = np.array([[row["status"] == "CONVERGED" for row in starts] for starts in table])
    ipopt = np.where(solved, np.array([[row["distance"] for row in starts] for starts in table]), np.inf)
    batch = _pairs(here, [starts[0] for starts in table])
    found: Measured = [("ipopt from x", "verified", float(solved[:, 0].mean()))]
    best = ipopt.min(axis=1)
    Batch().solve_batch(batch.take(slice(0, 4)))  # compiles
    found.append(("ipopt from x", "within 0.1% of the best of its six", float((ipopt[:, 0] <= best * 1.001).mean())))
    for starts in (1, 4, 6, 20):
        started = time.perf_counter()
        result = Batch().solve_batch(batch, starts, here.train.astype(np.float64) if starts > 1 else None)
        seconds = time.perf_counter() - started
        distance = np.where(result.solved, result.distance, np.inf)
        ratio = distance / ipopt[:, 0]
        name = f"batch, {starts} starts"
        found += [
            (name, "verified", float(result.solved.mean())),
            (name, "ms a pair", 1e3 * seconds / len(batch)),
            (name, "median ratio to ipopt from x", float(np.median(ratio))),
            (name, "at most 1.001 of ipopt from x", float((ratio <= 1 + CLOSER).mean())),
            (name, "closer than ipopt from x", float((ratio < 1 - CLOSER).mean())),
            (name, "farther than ipopt from x", float((ratio > 1 + CLOSER).mean())),
            (name, "within 0.1% of ipopt's best of six", float((distance <= best * (1 + CLOSER)).mean())),
            (name, "closer than ipopt's best of six", float((distance < best * (1 - CLOSER)).mean())),
        ]
    return found


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
            _timed(partial(closest_flip_points, here.network, X, targets, Batch(soften=soften)))
            for soften in (True, False)
        )
        mine = np.where(without.value.success, without.value.distance, np.inf)
        for what, run in ((f"{name}, softened", with_it), (f"{name}, not softened", without)):
            distance = np.where(run.value.success, run.value.distance, np.inf)
            found += _figures(what, distance, mine, run.seconds)
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


def _by_pair(rows: list[Row]) -> list[list[Row]]:
    """The rows of every pair, by start; only pairs that have all of them."""
    pairs: dict[tuple[int, int, int], dict[int, Row]] = {}
    for row in rows:
        pairs.setdefault((row["row"], row["i"], row["j"]), {})[row["start"]] = row
    return [[starts[k] for k in sorted(starts)] for starts in pairs.values() if len(starts) == IPOPT_STARTS]


def _pairs(here: Data, rows: list[Row]) -> FlipBatch:
    index = [row["row"] for row in rows]
    return flip_batch(here.network, here.X[index].astype(np.float64), [(row["i"], row["j"]) for row in rows])


def speed(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """All pairs and nearest-class pairs of the images, against IPOPT one at a time on some of them, in turns."""
    here = data("mnist-net1")
    X = here.X[:images]
    clock = Clock(here.network)
    closest_flip_points(here.network, X[:2])  # compiles
    found: Measured = []
    every = _timed(lambda: closest_flip_points(clock, X, "all", progress=True))
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
    # It takes seconds, in which a noisy machine may stop for one: the median of three.
    given = sorted((_timed(lambda: closest_flip_points(here.network, X, j)) for _ in range(3)), key=_seconds)[1]
    found.append(("nearest pairs", "ms a pair", 1e3 * given.seconds / len(X)))
    found.append(("nearest pairs", "verified", float(given.value.success.mean())))
    own = _timed(lambda: closest_flip_points(here.network, X))
    found += [
        ("nearest of all", "ms an image", 1e3 * own.seconds / len(X)),
        ("nearest of all", "verified", float(own.value.success.mean())),
        ("nearest of all", "farther than by all pairs", float((own.value.distance > nearest.distance * 1.001).mean())),
    ]
    sample = np.random.default_rng(1).choice(len(table), 60, replace=False)
    for name, chosen in (
        ("all pairs", table[np.sort(sample)]),
        ("nearest pairs", nearest[np.sort(sample[:60] % images)]),
    ):
        times = [
            Ipopt().solve(flip_problem(here.network, X[row], classes), None, here.network).elapsed
            for row, classes in zip(chosen.row, chosen.classes.tolist(), strict=True)
        ]
        found.append((name, "ms a pair by ipopt", 1e3 * float(np.mean(times))))
    return found


@dataclass(frozen=True)
class _Timed:
    value: FlipTable
    seconds: float


def _seconds(timed: _Timed) -> float:
    return timed.seconds


def _timed(task: Callable[[], FlipTable]) -> _Timed:
    started = time.perf_counter()
    value = task()
    return _Timed(value, time.perf_counter() - started)


def independence(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """The largest relative change of a distance when the batch is split, shuffled, resized or taken one by one."""
    here = data("mnist-net1")
    rows, classes = random_pairs(here.network, here.X, pairs, seed=3)
    batch = flip_batch(here.network, here.X[rows].astype(np.float64), classes)
    together = Batch().solve_batch(batch).distance
    order = np.random.default_rng(0).permutation(pairs)
    shuffled = np.empty(pairs)
    shuffled[order] = Batch().solve_batch(batch.take(order)).distance
    few = min(pairs, 40)
    alone = np.array([Batch().solve_batch(batch.take([k])).distance[0] for k in range(few)])  # type: ignore[arg-type]
    found: Measured = [("shuffled", "largest change", _change(shuffled, together))]
    found.append(("one at a time", "largest change", _change(alone, together[:few])))
    for chunk in (7, 64, 250):
        found.append(
            (f"chunks of {chunk}", "largest change", _change(Batch(chunk=chunk).solve_batch(batch).distance, together))
        )
    return found


def _change(a: Array, b: Array) -> float:
    return float(np.nanmax(np.abs(a / b - 1)))


def peers(name: str, at_once: int) -> Callable[..., Measured]:
    """The nearest of all classes against attack libraries, on the same images."""

    def measure(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
        from benchmarks.peers import PEERS, closest

        here = data(name, folder)
        X = here.X[: min(images, at_once)].astype(np.float64)
        classes = np.asarray(here.network.predict(X))
        closest_flip_points(here.network, X[:2])  # compiles
        ours = _timed(lambda: closest_flip_points(here.network, X))
        mine = np.where(ours.value.success, ours.value.distance, np.inf)
        more = _timed(lambda: closest_flip_points(here.network, X, starts=STARTS))
        best = np.where(more.value.success, more.value.distance, np.inf)
        found: Measured = [("images", "number", float(len(X)))]
        for who, distance, seconds in (
            ("flipopt", mine, ours.seconds),
            (f"flipopt, {STARTS} starts", best, more.seconds),
        ):
            found += _figures(who, distance, mine, seconds)
        for peer in PEERS.values():
            console.print(f"  {peer.name}")
            distance, _, seconds = closest(peer, here.network, X, classes)
            found += _figures(peer.name, distance, mine, seconds)
            found.append((peer.name, "closer than flipopt's starts", float((distance < best * (1 - CLOSER)).mean())))
        return found

    return measure


STARTS = 4
TURNS = 3


def turns(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """Time an image, nearest of all classes, against DDN's with 200 steps: in turns, on a noisy machine."""
    from benchmarks.peers import PEERS, closest

    found: Measured = []
    for name, at_once in (("mnist-net1", 1000), ("mnist-fcn", 1000), *([("cifar-2500", 200)] if folder else [])):
        here = data(name, folder)
        X = here.X[: min(images, at_once)].astype(np.float64)
        classes = np.asarray(here.network.predict(X))
        closest_flip_points(here.network, X[:2])  # compiles
        own = partial(closest_flip_points, here.network, X)
        times = [(_timed(own).seconds, closest(PEERS["ddn-200"], here.network, X, classes)[2]) for _ in range(TURNS)]
        for who, seconds in zip(("flipopt", "ddn-200"), np.median(times, axis=0), strict=True):
            found.append((f"{name}, {who}", "ms an image", 1e3 * float(seconds) / len(X)))
    return found


def _figures(who: str, distance: Array, mine: Array, seconds: float) -> Measured:
    return [
        (who, "solved", float(np.isfinite(distance).mean())),
        (who, "median distance", float(np.median(distance))),
        (who, "median ratio", float(np.median(distance / mine))),
        (who, "closer", float((distance < mine * (1 - CLOSER)).mean())),
        (who, "farther", float((distance > mine * (1 + CLOSER)).mean())),
        (who, "ms an image", 1e3 * seconds / len(mine)),
    ]


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
    "turns": turns,
    "scale": scale(100, 1000, 10_000),
    "scale-large": scale(100_000),
    "peers-mnist-fcn": peers("mnist-fcn", 1000),
    "peers-cifar-2500": peers("cifar-2500", 200),
    "peers-mnist-net1": peers("mnist-net1", 1000),
}
