"""Rows of the benchmarks: those of the library, with a progress bar and the facts of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from rich.console import Console

from benchmarks.machine import facts
from flipopt.common.progress import progress_bar
from flipopt.runs import rows as files
from flipopt.runs.rows import Row, read_rows

__all__ = ["Row", "appending", "read_rows"]


@contextmanager
def appending(
    path: Path, columns: Sequence[str], console: Console, what: str, total: int
) -> Iterator[Callable[[list[Row]], None]]:
    """A function that appends the rows of one problem, with the facts of the machine, and moves a progress bar on."""
    machine, done = facts(), count(1)
    bar, append = progress_bar(what, total, console=console), files.appending(path, (*columns, *machine), machine)
    with bar as advance, append as add_rows:

        def add(rows: list[Row]) -> None:
            add_rows(rows)
            advance(next(done))

        yield add
