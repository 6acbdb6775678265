"""Random networks of two and three inputs, against a fine grid of directions with refinement: what is missed?

The reference knows the network's logits and nothing of the solver. It looks along rays from x in all directions, shell
by shell, until another class leads somewhere, and then around the directions where that is nearest, in smaller and
smaller caps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import flipopt as fo
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.checks import Array
from flipopt.common.progress import progress_bar

NETWORKS = 500
MISSED, GONE = 1e-3, 100.0
"""How much farther than the reference counts as missed; the radius up to which the reference looks."""
RATIO, FIRST = 1.05, 1e-2
"""From shell to shell, and the radius of the first."""
DIRECTIONS = {2: 2048, 3: 4096}
CAPS, EARLY, KEPT, ROUNDS, SHRINK = 32, 6, 4, 50, 0.75
"""Directions that are refined; of these the best are kept after some early rounds; rounds in all, and how much smaller
the caps become in each."""
SCAN, HALVINGS = 48, 40
"""Points on a ray that is looked along for the first change of class, and bisections there."""
COLUMNS = (
    "method", "network", "inputs", "activation", "classes", "layers", "bounded", "reference", "distance", "ratio",
    "status", "settled", "evaluations", "cpu_seconds",
)  # fmt: skip
WHOLE, REAL = (
    ("network", "inputs", "classes", "layers", "evaluations"),
    ("reference", "distance", "ratio", "cpu_seconds"),
)


@dataclass(frozen=True)
class Case:
    """A network, an input and the bounds."""

    network: fo.DenseNetwork
    x: Array
    lower: float
    upper: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.lower, self.upper

    def lead(self, X: Array) -> Array:
        """By how much the class of x leads all others, (points,)."""
        Y = self.network.logits(X)
        own = np.arange(Y.shape[1]) == self.network.predict(self.x)
        return np.asarray(Y[:, own][:, 0] - Y[:, ~own].max(axis=1))

    def along(self, D: Array, t: Array) -> Array:
        """The points (rays, k, n) in the directions D (rays, n) at t (rays, k), bent where they meet a bound."""
        return np.asarray(np.clip(self.x + t[:, :, None] * D[:, None], self.lower, self.upper))


def draw(number: int) -> Case:
    """One to three hidden layers of erf or ReLU, two to four classes, gentle to steep; every third one with bounds."""
    rng = np.random.default_rng([17, number])
    n, classes, hidden = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    widths = [n, *rng.integers(3, 13, hidden), classes]
    gain = rng.choice([1.0, 2.0, 4.0])
    W = [gain * rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [0.5 * gain * rng.standard_normal(width) for width in widths[1:]]
    activation = fo.Erf(rng.uniform(0.3, 1.5)) if rng.random() < 0.5 else fo.ReLU()
    half = 2.0 if number % 3 == 0 else np.inf
    return Case(fo.DenseNetwork(W, b, activation), np.clip(rng.standard_normal(n), -half, half), -half, half)


def reference(case: Case) -> float:
    """The distance of the nearest flip of x to any class; inf if there is none within the radius."""
    D = _sphere(len(case.x))
    reached = _first_shell(case, D)
    if reached is None:
        return np.inf
    radius, lead = reached
    near = D[np.argsort(lead, kind="stable")[:CAPS]]
    cap, best = 4.0 / len(D) ** (1 / (len(case.x) - 1)), np.full(len(near), np.inf)
    for k in range(ROUNDS):
        if k == EARLY:
            kept = np.argsort(best, kind="stable")[:KEPT]
            near, best = near[kept], best[kept]
        around = _cap(near, cap)
        far, least = _crossings(case, around.reshape(-1, D.shape[1]), radius)
        far, least = far.reshape(around.shape[:2]), least.reshape(around.shape[:2])
        some = np.isfinite(far).any(axis=1)
        chosen = np.where(some, far.argmin(axis=1), least.argmin(axis=1))
        near, best = around[np.arange(len(near)), chosen], np.minimum(best, far.min(axis=1))
        cap *= SHRINK
    return float(best.min())


def _first_shell(case: Case, D: Array) -> tuple[float, Array] | None:
    """The radius of the first shell on which another class leads, and the least lead in every direction up to it."""
    least, radius = np.full(len(D), np.inf), FIRST
    while radius < GONE:
        lead = case.lead(case.along(D, np.full((len(D), 1), radius))[:, 0])
        least = np.minimum(least, lead)
        if lead.min() <= 0:
            return radius, least
        radius *= RATIO
    return None


def _crossings(case: Case, D: Array, radius: float) -> tuple[Array, Array]:
    """Along every ray up to the radius: the distance of the first change of class, and the least lead, (rays,)."""
    t = np.broadcast_to(radius * np.linspace(1 / SCAN, 1.0, SCAN), (len(D), SCAN))
    lead = case.lead(case.along(D, t).reshape(-1, D.shape[1])).reshape(t.shape)
    far, rays = np.full(len(D), np.inf), np.flatnonzero((lead <= 0).any(axis=1))
    high = t[rays, (lead[rays] <= 0).argmax(axis=1)]
    low = high - radius / SCAN
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        crossed = case.lead(case.along(D[rays], middle[:, None])[:, 0]) <= 0
        low, high = np.where(crossed, low, middle), np.where(crossed, middle, high)
    far[rays] = np.linalg.norm(case.along(D[rays], high[:, None])[:, 0] - case.x, axis=1)
    return far, lead.min(axis=1)


def _sphere(n: int) -> Array:
    """Directions (k, n), evenly spread; in three dimensions on Fibonacci's spiral."""
    k = np.arange(DIRECTIONS[n]) + 0.5
    if n == 2:
        angle = 2 * np.pi * k / len(k)
        return np.column_stack([np.cos(angle), np.sin(angle)])
    height, angle = 1 - 2 * k / len(k), np.pi * (1 + np.sqrt(5)) * k
    flat = np.sqrt(1 - height**2)
    return np.column_stack([flat * np.cos(angle), flat * np.sin(angle), height])


