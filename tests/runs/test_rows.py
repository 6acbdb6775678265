"""Rows that are appended to a file: whole lines only, one set of columns, numbers as numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.runs.rows import appending, read_rows, write_rows

COLUMNS = ("name", "count", "value", "machine")
FACTS = {"machine": "here, or there"}


def read(path: Path) -> list[dict]:
    return read_rows(path, ["count"], ["value"], COLUMNS)


def test_rows_are_read_as_they_were_appended_and_later_runs_go_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    assert read(path) == []
    rows = [{"name": f"row, {k}", "count": k, "value": np.float64(1 / (k + 1))} for k in range(4)]
    for part in (rows[:3], rows[3:]):
        with appending(path, COLUMNS, FACTS) as append:
            append(part)
    assert read(path) == [row | FACTS for row in rows]


def test_rows_are_in_the_file_before_the_run_ends(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with appending(path, COLUMNS, FACTS) as append:
        append([{"name": "a", "count": 1, "value": 0.5}])
        assert len(read(path)) == 1


def test_an_unfinished_line_is_passed_over_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, COLUMNS, [{"name": name, "count": 1, "value": 0.5} | FACTS for name in "ab"])
    path.write_text(path.read_text()[:-5])
    assert [row["name"] for row in read(path)] == ["a"]
    with appending(path, COLUMNS, FACTS) as append:
        append([{"name": "c", "count": 2, "value": 0.25}])
    assert [row["name"] for row in read(path)] == ["a", "c"]


def test_a_file_of_other_columns_or_with_words_for_numbers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(fo.FileFormatError, match="rows.csv: expected the columns name, count, value, machine"):
        read(path)
    with pytest.raises(fo.FileFormatError, match="expected the columns"), appending(path, COLUMNS, FACTS):
        pass
    assert path.read_text() == "a,b\n1,2\n"
    path.write_text("name,count,value,machine\na,1,soon,here\n")
    with pytest.raises(fo.FileFormatError, match="row 1: could not convert"):
        read(path)
