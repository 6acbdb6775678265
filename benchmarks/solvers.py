"""Every solver, formulation and attack on the same problems: rows, profiles, one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.attacks import AttackMethod
from benchmarks.best import improve_best, read_best
from benchmarks.peers import CHEAP_CW, PEERS
from benchmarks.problems import BenchmarkProblems
from benchmarks.reliability import FormMethod, offered
from flipopt.common.checks import Array
from flipopt.common.progress import progress_bar
from flipopt.common.writing import atomic_path
from flipopt.comparison.methods import METHODS, Budget, Method
from flipopt.comparison.optima import proved_optima
from flipopt.comparison.rows import write_ratios
from flipopt.comparison.runner import compare
from flipopt.comparison.table import Comparison
from flipopt.report import draw_comparison, write_page
from flipopt.report.comparison import headings, show_standings, standings, summary

SECONDS, QUICK_SECONDS = 20.0, 5.0
"""Of one method on one problem, and in a smoke run."""
QUICK_METHODS = ("ipopt", "scipy-slsqp", "batch", "pieces", "ddn-200", "deepfool", "openturns-form")
QUICK = BenchmarkProblems(known=1, images=1)
LEFT_OUT = ("ddn-200-each-class", "fab-each-class", "ddn-1000", "fmn-foolbox", "cw")
"""Peers that repeat another one for every class or in more steps, whose package has a mistake (see peers), or that take
ten thousand passes a problem; for C&W there is a shorter one."""


def methods() -> dict[str, Method]:
    """Those of the library, and those of the packages that are here."""
    attacks = [peer for name, peer in PEERS.items() if name not in LEFT_OUT]
    if "cw" in PEERS:
        attacks.append(CHEAP_CW)
    others: dict[str, Method] = {peer.name: AttackMethod(peer) for peer in attacks}
    return dict(METHODS) | others | ({"openturns-form": FormMethod()} if offered() else {})


def run(
    out: Path,
    problems: BenchmarkProblems,
    names: list[str],
    best: Path,
    console: Console,
    seconds: float = SECONDS,
    prove: float | None = None,
) -> Comparison:
    """Run what is not in ``out`` (.csv) yet, and put a page (.html), a picture (.png) and tables (.md) beside it.

    Of ``names`` those count whose packages are here; the best distances are kept in ``best``. With ``prove``, seconds a
    problem, the least distances are proved where the network is a dense one with ReLU.
    """
    known = methods()
    chosen = {name: known[name] for name in names if name in known}
    with progress_bar("problems and methods", console=console) as advance:
        rows = compare(problems, chosen, out, Budget(seconds), advance, console.print)
    improved = improve_best(best, rows)
    optima = {}
    if prove is not None:
        with progress_bar("proofs", console=console) as advance:
            optima = proved_optima(problems, prove, advance)
    comparison = Comparison.of(rows, read_best(best) | problems.answers(), optima)
    write_ratios(out, comparison.best_known)
    write_page(out.with_suffix(".html"), comparison)
    draw_comparison(out.with_suffix(".png"), comparison)
    write_tables(out.with_suffix(".md"), comparison)
    show_standings(console, comparison)
    console.print(f"{improved} distances in {best} are closer than before; page, picture and tables beside {out}")
    return comparison


def write_tables(path: Path, comparison: Comparison) -> None:
    """Standings, and which method for what, for the documentation."""
    tables = [headings(comparison), *standings(comparison)], by_family(comparison)
    text = [summary(comparison), "", *_markdown(tables[0]), "", *_markdown(tables[1])]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(text) + "\n", encoding="utf-8")


def by_family(comparison: Comparison, tolerance: float = 1e-3) -> list[tuple[str, ...]]:
    """Which method for what: a line a method in the order of the standings, and for every family the share of its
    problems that are solved, with the median evaluations of those; a dash if it takes none of them."""
    families = list(dict.fromkeys(comparison.families))
    cost, member = comparison.cost("evaluations", tolerance), np.array(comparison.families)
    lines = [("method", *families)]
    for name, *_ in standings(comparison):
        m = comparison.methods.index(name)
        cells = (_share(cost[member == family, m], comparison.status[member == family, m]) for family in families)
        lines.append((name, *cells))
    return lines


def _share(cost: Array, status: Array) -> str:
    """How much of the cost is finite, and the median of that."""
    solved = cost[np.isfinite(cost)]
    if (status == "UNAVAILABLE").all():
        return "-"
    return f"{len(solved) / len(cost):.0%} ({np.median(solved):.0f})" if len(solved) else "0%"


def _markdown(lines: Sequence[Sequence[str]]) -> list[str]:
    head, *body = ["| " + " | ".join(line) + " |" for line in lines]
    return [head, "|" + " --- |" * len(lines[0]), *body]
