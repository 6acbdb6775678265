"""Section 2: do NLopt, IPOPT, the homotopy and others find the same flip points?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import flipopt as fo
from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.kept import computed
from benchmarks.reproduce.record import Claim, Number, Picture, Record, Sheet
from flipopt.common.checks import Array
from flipopt.homotopy import Homotopy, follow
from flipopt.networks import DenseNetwork
from flipopt.problem import flip_problem
from flipopt.results import FlipResult, Status
from flipopt.runs.rows import Row
from flipopt.solvers import SOLVERS

IMAGES = 200
"""The test images that ship with cifar-200."""
ETA = 10
"""Stages of the homotopy."""
METHODS: Mapping[str, tuple[str, Homotopy | None]] = {
    "IPOPT": ("ipopt", None),
    "NLopt SLSQP": ("nlopt", None),
    "SciPy SLSQP": ("scipy", None),
    "homotopy, IPOPT": ("ipopt", Homotopy(ETA, adaptive=False)),
    "batch": ("batch", None),
}
"""Solvers of the paper, but for MATLAB's, and ours. All but ours start at the image, as the paper's do."""
LOCAL = ("NLopt SLSQP", "SciPy SLSQP")
"""Those that are no interior point methods."""
CLOSER = 1e-3
"""Relative difference of distances from which on two flip points are different ones."""
COLUMNS = ("seed", "row", "method", "status", "distance", "evaluations")


@dataclass(frozen=True)
class _Load:
    network: DenseNetwork
    x: Array
    seed: int
    row: int
    method: str


def solvers(desk: Desk) -> Record:
    """Every method on the same images, and of a second network on fewer."""
    sizes = desk.few({0: IMAGES, 1: 40}, {0: 6, 1: 2})
    loads = {}
    for seed, count in sizes.items():
        case = desk.case("cifar-200", seed)
        for row in range(count):
            for method in METHODS:
                loads[f"{seed}-{row}-{method}"] = _Load(case.network, case.test.X[row], seed, row, method)
    path = desk.results / "001-solvers.csv"
    rows = computed(path, COLUMNS, "solves", loads, solve, desk.console)
    tables = {seed: _table(rows, seed, count) for seed, count in sizes.items()}
    picture = desk.picture("001-solvers.png")
    _draw(picture, tables[0])
    shares = {seed: _farther(table) for seed, table in tables.items()}
    seconds = {m: np.median([float(rows[f"0-{k}-{m}"][0]["seconds"]) for k in range(sizes[0])]) for m in METHODS}
    closest, differ = tables[0].min(axis=1), {seed: _differ(table) for seed, table in tables.items()}
    body = [
        [
            method,
            f"{100 * np.isfinite(tables[0][:, k]).mean():.1f}",
            f"{100 * shares[0][k]:.1f}",
            f"{np.nanmax(np.where(np.isfinite(tables[0][:, k]), tables[0][:, k] / closest, np.nan)):.3f}",
            f"{1e3 * seconds[method]:.0f}",
        ]
        for k, method in enumerate(METHODS)
    ]
    worst = max(METHODS, key=lambda method: shares[0][list(METHODS).index(method)])
    return Record(
        title="Do solvers agree? (section 2)",
        summary=f"The closest flip points of {sizes[0]} test images of ships and planes by every method of the paper "
        "that is free software, each from the image itself, and by our batch solver. Two differ if their distances do "
        f"by more than {CLOSER:.1%}.",
        setup={"images": sizes, "stages of the homotopy": ETA, "differ by": CLOSER},
        seeds=list(sizes),
        numbers=[
            Number(
                "001.solvers_disagree_percent_below",
                "images for which IPOPT finds a closer flip point than one of NLopt or SciPy, %",
                100 * differ[0],
                f"Of {sizes[0]} images. For {100 * _none(tables[0]):.1f}% NLopt or SciPy finds none; {worst} is "
                f"farther than the closest of all methods, or finds none, most often, on {100 * max(shares[0]):.1f}%.",
                kind="at most",
            )
        ],
        claims=[
            Claim(
                "the algorithms almost always find the same point; interior points find closer ones on fewer than 5%",
                "section 2",
                "; ".join(
                    f"seed {seed}: IPOPT closer on {100 * share:.1f}%; NLopt or SciPy without a flip on "
                    f"{100 * _none(tables[seed]):.1f}%; where these, IPOPT and the homotopy have one, it is the same "
                    f"on {100 * _same(tables[seed]):.1f}%"
                    for seed, share in differ.items()
                )
                + ".",
                {f"seed {seed}": share < 0.05 for seed, share in differ.items()},
            )
        ],
        pictures=[
            Picture(
                picture.name,
                f"Distances of the flip points that each method finds for {sizes[0]} test images, over the closest "
                "that any of them finds: the share of images (across) up to each ratio (upwards). A line that ends "
                "early failed on the rest.",
            )
        ],
        sheets=[
            Sheet(
                "Seed 0", ["method", "solved, %", "farther than the closest, %", "largest ratio", "ms (median)"], body
            )
        ],
        figures={"farther, share": {f"seed {seed}": share for seed, share in shares.items()}},
    )


def solve(load: _Load) -> list[Row]:
    """One image by one method, in a process of its own."""
    name, homotopy = METHODS[load.method]
    flip = _solved(load, name, homotopy)
    about: Row = {"seed": load.seed, "row": load.row, "method": load.method}
    evaluations = flip.evaluations.total
    return [about | {"status": flip.status.name, "distance": repr(float(flip.distance)), "evaluations": evaluations}]


def _solved(load: _Load, name: str, homotopy: Homotopy | None) -> FlipResult:
    if name == "batch":
        return fo.closest_flip_point(load.network, load.x)
    i = int(load.network.in_float64.predict(load.x))
    problem = flip_problem(load.network, load.x, (i, 1 - i))
    solver = replace(SOLVERS[name], max_seconds=60.0)
    if homotopy is not None:
        return follow(problem, solver, homotopy, load.network)
    return solver.solve(problem, problem.x, load.network)


def _table(rows: dict[str, list[Row]], seed: int, count: int) -> Array:
    """Distances (images, methods), infinite where a method has not found a verified flip."""
    return np.array(
        [
            [
                float(row["distance"]) if row["status"] == Status.CONVERGED.name else np.inf
                for row in (rows[f"{seed}-{k}-{method}"][0] for method in METHODS)
            ]
            for k in range(count)
        ]
    )


def _farther(table: Array) -> list[float]:
    """Share of the images on which each method is farther than the closest of all, or finds nothing."""
    return [float(share) for share in (table > table.min(axis=1)[:, None] * (1 + CLOSER)).mean(axis=0)]


def _differ(table: Array) -> float:
    """Share of the images for which IPOPT finds a flip that is closer than one that NLopt or SciPy finds."""
    others = _of(table, LOCAL)
    farthest = np.where(np.isfinite(others), others, -np.inf).max(axis=1)
    return float((_of(table, ("IPOPT",))[:, 0] * (1 + CLOSER) < farthest).mean())


def _none(table: Array) -> float:
    """Share of the images for which NLopt or SciPy finds no verified flip."""
    return float((~np.isfinite(_of(table, LOCAL))).any(axis=1).mean())


def _same(table: Array) -> float:
    """Share of the images, among those for which the paper's methods all find a flip, for which it is the same."""
    found = _of(table, ("IPOPT", *LOCAL, "homotopy, IPOPT"))
    found = found[np.isfinite(found).all(axis=1)]
    return float((found.max(axis=1) <= found.min(axis=1) * (1 + CLOSER)).mean()) if len(found) else np.nan


def _of(table: Array, names: Sequence[str]) -> Array:
    return table[:, [list(METHODS).index(name) for name in names]]


def _draw(path: Path, table: Array) -> None:
    figure = pictures.figure(6.4, 3.8)
    axis = figure.subplots()
    ratio = np.sort(table / table.min(axis=1)[:, None], axis=0)
    share = np.arange(1, len(table) + 1) / len(table)
    for k, method in enumerate(METHODS):
        known = np.isfinite(ratio[:, k])
        axis.step(share[known], ratio[known, k], where="post", label=method, lw=1.4)
    axis.set(xlabel="share of images", ylabel="distance over the closest", xlim=(0.5, 1.005))
    axis.legend(frameon=False, fontsize=8)
    axis.grid(alpha=0.3)
    pictures.save(figure, path)
