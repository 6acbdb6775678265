"""Which studies there are, and how one is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.machine import facts
from benchmarks.reproduce import page
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_000 import boundaries, classifiers, pairs
from benchmarks.reproduce.paper_001 import accuracy as ships
from benchmarks.reproduce.paper_001 import adversarial, lines, regions, settings, solvers, taylor
from benchmarks.reproduce.paper_002 import accuracy, directions, flips, homotopy, influence, retraining
from benchmarks.reproduce.paper_003 import figures as samples
from benchmarks.reproduce.paper_003 import tables
from benchmarks.reproduce.paper_004 import lines as between
from benchmarks.reproduce.paper_004 import seeds, workers
from benchmarks.reproduce.paper_004 import tables as agreement
from benchmarks.reproduce.record import Record, write
from flipopt.common.errors import InputError

Study = Callable[[Desk], Record]

STUDIES: Mapping[str, Study] = {
    "002-table-1": accuracy.table_1,
    "002-homotopy": homotopy.ranges,
    "002-flips": flips.flips,
    "002-influence": influence.influence,
    "002-retraining": retraining.retraining,
    "002-cifar": directions.cifar,
    "001-settings": settings.settings,
    "001-accuracy": ships.accuracy,
    "001-solvers": solvers.solvers,
    "001-lines": lines.lines,
    "001-taylor": taylor.estimates,
    "001-regions": regions.regions,
    "001-adversarial": adversarial.attacks,
    "000-table-1": classifiers.table_1,
    "000-boundaries": boundaries.small,
    "000-pairs": pairs.pairs,
    "003-tables": tables.tables,
    "003-pggan": tables.growing,
    "003-figures": samples.figures,
    "004-tables": agreement.tables,
    "004-seeds": seeds.seeds,
    "004-lines": between.lines,
    "004-workers": workers.workers,
}
"""By name: the number of the paper, and what is reproduced. In this order they are on the page."""

RESULTS = Path("benchmarks/results/reproduction")
WORK = Path("reproduction")


def chosen(names: Sequence[str]) -> list[str]:
    """Studies by their names, by the number of a paper, or all."""
    found = []
    for name in names:
        some = [study for study in STUDIES if name in ("all", study, study[:3])]
        if not some:
            raise InputError(
                f"NAME: expected all, 000, 001, 002, 003, 004 or out of {', '.join(STUDIES)}, found {name}"
            )
        found += [study for study in some if study not in found]
    return found


def write_page(results: Path) -> None:
    """Write the page anew from the records in a folder."""
    page.write(results, list(STUDIES))


def run(names: Sequence[str], quick: bool, work: Path, results: Path, console: Console, training: bool = True) -> None:
    """Run studies one after the other: each writes its record, and the page is written anew after each.

    A quick run writes no page: its figures mean nothing. Without ``training`` what is missing of the networks and
    closest flips of 004 stays so, and the record says it.
    """
    results.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    desk = Desk(quick, work, results, console, training)
    for name in chosen(names):
        console.rule(name)
        clock = _Clock(work / f"{name}.seconds")
        with clock:
            record = STUDIES[name](desk)
        options = " --quick" if quick else ""
        about = {
            "study": name,
            "command": f"python -m benchmarks reproduce {name}{options}",
            "quick": quick,
            "seconds": round(clock.seconds, 1),
            "finished": time.strftime("%Y-%m-%d", time.gmtime()),
            **facts(),
        }
        write(results / f"{name}.json", record, about)
        clock.forget()
        page.show(record, console)
        if not quick:
            write_page(results)


class _Clock:
    """Seconds of a study, those of earlier runs that were interrupted among them."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.seconds = float(kept.read_text()) if kept.exists() else 0.0

    def __enter__(self) -> None:
        self.started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self.started
        self.kept.write_text(f"{self.seconds:.1f}")

    def forget(self) -> None:
        """The study is done."""
        self.kept.unlink(missing_ok=True)
