"""The best distances known, and which method is good for what."""

from __future__ import annotations

from pathlib import Path

import pytest

import flipopt as fo
from benchmarks.best import improve_best, read_best
from benchmarks.solvers import by_family
from flipopt.comparison.table import Comparison
from tests.comparison.test_table import ROWS, row


def test_which_method_for_what() -> None:
    lines = by_family(Comparison.of(ROWS))
    assert lines == [("method", "plane", "sphere"), ("a", "100% (12)", "0%"), ("b", "50% (6)", "100% (12)")]


def test_only_a_verified_closer_point_changes_the_best(tmp_path: Path) -> None:
    path = tmp_path / "best.csv"
    assert read_best(path) == {}
    assert improve_best(path, ROWS) == 2  # not the one beyond the boundary
    assert read_best(path) == {"plane-0": 1.0, "plane-1": 2.0}
    before = path.read_text()
    worse = [row("plane-0", "c", 1.1), row("plane-1", "c", 1.0, "BEYOND"), row("plane-1", "d", 1.0, "NUMERICAL_ERROR")]
    rounding = [row("plane-0", "c", 1 - 1e-12)]
    assert improve_best(path, worse + rounding) == 0
    assert path.read_text() == before
    assert improve_best(path, [row("plane-1", "c", 1.5, "ON_BOUNDARY")]) == 1
    assert read_best(path)["plane-1"] == 1.5
    assert "c,abc" in path.read_text()
    path.write_text("problem,distance,method,commit\nplane-0,-1,a,abc\n")
    with pytest.raises(fo.FileFormatError, match="best.csv: problem plane-0: expected a distance above 0, found -1.0"):
        read_best(path)
