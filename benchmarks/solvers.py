"""Every solver, formulation and attack on the same problems: rows, profiles, one page."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.attacks import AttackMethod
from benchmarks.peers import PEERS
from benchmarks.problems import BenchmarkProblems
from flipopt.comparison.methods import METHODS, Budget, Method
from flipopt.comparison.runner import compare
from flipopt.comparison.table import Comparison, improve_best, read_best
from flipopt.report import draw_comparison, write_page
from flipopt.report.comparison import show_standings

SECONDS = 60.0
"""Of one method on one problem."""
QUICK_METHODS = ("ipopt", "scipy-slsqp", "batch", "pieces", "ddn-200", "deepfool")
QUICK = BenchmarkProblems(known=1, images=1)
REPEATS = ("ddn-200-each-class", "fab-each-class")
"""Peers that only repeat another one for every class."""


def methods() -> dict[str, Method]:
    """Those of the library, and the attacks whose packages are here."""
    return dict(METHODS) | {name: AttackMethod(name) for name in PEERS if name not in REPEATS}


def run(out: Path, quick: bool, names: list[str], best: Path, console: Console) -> Comparison:
    """Run what is not in ``out`` (.csv) yet, and put a page (.html) and a picture (.png) beside it."""
    problems, known = QUICK if quick else BenchmarkProblems(), methods()
    chosen = {name: known[name] for name in names or (QUICK_METHODS if quick else known) if name in known}
    columns = (TextColumn("problems and methods"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None)
        rows = compare(
            problems, chosen, out, Budget(SECONDS), lambda done, total: bar.update(task, completed=done, total=total)
        )
    improved = improve_best(best, rows)
    comparison = Comparison.of(rows, read_best(best) | problems.answers())
    write_page(out.with_suffix(".html"), comparison)
    draw_comparison(out.with_suffix(".png"), comparison)
    show_standings(console, comparison)
    console.print(f"{improved} distances in {best} are closer than before; page and picture beside {out}")
    return comparison
