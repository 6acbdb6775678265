"""Do the solvers agree? Every (image, class) pair of the first shipped images, by several solvers from one start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.progress import tracked
from flipopt.features.shipped import load_shipped
from flipopt.problem import Evaluations, flip_problem
from flipopt.solvers import SOLVERS
from flipopt.solvers.walk import walk

COLUMNS = (
    "row", "i", "j", "solver", "status", "distance", "kkt_residual", "boundary_gap", "class_margin", "iterations",
    "forward", "backward", "hessian", "seconds", "message",
)  # fmt: skip
SAME = 1e-5
"""Relative difference of distances below which two solvers have found the same minimum."""


def run(out: Path, solvers: list[str], images: int, console: Console) -> list[Row]:
    """Solve every pair with every solver; rows are kept in ``out`` (.csv), and none is solved twice."""
    with keeping(out, COLUMNS, console) as add:
        have = {(row["row"], row["j"], row["solver"]) for row in read(out)}
        todo = [pair for pair in _pairs(images) if any((pair[0], pair[2], name) not in have for name in solvers)]
        for row, i, j in tracked(todo, "pairs", console):
            add([_solve(row, i, j, name) for name in solvers if (row, j, name) not in have])
    return read(out)


def read(path: Path) -> list[Row]:
    """The rows of a result file."""
    whole = ("row", "i", "j", "iterations", "forward", "backward", "hessian")
    return read_rows(path, whole, ("distance", "kkt_residual", "boundary_gap", "class_margin", "seconds"))


def show(rows: list[Row], console: Console) -> None:
    """Success and cost of each solver, and where two verified answers differ."""
    names = list(dict.fromkeys(row["solver"] for row in rows))
    by = {(row["row"], row["j"], row["solver"]): row for row in rows}
    pairs = list(dict.fromkeys((row["row"], row["j"]) for row in rows))
    headings = ("solver", "pairs", "verified", "iter.", "ms", "same", "closer", "farther")
    table = Table(*headings, title=f"mnist-net1, every (image, class) pair, compared with {names[0]}")
    different = []
    for name in names:
        own = [row for row in rows if row["solver"] == name]
        ratios = []
        for pair in pairs:
            ours, first = by.get((*pair, name)), by.get((*pair, names[0]))
            if ours and first and ours["status"] == first["status"] == "CONVERGED":
                ratios.append(ours["distance"] / first["distance"] - 1)
                if abs(ratios[-1]) > SAME:
                    different.append((*pair, name, first["distance"], ours["distance"]))
        r, verified = np.array(ratios), np.mean([row["status"] == "CONVERGED" for row in own])
        iterations, seconds = (np.array([row[key] for row in own]) for key in ("iterations", "seconds"))
        table.add_row(
            *(name, f"{len(own)}", f"{verified:.1%}", f"{np.median(iterations):.0f}", f"{1e3 * seconds.mean():.0f}"),
            *(f"{np.mean(part):.1%}" for part in (np.abs(r) <= SAME, r < -SAME, r > SAME)),
        )
    console.print(table)
    if different:
        minima = Table("image", "class", "solver", names[0], "its distance", "ratio", title="Different local minima")
        for row, j, name, first, ours in different:
            minima.add_row(f"{row}", f"{j}", name, f"{first:.6f}", f"{ours:.6f}", f"{ours / first:.4f}")
        console.print(minima)
    _show_hessians(by, pairs, console)


def _show_hessians(by: dict[Any, Row], pairs: list[tuple[int, int]], console: Console) -> None:
    """Iterations of IPOPT with the exact Hessian against limited memory, on the pairs that both solved."""
    both = [(by[*pair, "ipopt-exact"], by[*pair, "ipopt"]) for pair in pairs if (*pair, "ipopt-exact") in by]
    both = [pair for pair in both if all(row["status"] == "CONVERGED" for row in pair)]
    if both:
        exact, limited = (np.array([pair[k]["iterations"] for pair in both]) for k in (0, 1))
        console.print(
            f"IPOPT on {len(both)} pairs: "
            f"exact Hessian {np.median(exact):.0f} iterations (median; mean {exact.mean():.1f}), "
            f"limited memory {np.median(limited):.0f} (mean {limited.mean():.1f})"
        )


def _pairs(images: int) -> Iterator[tuple[int, int, int]]:
    shipped = load_shipped("mnist-net1")
    for row, i in enumerate(shipped.network.predict(shipped.X[:images])):
        for j in range(shipped.network.n_classes):
            if j != i:
                yield row, int(i), j


def _solve(row: int, i: int, j: int, name: str) -> Row:
    shipped = load_shipped("mnist-net1")
    problem = flip_problem(shipped.network, shipped.X[row], (i, j))
    flip = SOLVERS[name].solve(problem, walk(problem, Evaluations()), shipped.network)
    check, cost = flip.check, flip.evaluations
    return {
        "row": row, "i": i, "j": j, "solver": name, "status": flip.status.name, "distance": repr(flip.distance),
        "kkt_residual": check.kkt_residual if check else np.nan,
        "boundary_gap": check.boundary_gap if check else np.nan,
        "class_margin": check.class_margin if check else np.nan,
        "iterations": flip.iterations, "forward": cost.forward, "backward": cost.backward, "hessian": cost.hessian,
        "seconds": round(flip.elapsed, 4), "message": flip.message,
    }  # fmt: skip
