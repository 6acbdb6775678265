"""What each tuned value of the adaptive path is worth: halved and doubled, on images that no other table shows.

The two cases in which paths are hard: (b) saturated and (c) ReLU. Far from a solution a path depends on rounding. One
line therefore changes tau by a hundredth, which means nothing: what it moves is chance, and so is as much elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.homotopy import CASES, cells, classes, outcome
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.progress import tracked
from flipopt.common.writing import atomic_path
from flipopt.features.shipped import load_shipped
from flipopt.homotopy import Homotopy, StepControl, follow
from flipopt.problem import flip_problem
from flipopt.solvers import Ipopt

COLUMNS = (
    "case", "row", "target", "value", "setting", "status", "distance", "kkt_residual", "boundary_gap", "stages",
    "forward", "backward", "hessian", "seconds", "message",
)  # fmt: skip
FIRST_IMAGE = 40
"""The values were first chosen on the images before; those from the hundredth on are in the main table."""
TARGETS = {"b": ("nearest",), "c": ("nearest", "random")}
FORWARD = 3000
"""Forward passes within which a path must arrive; most take a third of it."""
AS_IT_IS, CHANCE = "as it is", "tau, by 1%"
HEADINGS = ("case", "value", "setting", "verified", "forward passes", "Hessian products", "distance")


def variants() -> Iterator[tuple[str, str, Homotopy]]:
    """Name of the value, its setting as text, and the path's options."""
    plain = Homotopy(max_evaluations=FORWARD)
    yield AS_IT_IS, "-", plain
    yield CHANCE, f"{1.01 * plain.tau:.4g}", replace(plain, tau=1.01 * plain.tau)
    for field in fields(StepControl):
        value = getattr(plain.control, field.name)
        for factor in (0.5, 2.0):
            # A factor of growth is halved and doubled in what it adds.
            changed = 1 + factor * (value - 1) if field.name == "grow" else type(value)(factor * value)
            yield field.name, f"{changed:g}", replace(plain, control=replace(plain.control, **{field.name: changed}))


def run(out: Path, images: int, console: Console) -> list[Row]:
    """Follow every path with every setting; rows are kept in ``out`` (.csv), and none is followed twice."""
    networks = {case: CASES[case].network() for case in TARGETS}
    with keeping(out, COLUMNS, console) as add:
        have = {(row["case"], row["row"], row["target"], row["value"], row["setting"]) for row in read(out)}
        todo = [
            (case, FIRST_IMAGE + k, target, value, setting, options)
            for k in range(images)
            for case in TARGETS
            for target in TARGETS[case]
            for value, setting, options in variants()
            if (case, FIRST_IMAGE + k, target, value, setting) not in have
        ]
        for case, row, target, value, setting, options in tracked(todo, "paths", console):
            network, x = networks[case], load_shipped(CASES[case].shipped).X[row]
            problem = flip_problem(network, x, classes(network, x, target, row))
            flip = follow(problem, Ipopt(max_iter=CASES[case].iterations), options, network)
            head = {"case": case, "row": row, "target": target, "value": value, "setting": setting}
            add([head | outcome(flip)])
    return read(out)


def read(path: Path) -> list[Row]:
    """The rows of a result file."""
    return read_rows(path, ("row", "stages", "forward", "backward", "hessian"), ("distance", "seconds"))


def summaries(rows: list[Row]) -> list[tuple[str, ...]]:
    """One line a case and setting; costs and distances relative to those of the same paths as they are."""
    plain = {(row["case"], row["row"], row["target"]): row for row in rows if row["value"] == AS_IT_IS}
    lines = []
    for case, value, setting in dict.fromkeys((row["case"], row["value"], row["setting"]) for row in rows):
        own = [row for row in rows if (row["case"], row["value"], row["setting"]) == (case, value, setting)]
        pairs = [(row, plain[row["case"], row["row"], row["target"]]) for row in own]
        solved = [(a["distance"], b["distance"]) for a, b in pairs if a["status"] == b["status"] == "CONVERGED"]
        verified = sum(row["status"] == "CONVERGED" for row in own)
        costs = [_change([(a[name], b[name]) for a, b in pairs]) for name in ("forward", "hessian")]
        lines.append((case, value, setting, f"{verified}/{len(own)}", *costs, _change(solved)))
    return lines


def _change(pairs: list[tuple[float, float]]) -> str:
    """Of the sum, in per cent."""
    after, before = np.sum(pairs, axis=0) if pairs else (0.0, 0.0)
    return f"{100 * (after / before - 1):+.0f}%" if before > 0 else "-"


def show(rows: list[Row], console: Console) -> None:
    """The table on the console."""
    table = Table(*HEADINGS, title="The adaptive path with one value changed")
    for line in summaries(rows):
        table.add_row(*line)
    console.print(table)


def write_markdown(path: Path, rows: list[Row]) -> None:
    """The same table for the documentation."""
    lines = [cells(HEADINGS), cells(["---"] * len(HEADINGS)), *map(cells, summaries(rows))]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n")
