"""Rows that are known are kept, whatever ends the process, and once only."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.runs import ledger
from flipopt.runs.ledger import keeping
from flipopt.runs.rows import Row, Sheet
from flipopt.runs.store import MANIFEST, Run

SHEET = Sheet(("name", "count", "value"), key=("name",))
KILLED = """
import sys
from pathlib import Path
from flipopt.runs.ledger import keeping
from flipopt.runs.rows import Sheet

path, sheet = Path(sys.argv[1]), Sheet(("name", "count", "value"), key=("name",))
with keeping(path, sheet, "squares") as add:
    first = len(sheet.read(path))
    print(first, flush=True)
    for k in range(first, 100_000):
        add([{"name": f"row {k}", "count": k, "value": k / 7}])
        print(k + 1, flush=True)
"""


def row(k: int, name: str = "") -> Row:
    return {"name": name or f"row {k}", "count": k, "value": np.float64(1 / (k + 1))}


def names(path: Path) -> list[str]:
    return [found["name"] for found in SHEET.read(path)]


def pending(path: Path) -> list[Path]:
    """What is in the run beside the file, but for the manifest."""
    folder = path.with_name(f"{path.name}.run")
    return sorted(found for found in folder.iterdir() if found.name != MANIFEST)


def left_by_a_crash(path: Path, add: ledger.Add, rows: list[Row], after: Path) -> None:
    """The file and its run as they are when a process ends with ``rows`` in the run only, copied to ``after``."""
    for one in rows:
        add([one])
    shutil.copytree(path.with_name(f"{path.name}.run"), after.with_name(f"{after.name}.run"))
    if path.exists():
        shutil.copy(path, after)


def test_rows_are_in_the_file_at_the_end_and_later_ones_follow(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for part in (range(3), range(3, 3), range(3, 5)):
        with keeping(path, SHEET, "squares") as add:
            add(row(k) for k in part)
            assert len(pending(path)) == (len(part) > 0)
        assert pending(path) == []
    assert SHEET.read(path) == [{name: str(value) for name, value in row(k).items()} for k in range(5)]


def test_rows_survive_what_ends_the_block(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with suppress(KeyboardInterrupt), keeping(path, SHEET, "squares") as add:
        add([row(0), row(1)])
        raise KeyboardInterrupt
    assert names(path) == ["row 0", "row 1"]


def test_rows_of_a_process_that_was_killed_are_known_the_next_time(tmp_path: Path) -> None:
    path, after = tmp_path / "rows.csv", tmp_path / "after.csv"
    SHEET.write(path, [row(9)])
    with keeping(path, SHEET, "squares") as add:
        left_by_a_crash(path, add, [row(0), row(1)], after)
    assert names(after) == ["row 9"]
    with keeping(after, SHEET, "squares") as add:
        assert names(after) == ["row 9", "row 0", "row 1"]
        add([row(2)])
    assert names(after) == ["row 9", "row 0", "row 1", "row 2"]


def test_a_row_is_there_once_if_the_process_ends_after_the_file_was_written(tmp_path: Path) -> None:
    path, after = tmp_path / "rows.csv", tmp_path / "after.csv"
    with keeping(path, SHEET, "squares") as add:
        left_by_a_crash(path, add, [row(0), row(1)], after)
    SHEET.write(after, [row(0) | {"value": "put in later"}, row(1)])
    with keeping(after, SHEET, "squares"):
        assert [found["value"] for found in SHEET.read(after)] == ["put in later", "0.5"]


def test_a_damaged_chunk_costs_its_rows_only(tmp_path: Path) -> None:
    path, after = tmp_path / "rows.csv", tmp_path / "after.csv"
    with keeping(path, SHEET, "squares") as add:
        left_by_a_crash(path, add, [row(0), row(1), row(2)], after)
    damaged = pending(after)[1]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    words: list[str] = []
    with keeping(after, SHEET, "squares", tell=words.append):
        assert names(after) == ["row 0", "row 2"]
    assert words == [f"{damaged}: damaged, its rows are computed again"]
    assert pending(after) == []


def test_killed_at_random_moments_every_row_is_kept_once(tmp_path: Path) -> None:
    path, rng, known = tmp_path / "rows.csv", np.random.default_rng(0), 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [int(process.stdout.readline()) for _ in range(2)]
            assert said[0] in (known, known + 1)  # the last row may be there without having been said
            time.sleep(rng.uniform(0.0, 0.2))
            process.kill()
            known = [*said, *map(int, process.stdout.read().split())][-1]
    with keeping(path, SHEET, "squares"):
        assert len(names(path)) in (known, known + 1)
        assert names(path) == [f"row {k}" for k in range(len(names(path)))]
    assert pending(path) == []


def test_rows_of_other_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with keeping(path, SHEET, "squares", {"seconds": 5.0}) as add:
        add([row(0)])
    expected = r"rows.csv.run: holds another run, whose seconds is 5.0, not 20.0; choose another file than rows.csv"
    with pytest.raises(fo.FlipoptError, match=expected), keeping(path, SHEET, "squares", {"seconds": 20.0}):
        pass
    assert names(path) == ["row 0"]


def test_a_file_of_other_columns_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(fo.FileFormatError, match="expected the columns name, count"), keeping(path, SHEET, "squares"):
        pass
    assert path.read_text() == "a,b\n1,2\n"


def test_rows_go_to_the_file_while_there_are_more_to_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock = tmp_path / "rows.csv", count(0.0, 25.0)
    monkeypatch.setattr(ledger.time, "monotonic", lambda: next(clock))
    with keeping(path, SHEET, "squares") as add:
        seen = []
        for k in range(5):
            add([row(k)])
            seen.append((len(names(path)), len(pending(path))))
    assert [rows + chunks for rows, chunks in seen] == [1, 2, 3, 4, 5]
    assert 0 < seen[-1][0] < 5


def test_a_full_disk_costs_no_row_that_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "rows.csv", Sheet.write

    def full(self: Sheet, *_: object) -> None:
        raise fo.StorageError("rows.csv: No space left on device")

    monkeypatch.setattr(Sheet, "write", full)
    with pytest.raises(fo.StorageError, match="No space left"), keeping(path, SHEET, "squares") as add:
        add([row(0)])
    assert not path.exists()
    monkeypatch.setattr(Sheet, "write", write)
    with keeping(path, SHEET, "squares"):
        assert names(path) == ["row 0"]


def test_another_one_waits_and_then_knows_all_rows(tmp_path: Path) -> None:
    path, waiting, seen = tmp_path / "rows.csv", threading.Event(), []

    def second() -> None:
        with keeping(path, SHEET, "squares", tell=lambda words: waiting.set()):
            seen.extend(names(path))

    with keeping(path, SHEET, "squares") as add:
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(30)
        add([row(0)])
        assert Run(path.with_name("rows.csv.run")).busy
    other.join(30)
    assert seen == ["row 0"]
