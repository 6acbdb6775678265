"""A folder of chunks: sound whatever happens to it, gone on with only by the same work."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import flipopt as fo
from flipopt.runs.store import MANIFEST, Run

WHAT = {"network": "abc", "seed": 0}


def begun(folder: Path, total: int = 10, step: int = 2) -> Run:
    return Run.begin(folder, "squares", WHAT, total, step)


def squares(part: range) -> pa.Table:
    items = np.array(part)
    return pa.table({"item": items, "square": items**2, "status": ["ok"] * len(items)})


def add(run: Run, start: int, stop: int) -> None:
    run.add(range(start, stop), squares(range(start, stop)), 0.5)


def test_what_is_missing_is_read_from_the_names(tmp_path: Path) -> None:
    run = begun(tmp_path / "a" / "run")
    assert run.missing == [range(10)]
    add(run, 2, 4)
    add(run, 8, 10)
    again = fo.runs.open(tmp_path / "a" / "run")
    assert again.missing == [range(2), range(4, 8)]
    assert (again.done, again.total, again.busy) == (4, 10, False)
    assert again.counts("status") == {"ok": 4}
    assert [entry[:2] for entry in again.pace()] == [(2, 0.5), (2, 0.5)]


def test_everybody_reads_the_folder(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run = begun(tmp_path)
    for start in (0, 4, 2, 6):
        add(run, start, start + 2)
    frame = run.to_pandas()
    assert frame["square"].tolist() == [k**2 for k in range(8)]
    assert pandas.read_parquet(tmp_path).equals(frame)


def test_a_damaged_chunk_is_found_and_removed(tmp_path: Path) -> None:
    run = begun(tmp_path)
    add(run, 0, 2)
    add(run, 2, 4)
    broken = run.chunks[1].path
    content = bytearray(broken.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    with pytest.raises(fo.FileFormatError, match="expected the checksum"):
        list(run.tables())
    assert [chunk.path for chunk in run.repair()] == [broken]
    assert run.missing == [range(2, 10)]
    assert not broken.exists()


def test_what_a_killed_process_left_behind_is_removed(tmp_path: Path) -> None:
    run = begun(tmp_path)
    add(run, 0, 2)
    (tmp_path / ".flipopt-1234.parquet").write_bytes(b"half")
    run.repair()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([MANIFEST, run.chunks[0].path.name])


def test_a_chunk_with_impossible_limits_or_beside_another_does_not_count(tmp_path: Path) -> None:
    run = begun(tmp_path)
    add(run, 0, 4)
    add(run, 2, 6)
    add(run, 8, 12)
    assert [chunk.part for chunk in run.chunks] == [range(4)]
    assert len(run.repair()) == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_a_chunk_of_another_run_is_refused(tmp_path: Path) -> None:
    run, other = begun(tmp_path / "a"), Run.begin(tmp_path / "b", "squares", WHAT | {"seed": 1}, 10, 2)
    add(other, 0, 2)
    chunk = other.chunks[0].path
    chunk.rename(run.folder / chunk.name)
    with pytest.raises(fo.FileFormatError, match="expected a chunk of this run, found one of another"):
        list(run.tables())


def test_another_run_in_the_folder_is_refused_and_said_what_differs(tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.raises(fo.FlipoptError, match="holds another run, whose seed is 0, not 7; choose another folder"):
        Run.begin(tmp_path, "squares", WHAT | {"seed": 7}, 10, 2)
    with pytest.raises(fo.FlipoptError, match="whose total is 10, not 11"):
        Run.begin(tmp_path, "squares", WHAT, 11, 2)
    assert begun(tmp_path).missing == [range(10)]


def test_the_step_is_that_of_the_beginning(tmp_path: Path) -> None:
    begun(tmp_path, step=2)
    assert begun(tmp_path, step=5).step == 2


def test_other_versions_are_said(tmp_path: Path) -> None:
    begun(tmp_path)
    path = tmp_path / MANIFEST
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"versions": "python 3.11.0; flipopt 0.0.1"}))
    with pytest.warns(UserWarning, match="was begun with flipopt 0.0.1, python 3.11.0"):
        begun(tmp_path)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(fo.FlipoptError, match=r"expected a run or an empty folder, found thesis\.tex"):
        begun(tmp_path)
    with pytest.raises(fo.FlipoptError, match=f"expected a folder with a run, found no {MANIFEST}"):
        fo.runs.open(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"format": 1, "total": 3, "step": 0, "kind": "a", "what": {}}',
        '{"format": 1, "total": -3, "step": 1, "kind": "a", "what": {}}',
        '{"format": 1, "total": "3", "step": 1, "kind": "a", "what": {}}',
        '{"format": 9, "total": 3, "step": 1, "kind": "a", "what": {}}',
        '{"format": 1, "total": 3, "step": 1, "kind": 1, "what": {}}',
    ],
)
def test_a_manifest_from_a_stranger_is_checked(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(fo.FileFormatError, match=MANIFEST):
        fo.runs.open(tmp_path)
