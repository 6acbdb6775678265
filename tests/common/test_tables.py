from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from flipopt.common.checks import Array
from flipopt.common.errors import StorageError
from flipopt.common.tables import Table


@dataclass(frozen=True)
class Found(Table):
    row: Array
    classes: Array
    x: Array


FOUND = Found(np.array([3, 1]), np.array([[0, 2], [1, 0]]), np.array([[0.5, 1.0, 2.0], [-1.0, 0.0, 1e-300]]))


def test_a_frame_has_the_plain_columns_and_the_two_classes() -> None:
    frame = FOUND.to_pandas()
    assert list(frame.columns) == ["row", "i", "j"]
    assert frame["j"].tolist() == [2, 0]


def test_a_file_has_the_points_too(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "found.parquet")
    table = pq.read_table(tmp_path / "found.parquet")
    assert table.column_names == ["row", "i", "j", "x"]
    assert table["x"].to_pylist() == FOUND.x.tolist()


def test_no_records_are_a_table_too(tmp_path: Path) -> None:
    FOUND.take(np.empty(0, dtype=np.int64)).save(tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere"):
        FOUND.save(tmp_path / "nowhere" / "found.parquet")
