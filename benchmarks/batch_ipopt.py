"""Distances of the batch solver against those of IPOPT, one at a time, from x and from its own six starts."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.batch_data import CLOSER, Data, Measured, data, random_pairs
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.progress import tracked
from flipopt.problem import FlipBatch, flip_batch, flip_problem
from flipopt.solvers import Batch, Ipopt
from flipopt.solvers.starts import Samples, towards_samples

IPOPT_STARTS = 6
REFERENCE = ("row", "i", "j", "start", "status", "distance", "forward", "seconds")


def reference(out: Path, pairs: int, console: Console) -> list[Row]:
    """IPOPT on random pairs from x, from x with noise, and from boundary points towards the nearest training samples
    of the target class."""
    here = data("mnist-net1")
    rows, classes = random_pairs(here.network, here.X, pairs)
    with keeping(out, REFERENCE, console) as add:
        have = {(row["row"], row["start"]) for row in read_reference(out)}
        todo = [k for k in range(pairs) if any((rows[k], start) not in have for start in range(IPOPT_STARTS))]
        for k in tracked(todo, "pairs by IPOPT", console):
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
    batch = FlipBatch(problem.setting, x[None], np.array([classes]))
    samples = Samples(mine[order[:IPOPT_STARTS]], np.full(IPOPT_STARTS, classes[1]))
    on_the_way = [towards_samples(batch, samples, rank, x[None])[0] for rank in range(IPOPT_STARTS - 2)]
    points = [x + size * noise / np.linalg.norm(noise), *on_the_way]
    flips = [first, *(solver.solve(problem, point, here.network) for point in points)]
    return [
        {"row": row, "i": classes[0], "j": classes[1], "start": start, "status": flip.status.name,
         "distance": flip.distance, "forward": flip.evaluations.forward, "seconds": round(flip.elapsed, 4)}
        for start, flip in enumerate(flips)
    ]  # fmt: skip


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


def _by_pair(rows: list[Row]) -> list[list[Row]]:
    """The rows of every pair, by start; only pairs that have all of them."""
    pairs: dict[tuple[int, int, int], dict[int, Row]] = {}
    for row in rows:
        pairs.setdefault((row["row"], row["i"], row["j"]), {})[row["start"]] = row
    return [[starts[k] for k in sorted(starts)] for starts in pairs.values() if len(starts) == IPOPT_STARTS]


def _pairs(here: Data, rows: list[Row]) -> FlipBatch:
    index = [row["row"] for row in rows]
    return flip_batch(here.network, here.X[index].astype(np.float64), [(row["i"], row["j"]) for row in rows])
