from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

import flipopt as fo
from benchmarks import __main__ as program
from benchmarks.reproduce import run as reproduction
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.record import Record

QUIET = Console(quiet=True)


def test_studies_are_chosen_by_name_by_paper_or_all() -> None:
    names = list(reproduction.STUDIES)
    assert reproduction.chosen(["all"]) == names
    assert reproduction.chosen(["001"]) == [name for name in names if name.startswith("001")]
    assert reproduction.chosen([names[1], "002", names[1]])[0] == names[1]
    assert len(reproduction.chosen([names[1], "all"])) == len(names)
    with pytest.raises(
        fo.InputError, match="NAME: expected all, 000, 001, 002, 003, 004 or out of 002-.*, found table"
    ):
        reproduction.chosen(["table"])


def test_an_unknown_study_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(program.main, ["reproduce", "006", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: NAME: expected all, 000, 001, 002, 003, 004")


def test_a_quick_run_writes_a_record_and_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "STUDIES", {"002-toy": lambda desk: Record("t", "s", {"quick": desk.quick}, [0])})
    monkeypatch.setattr(reproduction, "write_page", lambda results: pytest.fail("a page of a quick run"))
    reproduction.run(["all"], True, tmp_path / "work", tmp_path / "out", QUIET)
    found = json.loads((tmp_path / "out" / "002-toy.json").read_text())
    assert (found["command"], found["quick"]) == ("python -m benchmarks reproduce 002-toy --quick", True)


def test_the_time_of_an_interrupted_study_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def study(desk: Desk) -> Record:
        calls.append(desk)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return Record("t", "s", {}, [0])

    clock = iter([0.0, 100.0, 200.0, 207.0])
    monkeypatch.setattr(reproduction.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(reproduction, "STUDIES", {"002-toy": study})
    with pytest.raises(KeyboardInterrupt):
        reproduction.run(["all"], True, tmp_path / "work", tmp_path, QUIET)
    reproduction.run(["all"], True, tmp_path / "work", tmp_path, QUIET)
    assert json.loads((tmp_path / "002-toy.json").read_text())["seconds"] == 107.0
    assert not list((tmp_path / "work").iterdir())
