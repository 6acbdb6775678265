"""Distances of attacks: the file has lists, the run beside it rows, and both say the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import flipopt as fo
from benchmarks.distances import SHEET, keeping, known, rows_of

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize("name", ["batch_peers.json", "networks_peers.json"])
def test_files_are_written_as_they_were_read(name: str, tmp_path: Path) -> None:
    SHEET.write(tmp_path / name, SHEET.read(RESULTS / name))
    assert (tmp_path / name).read_bytes() == (RESULTS / name).read_bytes()


def test_rows_become_lists_up_to_the_first_image_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "peers.json"
    with keeping(path, Console()) as add:
        add(rows_of("net 1", "fab", [0.25, np.inf], 3.0))
        add(rows_of("net 1", "cw", [0.5]))
        add(rows_of("net 1", "fab", [2.0], 1.0, first=3))
    assert json.loads(path.read_text()) == {
        "net 1": {"fab": {"seconds": 3.0, "distances": [0.25, np.inf]}, "cw": [0.5]}
    }
    with keeping(path, Console()) as add:
        add(rows_of("net 1", "fab", [1 / 3, 2.0], 2.5, first=2))
    assert known(path, "net 1", "fab") == ([0.25, np.inf, 0.333333333, 2.0], 5.5)
    np.testing.assert_equal(known(path, "net 1", "cw"), ([0.5], np.nan))
    assert known(path, "net 2", "fab") == ([], 0.0)


def test_what_is_not_such_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "peers.json"
    for content in ("[1, 2]", '{"net": ', '{"net": 3}'):
        path.write_text(content)
        with pytest.raises(fo.FileFormatError, match=r"peers.json: expected distances by network and attack"):
            known(path, "net", "fab")
