"""Rows of the benchmarks: kept as those of a comparison, with the facts of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.machine import facts
from flipopt.runs import ledger
from flipopt.runs.rows import Row, Sheet, read_rows

__all__ = ["Row", "keeping", "read_rows"]


@contextmanager
def keeping(path: Path, columns: tuple[str, ...], console: Console) -> Iterator[Callable[[Iterable[Row]], None]]:
    """A function that adds rows to a file (.csv), with the facts of the machine in each.

    Inside the block the file has all rows that are known: what is left to do is found out there.
    """
    machine = facts()
    with ledger.keeping(path, Sheet((*columns, *machine)), "benchmark", tell=console.print) as add:
        yield lambda rows: add(row | machine for row in rows)
