"""Rows that processes compute, kept as they come in a .csv file: what is there is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from flipopt.common.progress import progress_bar
from flipopt.runs import ledger
from flipopt.runs.processes import Processes
from flipopt.runs.rows import Row, Sheet
from flipopt.runs.schedule import Schedule
from flipopt.runs.work import Work

Load = TypeVar("Load")
KEY = "key"
"""The column by which rows are known."""


def computed(
    path: Path,
    columns: tuple[str, ...],
    what: str,
    loads: Mapping[str, Load],
    task: Callable[[Load], list[Row]],
    console: Console,
    again: Callable[[str], bool] = lambda key: False,
) -> dict[str, list[Row]]:
    """The rows in the file ``path`` by key, once ``task`` has been done in a process for every load it lacked.

    ``columns`` are those of the rows beside their key and their ``seconds``; a task that has the key ``again`` is done
    though its rows are known. ``what`` is what the bar calls the tasks.
    """
    sheet = Sheet((KEY, *columns, "seconds"))
    with ledger.keeping(path, sheet, what, tell=console.print) as add:
        known = {row[KEY] for row in sheet.read(path)}
        todo = [key for key in loads if key not in known or again(key)]
        if todo:
            _compute([(key, loads[key]) for key in todo], task, what, add, console)
    rows: dict[str, list[Row]] = {}
    for row in sheet.read(path):
        rows.setdefault(row[KEY], []).append(row)
    return rows


def _compute(
    loads: list[tuple[str, Load]],
    task: Callable[[Load], list[Row]],
    what: str,
    add: ledger.Add,
    console: Console,
) -> None:
    work = Work(task, lambda part: loads[part.start][1], len(loads), 1, 1)
    schedule = Schedule([range(len(loads))], 1, 1)
    each = closing(Processes().each(work, schedule))  # type: ignore[type-var]
    with progress_bar(what, len(loads), console=console) as advance, each as results:
        for done, (part, rows, seconds) in enumerate(results, 1):
            key = loads[part.start][0]
            add({KEY: key, **row, "seconds": f"{seconds:.3g}"} for row in rows)
            advance(done)
