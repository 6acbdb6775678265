"""Rows in a .csv file, appended as they come, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flipopt.common.errors import FileFormatError
from flipopt.common.writing import atomic_path

Row = dict[str, Any]


def read_rows(
    path: Path, whole: Collection[str] = (), real: Collection[str] = (), columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows of a file, with their whole and real numbers as numbers; none if there is no file yet.

    A last line that a killed run has left unfinished is passed over. The file must have the ``columns``, if given.
    """
    if not path.exists():
        return []
    text = path.read_text()
    lines = text[: text.rfind("\n") + 1].splitlines()
    if lines and columns is not None and next(csv.reader(lines[:1])) != list(columns):
        raise FileFormatError(f"{path}: expected the columns {', '.join(columns)}")
    return [_parsed(path, number, row, whole, real) for number, row in enumerate(csv.DictReader(lines), 1)]


def _parsed(path: Path, number: int, row: dict[str, str], whole: Collection[str], real: Collection[str]) -> Row:
    try:
        return row | {name: int(row[name]) for name in whole} | {name: float(row[name]) for name in real}
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: row {number}: {error}") from error


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file anew, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def appending(path: Path, columns: Sequence[str], facts: Row) -> Iterator[Callable[[Iterable[Row]], None]]:
    """A function that appends rows, with the ``facts`` in each, to a file; a line without an end is cut off first."""
    if path.exists():
        read_rows(path, columns=columns)
        with path.open("rb+") as stream:
            stream.truncate(stream.read().rfind(b"\n") + 1)
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, columns)
        if out.tell() == 0:
            writer.writeheader()

        def append(rows: Iterable[Row]) -> None:
            writer.writerows(row | facts for row in rows)
            out.flush()

        yield append
