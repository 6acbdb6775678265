"""Rows in a .csv file, which is written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from flipopt.common.errors import FileFormatError
from flipopt.common.writing import storing, write_synced

Row = dict[str, Any]


@dataclass(frozen=True)
class Sheet:
    """A kind of file: the columns of its rows, and those that tell two rows apart (all, if none are given)."""

    columns: tuple[str, ...]
    key: tuple[str, ...] = ()

    def read(self, path: Path) -> list[Row]:
        """The rows of a file as text; none if there is no file yet."""
        return read_rows(path, columns=self.columns)

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Write a file anew, whole or not at all."""
        write_rows(path, self.columns, rows)

    def name(self, row: Row) -> tuple[str, ...]:
        """What tells a row from others."""
        return tuple(str(row[name]) for name in self.key or self.columns)


def read_rows(
    path: Path, whole: Collection[str] = (), real: Collection[str] = (), columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows of a file, with their whole and real numbers as numbers; none if there is no file yet.

    A last line without an end is passed over. The file must have the ``columns``, if given.
    """
    if not path.exists():
        return []
    with storing(path):
        content = path.read_bytes()
    try:
        text = content[: content.rfind(b"\n") + 1].decode()
        head, *lines = [line for line in csv.reader(StringIO(text, newline="")) if line] or [list(columns or ())]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path}: not a .csv file: {error}") from error
    if columns is not None and head != list(columns):
        raise FileFormatError(f"{path}: expected the columns {', '.join(columns)}")
    for number, line in enumerate(lines, 1):
        if len(line) != len(head):
            raise FileFormatError(f"{path}: row {number}: expected {len(head)} values, found {len(line)}")
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    return [_parsed(path, number, row, whole, real) for number, row in enumerate(rows, 1)]


def _parsed(path: Path, number: int, row: dict[str, str], whole: Collection[str], real: Collection[str]) -> Row:
    try:
        return row | {name: int(row[name]) for name in whole} | {name: float(row[name]) for name in real}
    except (KeyError, ValueError) as error:
        raise FileFormatError(f"{path}: row {number}: {error}") from error


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file anew, whole or not at all."""
    stream = StringIO(newline="")
    writer = csv.DictWriter(stream, columns)
    writer.writeheader()
    writer.writerows(rows)
    write_synced(path, stream.getvalue().encode())
