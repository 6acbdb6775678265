"""Labels from files, and tables with a column that is no feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flipopt.common.errors import FileFormatError
from flipopt.common.label_files import read_column, read_labels
from flipopt.common.point_files import read_table

LABELS = np.array([2, 0, 1])


def test_labels_of_every_format(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS)
    np.savez(tmp_path / "b.npz", y=LABELS, other=np.zeros(2))
    (tmp_path / "c.csv").write_text("2\n0\n1\n")
    (tmp_path / "d.csv").write_text("kind\n2\n0\n1\n")
    pq.write_table(pa.table({"kind": LABELS}), tmp_path / "e.parquet")
    pq.write_table(pa.table({"label": LABELS, "other": [0, 0, 0]}), tmp_path / "f.parquet")
    for name in ("a.npy", "b.npz", "c.csv", "d.csv", "e.parquet", "f.parquet"):
        np.testing.assert_array_equal(read_labels(tmp_path / name, 3), LABELS)


def test_names_are_labels_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("kind\ncat\n dog\ncat\n")
    assert read_labels(tmp_path / "a.csv", 3).tolist() == ["cat", "dog", "cat"]
    assert read_labels(tmp_path / "a.csv", 4).tolist() == ["kind", "cat", "dog", "cat"]
    pq.write_table(pa.table({"kind": ["cat", "dog"]}), tmp_path / "b.parquet")
    assert read_labels(tmp_path / "b.parquet", 2).tolist() == ["cat", "dog"]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", something=LABELS)
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    np.save(tmp_path / "c.npy", LABELS)
    for name, words in (
        ("a.npz", "expected 'labels' among its names, found something"),
        ("b.csv", "expected a label a line, found a line of 2 cells"),
        ("c.npy", "expected 5 labels, one a row of the data, found shape \\(3,\\)"),
        ("d.txt", "expected .npy, .npz, .csv or .parquet"),
        ("none.npy", "no such file"),
    ):
        with pytest.raises(FileFormatError, match=words):
            read_labels(tmp_path / name, 5)


def test_a_column_of_a_table_is_left_out_of_its_points(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,kind,y\n1,cat,2\n3,dog,4\n")
    pq.write_table(pa.table({"x": [1.0, 3.0], "kind": ["cat", "dog"], "y": [2.0, 4.0]}), tmp_path / "b.parquet")
    np.savez(tmp_path / "c.npz", X=np.ones((2, 2)), kind=np.array(["cat", "dog"]))
    for name in ("a.csv", "b.parquet"):
        points, names = read_table(tmp_path / name, 2, without="kind")
        np.testing.assert_array_equal(points, [[1, 2], [3, 4]])
        assert names == ("x", "y")
    for name in ("a.csv", "b.parquet", "c.npz"):
        column = read_column(tmp_path / name, "kind")
        assert column is not None
        assert column.tolist() == ["cat", "dog"]
        assert read_column(tmp_path / name, "other") is None
    with pytest.raises(FileFormatError, match="expected rows of 2 numbers, found shape"):
        read_table(tmp_path / "a.csv", 2)
