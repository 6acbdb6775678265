"""Runs: the table of a run is that of the plain call, whoever computes it and however often it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.common.checks import Array
from flipopt.runs.store import MANIFEST
from flipopt.solvers import Batch
from tests.solvers.batch.nets import random_network

SOLVER = Batch(chunk=60)
"""Small chunks, so that there are many."""


def problem(rows: int = 200) -> tuple[fo.DenseNetwork, Array]:
    network = random_network(3, (6, 8, 3))
    return network, 0.5 * np.random.default_rng(0).standard_normal((rows, 6))


def solve(folder: Path | None, rows: int = 200, **options: object) -> fo.FlipTable:
    network, X = problem(rows)
    return fo.closest_flip_points(network, X, solver=SOLVER, run=folder, **options)


def assert_same(table: fo.FlipTable, other: fo.FlipTable) -> None:
    """Bit for bit in everything but the time that it took."""
    for name in table.names():
        if name != "elapsed":
            np.testing.assert_array_equal(getattr(table, name), getattr(other, name), err_msg=name)


def only_chunks(folder: Path) -> bool:
    return all(path.name == MANIFEST or path.suffix == ".parquet" for path in folder.iterdir())


@pytest.mark.parametrize(("executor", "kept"), [(None, True), ("processes", False), ("processes", True)])
def test_the_table_is_that_of_the_plain_call(tmp_path: Path, executor: str | None, kept: bool) -> None:
    folder = tmp_path / "run" if kept else None
    assert_same(solve(folder, executor=executor), solve(None))
    if folder is not None:
        assert fo.runs.open(folder).done == 200
        assert only_chunks(folder)


def test_serial_solvers_and_pairs_can_be_kept_too(tmp_path: Path) -> None:
    network, X = problem(4)
    options = {"targets": "all", "solver": "trust-region"}
    plain = fo.closest_flip_points(network, X, **options)
    kept = fo.closest_flip_points(network, X, run=tmp_path, **options)
    assert_same(kept, plain)
    assert_same(fo.closest_flip_points(network, X, run=tmp_path, **options), plain)


def test_a_finished_run_computes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = solve(tmp_path)
    monkeypatch.setattr("flipopt.flips.work.solve_batched", None)
    assert_same(solve(tmp_path), first)


def test_only_what_is_missing_or_damaged_is_computed_again(tmp_path: Path) -> None:
    first = solve(tmp_path)
    chunks = fo.runs.open(tmp_path).chunks
    assert len(chunks) > 3
    chunks[0].path.unlink()
    chunks[2].path.write_bytes(chunks[2].path.read_bytes()[:-1])
    kept = {chunk.path: chunk.path.stat().st_mtime_ns for chunk in (chunks[1], *chunks[3:])}
    assert_same(solve(tmp_path), first)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert not chunks[2].path.exists() or chunks[2].sound


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("lower is '-inf of 6', not '-3.0 of 6'", {"bounds": (-3.0, 3.0)}),
        ("seed is 0, not 1", {"seed": 1}),
        ("targets is 'nearest', not 'all'", {"targets": "all"}),
        ("total is 200, not 199", {"rows": 199}),
    ],
)
def test_other_inputs_or_options_are_refused(tmp_path: Path, words: str, change: dict[str, object]) -> None:
    solve(tmp_path)
    with pytest.raises(fo.FlipoptError, match="holds another run") as caught:
        solve(tmp_path, **change)
    assert words in str(caught.value)


def test_another_network_is_refused(tmp_path: Path) -> None:
    solve(tmp_path)
    network, X = problem()
    with pytest.raises(fo.FlipoptError, match="whose network is"):
        fo.closest_flip_points(network.with_output_bias(network.biases[-1] + 1e-9), X, solver=SOLVER, run=tmp_path)


SCRIPT = """
from pathlib import Path
from tests.flips.test_runs import solve
if __name__ == "__main__":
    solve(Path({folder!r}), {rows}, executor={executor!r})
"""


def started(folder: Path, rows: int, executor: str | None) -> subprocess.Popen[bytes]:
    script = SCRIPT.format(folder=str(folder), rows=rows, executor=executor)
    return subprocess.Popen([sys.executable, "-c", script], start_new_session=True)


def disturbed(folder: Path, rows: int, executor: str | None, kills: int, seed: int) -> Iterator[dict[Path, int]]:
    """Kill and go on, again and again; the finished chunks after every kill, with the time that they were written."""
    rng = np.random.default_rng(seed)
    for _ in range(kills):
        process, before = started(folder, rows, executor), len(list(folder.glob("0*.parquet")))
        while process.poll() is None and len(list(folder.glob("0*.parquet"))) == before:
            time.sleep(0.01)  # it has begun to work
        time.sleep(rng.uniform(0.0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        yield {path: path.stat().st_mtime_ns for path in folder.glob("0*.parquet")}


def survives(folder: Path, rows: int, executor: str | None, kills: int) -> None:
    folder.mkdir()
    finished: dict[Path, int] = {}
    for chunks in disturbed(folder, rows, executor, kills, seed=kills):
        assert {path: chunks.get(path) for path in finished} == finished
        finished = chunks
    table = solve(folder, rows, executor=executor)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert only_chunks(folder)
    assert_same(table, solve(None, rows))


@pytest.mark.parametrize("executor", [None, "processes"])
def test_a_run_that_is_killed_goes_on(tmp_path: Path, executor: str | None) -> None:
    survives(tmp_path / "run", 600, executor, kills=1)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [None, "processes"])
def test_a_run_that_is_killed_twenty_times_goes_on(tmp_path: Path, executor: str | None) -> None:
    survives(tmp_path / "run", 6000, executor, kills=20)


def test_two_processes_do_not_work_twice(tmp_path: Path) -> None:
    both = [started(tmp_path, 400, None) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    run = fo.runs.open(tmp_path)
    assert run.done == run.total == 400
    assert sum(len(table) for table in run.tables()) == 400
    assert_same(solve(tmp_path, 400), solve(None, 400))
