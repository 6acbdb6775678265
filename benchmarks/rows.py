"""Result files: rows that are appended as they come, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.machine import facts

Row = dict[str, Any]


def read_rows(path: Path, whole: Collection[str], real: Collection[str]) -> list[Row]:
    """Rows of a .csv file with their numbers as numbers; none if there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        rows: list[Row] = list(csv.DictReader(stream))
    for row in rows:
        row.update({name: int(row[name]) for name in whole} | {name: float(row[name]) for name in real})
    return rows


@contextmanager
def appending(
    path: Path, columns: Sequence[str], console: Console, what: str, total: int
) -> Iterator[Callable[[list[Row]], None]]:
    """A function that appends the rows of one problem, with the facts of the machine, and moves a progress bar on."""
    machine, new = facts(), not path.exists()
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*bar, console=console) as progress, path.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, (*columns, *machine))
        if new:
            writer.writeheader()
        task = progress.add_task(what, total=total)

        def add(rows: list[Row]) -> None:
            writer.writerows(row | machine for row in rows)
            stream.flush()
            progress.advance(task)

        yield add
