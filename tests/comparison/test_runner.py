"""The runner: what lies, crashes or hangs costs a row, and nothing is run twice."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.comparison import runner
from flipopt.comparison.methods import METHODS, Budget, Claim
from flipopt.comparison.rows import COLUMNS, SHEET, empty_row, read_rows
from flipopt.comparison.runner import Entry, Instance, compare, row_of
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipProblem
from flipopt.runs.machine import facts
from flipopt.runs.store import MANIFEST
from tests.cases import linear

A, OFFSET = np.array([3.0, -4.0]), 1.0


@dataclass(frozen=True)
class Planes:
    """A linear classifier, whose flip is known, at a few points."""

    count: int = 2
    made_of: str = "plane"

    def identity(self) -> dict[str, str]:
        return {"network": self.made_of}

    def entries(self) -> Sequence[Entry]:
        return [Entry("linear", f"plane-{k}", 2) for k in range(self.count)]

    def make(self, name: str) -> Instance:
        k = int(name.split("-")[1])
        net = linear(A, OFFSET)
        x = np.array([1.0 + k, 0.5])
        i = int(net.predict(x))
        return Instance(self.entries()[k], fo.flip_problem(net, x, (i, 1 - i)), net)


def exact(problem: FlipProblem, share: float = 1.0) -> np.ndarray:
    lead = problem.x @ A + OFFSET
    return problem.x - share * lead * A / (A @ A)


@dataclass(frozen=True)
class Fake:
    """A method that behaves as told."""

    what: str

    def run(self, problem: FlipProblem, network: Network, budget: Budget) -> Claim:
        if self.what == "crash":
            os._exit(3)
        if self.what == "hang":
            time.sleep(1000)
        if self.what == "raise":
            raise RuntimeError("of\nits own")
        share = {"exact": 1.0, "lie": 0.9, "attack": 1.01, "honest": 0.9}.get(self.what, 1.0)
        x = np.full(3, 7.0) if self.what == "shape" else exact(problem, share)
        if self.what == "nan":
            x = x * np.nan
        status = {"honest": "LIMIT", "attack": ""}.get(self.what, "CONVERGED")
        return Claim(x, Evaluations(5, 4, 3), 2, status, "done")


def row(what: str) -> dict:
    return row_of(Planes().make("plane-0"), what, Fake(what), Budget())


def test_every_point_is_judged_by_the_same_check() -> None:
    distance = abs(Planes().make("plane-0").problem.x @ A + OFFSET) / 5
    found = row("exact")
    assert (found["status"], found["feasible"]) == ("CONVERGED", True)
    assert found["distance"] == pytest.approx(distance, rel=1e-12)
    assert [found[name] for name in ("forward", "backward", "hessian", "iterations", "n")] == [5, 4, 3, 2, 2]
    attack = row("attack")
    assert (attack["status"], attack["feasible"]) == ("BEYOND", True)
    assert attack["distance"] == pytest.approx(1.01 * distance)


@pytest.mark.parametrize(
    ("what", "status", "message"),
    [
        ("lie", "NUMERICAL_ERROR", "claims success, but is off the boundary by"),
        ("honest", "LIMIT", "done"),
        ("shape", "NUMERICAL_ERROR", "done"),
        ("nan", "NUMERICAL_ERROR", "done"),
        ("raise", "NUMERICAL_ERROR", "RuntimeError: of its own"),
    ],
)
def test_a_failure_is_a_row(what: str, status: str, message: str) -> None:
    found = row(what)
    assert found["status"] == status
    assert message in found["message"]
    assert not found["feasible"]
    assert np.isnan(found["distance"])


def test_what_crashes_or_hangs_costs_one_row_and_nothing_is_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "GRACE", 1.0)
    out = tmp_path / "rows.csv"
    methods = {name: Fake(name) for name in ("crash", "exact", "hang", "raise")}
    seen: list[tuple[int, int]] = []
    rows = compare(Planes(), methods, out, Budget(seconds=1.0), lambda done, total: seen.append((done, total)))
    assert [(row["problem"], row["method"]) for row in rows] == [
        (f"plane-{k}", name) for k in range(2) for name in methods
    ]
    by_method = {name: [row for row in rows if row["method"] == name] for name in methods}
    assert {row["status"] for row in by_method["crash"]} == {"CRASHED"}
    assert "exit code 3" in by_method["crash"][0]["message"]
    assert {row["status"] for row in by_method["hang"]} == {"LIMIT"}
    assert "killed after 2 s" in by_method["hang"][0]["message"]
    assert {row["status"] for row in by_method["exact"]} == {"CONVERGED"}
    assert seen[-1] == (8, 8)
    before = out.read_text()
    again = compare(Planes(), methods, out, Budget(seconds=1.0))
    assert out.read_text() == before
    np.testing.assert_equal(again, rows)


@dataclass(frozen=True)
class Diary:
    """A method that writes down what it is given."""

    path: str

    def run(self, problem: FlipProblem, network: Network, budget: Budget) -> Claim:
        with open(self.path, "a") as stream:
            stream.write(f"{budget.seconds:g}\n")
        return Fake("exact").run(problem, network, budget)


def test_the_first_run_in_a_process_only_warms_up(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    rows = compare(Planes(2), {"diary": Diary(str(diary))}, tmp_path / "rows.csv", Budget(seconds=5.0))
    assert len(rows) == 2
    assert diary.read_text().split() == ["1", "5", "5"]


def test_an_unfinished_line_is_cut_and_its_row_run_again(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    compare(Planes(1), {"exact": Fake("exact")}, out, Budget())
    whole = out.read_text()
    out.write_text(whole[:-20])
    assert read_rows(out) == []
    rows = compare(Planes(1), {"exact": Fake("exact")}, out, Budget())
    assert len(rows) == 1
    assert out.read_text().count("\n") == 2


def test_rows_say_where_they_come_from_and_are_checked(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    SHEET.write(out, [empty_row("f", "p", 3, "m", "LIMIT", 'says "no", twice', 1.5) | facts()])
    (row,) = read_rows(out)
    assert set(row) == set(COLUMNS)
    assert row["message"] == 'says "no", twice'
    assert row["cores"] >= "1"
    assert "numpy" in row["versions"]
    out.write_text(out.read_text().replace("1.5", "soon"))
    with pytest.raises(fo.FileFormatError, match="row 1: could not convert"):
        read_rows(out)
    out.write_text("a,b\n1,2\n")
    with pytest.raises(fo.FileFormatError, match="expected the columns family, problem"):
        read_rows(out)


def stop(done: int, total: int) -> None:
    """What a user does at the third row."""
    if done == 2:
        raise KeyboardInterrupt


def test_a_comparison_that_was_stopped_goes_on_with_the_same_problems_and_budget_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, methods = tmp_path / "rows.csv", {"exact": Fake("exact"), "lie": Fake("lie")}

    def row_here(_: object, entry: Entry, name: str) -> dict:
        return row_of(Planes().make(entry.name), name, methods[name], Budget())

    monkeypatch.setattr(runner._Worker, "row", row_here)  # a process of its own is not what this is about
    with pytest.raises(KeyboardInterrupt):
        compare(Planes(), methods, out, Budget(), stop)
    kept = read_rows(out)
    assert [(row["problem"], row["method"]) for row in kept] == [("plane-0", "exact"), ("plane-0", "lie")]
    with pytest.raises(fo.StorageError, match=r"whose seconds is 60.0, not 5.0"):
        compare(Planes(), methods, out, Budget(seconds=5.0))
    with pytest.raises(fo.StorageError, match=r"whose network is 'plane', not 'another'"):
        compare(Planes(2, "another"), methods, out, Budget())
    rows = compare(Planes(), methods, out, Budget())
    np.testing.assert_equal(rows[:2], kept)
    assert len(rows) == 4
    assert sorted(path.name for path in tmp_path.rglob("*")) == [MANIFEST, "rows.csv", "rows.csv.run"]


@pytest.mark.parametrize("name", [name for name in METHODS if "homotopy" not in name])
def test_the_library_s_methods_find_a_plane_or_say_why_not(name: str) -> None:
    found = row_of(Planes().make("plane-1"), name, METHODS[name], Budget(seconds=20.0))
    if name == "pieces":
        assert found["status"] == "UNAVAILABLE"
    else:
        assert found["feasible"], found["message"]
        assert found["distance"] == pytest.approx(abs(np.array([2.0, 0.5]) @ A + OFFSET) / 5, rel=1e-6)
        assert found["forward"] > 0
