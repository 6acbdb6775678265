"""Rows in a file: whole lines only, one set of columns, numbers as numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

import flipopt as fo
from flipopt.runs.rows import Row, read_rows, write_rows

COLUMNS = ("name", "count", "value")
HOSTILE = "of, 'two'\nlines \"and\" \u2028 more\x85\r\n"


def read(path: Path) -> list[Row]:
    return read_rows(path, ["count"], ["value"], COLUMNS)


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    assert read(path) == []
    rows = [{"name": f"{HOSTILE}{k}", "count": k, "value": 1 / (k + 1)} for k in range(4)]
    write_rows(path, COLUMNS, rows)
    assert read(path) == rows
    path.write_bytes(b"")
    assert read(path) == []


def test_an_unfinished_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, COLUMNS, [{"name": name, "count": 1, "value": 0.5} for name in "ab"])
    path.write_bytes(path.read_bytes()[:-3])
    assert [row["name"] for row in read(path)] == ["a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "rows.csv: expected the columns name, count, value"),
        (b"name,count,value\na,1,soon\n", "rows.csv: row 1: could not convert"),
        (b"name,count,value\na,1,2\nb,1\n", "rows.csv: row 2: expected 3 values, found 2"),
        (b"name,count,value\n\xff,1,2\n", "rows.csv: not a .csv file"),
        (b"name,count,value\n" + b"a" * 200_000 + b",1,2\n", "rows.csv: not a .csv file"),
    ],
)
def test_what_is_not_such_a_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(fo.FileFormatError, match=message):
        read(path)