def _cap(D: Array, size: float) -> Array:
    """Directions (k, points, n) around those of D (k, n), themselves first."""
    n = D.shape[1]
    if n == 2:
        offsets = size * np.linspace(-1, 1, 16)[:, None]
    else:
        ring, turn = np.meshgrid(np.linspace(0.25, 1, 4), np.arange(8) * np.pi / 4 + 0.3)
        offsets = size * np.column_stack([(ring * np.cos(turn)).ravel(), (ring * np.sin(turn)).ravel()])
    tangents = np.linalg.svd(D[:, None])[2][:, 1:]
    around = np.concatenate([D[:, None], D[:, None] + np.einsum("pt,ktn->kpn", offsets, tangents)], axis=1)
    return np.asarray(around / np.linalg.norm(around, axis=2, keepdims=True))


def methods() -> dict[str, fo.solvers.Solver]:
    """The default, and the same without the global look at small problems."""
    return {"default": fo.solvers.Batch(), "without": fo.solvers.Batch(small=fo.solvers.Small(variables=0))}


def run(out: Path, count: int, first: int, console: Console) -> list[Row]:
    """The first ``count`` networks from number ``first`` on that have a flip; rows to ``out`` (.csv)."""
    fo.closest_flip_point(draw(0).network, draw(0).x)  # compiles
    with keeping(out, COLUMNS, console) as add:
        numbers = {row["network"] for row in read_rows(out, WHOLE, REAL)}
        done, number = len(numbers), max(numbers, default=first - 1) + 1
        with progress_bar("networks", count, console=console, before=done) as advance:
            while done < count:
                case = draw(number)
                known = reference(case)
                if np.isfinite(known):
                    add(_row(case, name, solver, number, known) for name, solver in methods().items())
                    done += 1
                    advance(done)
                number += 1
    return read_rows(out, WHOLE, REAL)


def _row(case: Case, name: str, solver: fo.solvers.Solver, number: int, known: float) -> Row:
    net, start = case.network, time.process_time()
    table = fo.closest_flip_points(net, case.x[None], bounds=case.bounds, solver=solver)
    seconds, distance = time.process_time() - start, float(table.distance[0])
    facts = (name, number, net.n_inputs, type(net.activations[0]).__name__, net.n_classes, net.n_layers)
    where = (bool(np.isfinite(case.upper)), known, distance, distance / known)
    found = (*where, table.status[0].name, bool(table.settled[0]))
    return dict(zip(COLUMNS, (*facts, *found, int(table.evaluations[0]), float(f"{seconds:.3g}")), strict=True))


def show(rows: list[Row], console: Console) -> None:
    """What each method missed, gave up, proved, and what it took."""
    table = Table("method", "networks", "given up", "missed", "settled", "settled but missed", "worst", "ms", "90%")
    for name in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == name]
        ratio = np.array([row["ratio"] for row in mine])
        settled = np.array([str(row["settled"]) == "True" for row in mine])
        missed = ratio > 1 + MISSED
        ms = 1e3 * np.array([row["cpu_seconds"] for row in mine])
        worst = f"{np.nanmax(ratio):.4g}"
        counts = (len(mine), np.isnan(ratio).sum(), missed.sum(), settled.sum(), (missed & settled).sum())
        table.add_row(name, *map(str, counts), worst, f"{np.median(ms):.1f}", f"{np.quantile(ms, 0.9):.1f}")
    console.print(table)
