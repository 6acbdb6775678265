"""Tabular data in its own units: how many loan applications are solved, and does everything that was asked hold?

The table and its network are made by ``python -m data_prep.loans``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import flipopt as fo
from benchmarks.machine import facts
from data_prep.loans import GROUPS, NAMES, WHOLE
from flipopt.common.checks import Array
from flipopt.common.point_files import read_points
from flipopt.common.progress import tracked
from flipopt.runs.rows import write_rows

FOLDER = Path("benchmarks/problems")
COLUMNS = ("setting", "rows", "solved", "constraints_hold", "model_agrees", "seconds_a_row", "distance", "statuses")
LIMIT = 30_000.0
"""Of amount and savings together, in the linear constraint."""


@dataclass(frozen=True)
class Case:
    """A row of the table: what is asked beside bounds, weights and the frozen age; whether row by row."""

    name: str
    one_by_one: bool = False
    linear: bool = False
    whole: tuple[str, ...] = ()
    groups: bool = False
    valid: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def solve(self, network: fo.Network, X: Array, sample: Array) -> tuple[fo.FlipTable, float]:
        """The flips of X, bounds and weights by the sample, and seconds a row."""
        options: dict[str, Any] = {
            "weights": fo.scale_of(sample),
            "bounds": (sample.min(axis=0), sample.max(axis=0)),
            "frozen": [NAMES.index("age")],
            "constraints": [budget()] if self.linear else [],
            "integers": [NAMES.index(name) for name in self.whole],
            "one_of": [[NAMES.index(name) for name in group] for group in GROUPS] if self.groups else [],
            "valid": self.valid,
            **self.options,
        }
        started = time.perf_counter()
        if self.one_by_one:
            results = [fo.closest_flip_point(network, x, **options) for x in X]
            table = fo.FlipTable.of(range(len(X)), results, X.shape[1])
        else:
            table = fo.closest_flip_points(network, X, **options)
        return table, (time.perf_counter() - started) / len(X)

    def holds(self, table: fo.FlipTable, X: Array, sample: Array) -> Array:
        """Whether everything that was asked holds at each point, to the last digit; linear ones to 1e-12."""
        x = table.x
        good = ((x >= sample.min(axis=0)) & (x <= sample.max(axis=0))).all(axis=1)
        age = NAMES.index("age")
        good &= x[:, age] == X[table.row, age]
        if self.linear:
            good &= (x @ budget().A[0]) / LIMIT - 1 <= 1e-12
        whole = x[:, [NAMES.index(name) for name in self.whole]]
        good &= (whole == np.round(whole)).all(axis=1)
        for group in GROUPS if self.groups else ():
            members = x[:, [NAMES.index(name) for name in group]]
            good &= np.isin(members, (0.0, 1.0)).all(axis=1) & (members.sum(axis=1) == 1)
        return np.asarray(good)


def budget() -> fo.LinearConstraint:
    """Amount and savings together are at most the limit."""
    row = np.isin(NAMES, ("amount", "savings")).astype(np.float64)
    return fo.LinearConstraint(row[None], np.array([-np.inf]), np.array([LIMIT]))


MONEY = ("income", "amount", "savings")
CASES = (
    Case("bounds and frozen, one by one", one_by_one=True),
    Case("bounds and frozen, IPOPT", options={"solver": "ipopt"}),
    Case("bounds and frozen, all at once"),
    Case("+ linear constraint", linear=True),
    Case("+ linear constraint, IPOPT", linear=True, options={"solver": "ipopt"}),
    Case("whole numbers and groups", whole=WHOLE, groups=True),
    Case("all features discrete", whole=(*MONEY, *WHOLE), groups=True),
    Case("valid", valid=True),
    Case("valid, + linear constraint", linear=True, valid=True),
    Case("valid, whole numbers and groups, + linear constraint", linear=True, whole=WHOLE, groups=True, valid=True),
    Case("valid, all features discrete", whole=(*MONEY, *WHOLE), groups=True, valid=True),
)


def run(out: Path, count: int, console: Console) -> list[dict[str, Any]]:
    """Every case on the first ``count`` applications; rows to ``out`` (.csv)."""
    network = fo.load_network(FOLDER / "loans.npz")
    sample = read_points(FOLDER / "loans.csv", len(NAMES))
    X, machine, rows = sample[:count], facts(), []
    CASES[0].solve(network, X[:1], sample)  # compiles
    for case in tracked(CASES, "loans", console):
        table, seconds = case.solve(network, X, sample)
        done = table.success
        agrees = network.predict(table.x) == table.classes[:, 1]
        names, counts = np.unique([status.name for status in table.status], return_counts=True)
        values = (
            case.name,
            len(table),
            round(float(done.mean()), 4),
            round(float(case.holds(table, X, sample)[done].mean()), 4),
            round(float(agrees[done].mean()), 4),
            float(f"{seconds:.3g}"),
            float(f"{np.median(table.distance[done]):.6g}"),
            " ".join(f"{name}:{number}" for name, number in zip(names, counts, strict=True)),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)) | machine)
    write_rows(out, (*COLUMNS, *machine), rows)
    return rows


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """The rows as a table."""
    table = Table("setting", "solved", "constraints hold", "model agrees", "s a row", "median distance")
    for row in rows:
        shares = (f"{float(row[name]):.1%}" for name in ("solved", "constraints_hold", "model_agrees"))
        table.add_row(row["setting"], *shares, f"{row['seconds_a_row']}", f"{row['distance']}")
    console.print(table)
