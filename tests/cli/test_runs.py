"""Long runs on the command line: stopped, gone on with, looked at, and out of space."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import flipopt as fo
from flipopt.cli.main import main
from flipopt.runs.ledger import keeping
from flipopt.runs.rows import Sheet
from tests.flips.test_runs import only_chunks, problem

ROWS = 30_000


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a network and points."""
    network, X = problem(ROWS)
    network.save(tmp_path / "net.npz")
    np.save(tmp_path / "points.npy", X)
    return tmp_path


def command(files: Path, *options: str) -> list[str]:
    return ["solve", str(files / "net.npz"), str(files / "points.npy"), *options]


def started(files: Path, *options: str, threads: int = 2) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", "from flipopt.cli.main import main; main()", *command(files, *options)]
    environment = os.environ | {"FLIPOPT_THREADS": f"{threads}"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, env=environment, start_new_session=True, **pipes)  # type: ignore[call-overload,no-any-return]


def stopped(program: subprocess.Popen[str], number: int) -> tuple[float, str]:
    """Seconds until the program has ended, and what it said."""
    os.killpg(program.pid, number)
    begin = time.perf_counter()
    words = program.communicate(timeout=30)[1]
    return time.perf_counter() - begin, words


def interrupt(files: Path, executor: str, threads: int, folder: Path, wait: float) -> float:
    """Seconds that Ctrl-C takes, once the run has begun and some time has passed."""
    with started(files, "--run", str(folder), "--executor", executor, threads=threads) as program:
        while not (folder / "_manifest.json").exists():
            time.sleep(0.02)
            assert program.poll() is None
        time.sleep(wait)
        seconds, words = stopped(program, signal.SIGINT)
    assert program.returncode == 130
    assert f"stopped by SIGINT; what is finished is kept in {folder}" in words
    assert "Traceback" not in words
    assert only_chunks(folder)
    return seconds


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_ctrl_c_keeps_what_is_finished(files: Path, executor: str) -> None:
    interrupt(files, executor, 2, files / "run", wait=2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "threads"), [("threads", 1), ("threads", 2), ("threads", 4), ("processes", 2)])
def test_ctrl_c_ends_in_two_seconds_in_twenty_of_twenty_tries(files: Path, executor: str, threads: int) -> None:
    rng = np.random.default_rng(threads)
    taken = [interrupt(files, executor, threads, files / f"run{k}", rng.uniform(0, 4)) for k in range(20)]
    print("seconds until the end:", np.round(sorted(taken), 2))
    assert max(taken) < 2.0


def test_a_run_is_shown_and_its_table_written(files: Path) -> None:
    run, out = files / "run", files / "flips.parquet"
    done = CliRunner().invoke(main, command(files, "--run", str(run), "--rows", "300"))
    assert done.exit_code == 0, done.output
    assert f"300 entries in {run}" in done.output.replace("\n", "")
    shown = CliRunner().invoke(main, ["runs", str(run)])
    assert shown.exit_code == 0
    assert "300 of 300 rows (100.0%), complete" in shown.output
    assert "CONVERGED" in shown.output
    again = CliRunner().invoke(main, command(files, "--run", str(run), "--rows", "300", "--out", str(out)))
    assert again.exit_code == 0
    assert len(fo.FlipTable.load(out)) == 300
    other = CliRunner().invoke(main, command(files, "--run", str(run), "--rows", "300", "--seed", "1"))
    assert other.exit_code == 1
    assert "holds another run, whose seed is 0, not 1" in other.output.replace("\n", " ")


def test_a_folder_without_a_run_is_one_line(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["runs", str(tmp_path)])
    assert shown.exit_code == 1
    assert "expected a folder with a run" in shown.output


@pytest.mark.parametrize(
    ("name", "words"),
    [("a" * 300 + ".parquet", "File name too long"), ("missing/flips.parquet", "expected a folder that exists")],
)
def test_a_name_that_cannot_be_is_refused_before_anything_is_computed(files: Path, name: str, words: str) -> None:
    done = CliRunner().invoke(main, command(files, "--out", str(files / name)))
    assert done.exit_code == 1
    assert words in done.output
    assert not done.output.count("Traceback")


def test_neither_out_nor_run_is_said(files: Path) -> None:
    done = CliRunner().invoke(main, command(files))
    assert done.exit_code == 1
    assert "--out: expected a file to write, or --run with a folder, found neither" in done.output


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A disk of 2 MB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], capture_output=True, check=False)
    if mount.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield disk  # type: ignore[misc]
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_keeps_finished_chunks_and_offers_the_table_elsewhere(
    files: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"0" * (2_097_152 - 60_000))
    monkeypatch.setenv("TMPDIR", str(files))
    monkeypatch.setattr("tempfile.tempdir", None)
    run = small_disk / "run"
    full = CliRunner().invoke(main, command(files, "--run", str(run), "--rows", "1000"))
    assert full.exit_code == 1
    assert "No space left on device" in full.output
    assert only_chunks(run)
    kept = {path.name for path in run.iterdir()}
    lost = CliRunner().invoke(main, command(files, "--out", str(small_disk / "flips.parquet"), "--rows", "1000"))
    assert lost.exit_code == 1
    words = lost.output.replace("\n", "")
    assert "No space left on device; the table is in" in words
    (elsewhere,) = files.glob("flipopt-*/flips.parquet")
    assert len(fo.FlipTable.load(elsewhere)) == 1000
    filler.unlink()
    gone_on = CliRunner().invoke(main, command(files, "--run", str(run), "--rows", "1000"))
    assert gone_on.exit_code == 0, gone_on.output
    assert kept <= {path.name for path in run.iterdir()}
    assert fo.runs.open(run).done == 1000


def test_rows_on_the_way_to_their_file_are_shown_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with keeping(path, Sheet(("name", "status")), "comparison") as add:
        add([{"name": "a", "status": "CONVERGED"}, {"name": "b", "status": "LIMIT"}])
        result = CliRunner().invoke(main, ["runs", f"{path}.run"], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "2 rows on the way to their file, a process works on it" in result.output
    assert "CONVERGED" in result.output
    assert "left" not in result.output
