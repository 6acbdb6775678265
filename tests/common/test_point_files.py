from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flipopt.common.errors import FileFormatError
from flipopt.common.point_files import read_points

X = np.arange(12.0).reshape(4, 3)


def test_every_format_gives_the_same_points(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", X=X)
    np.savez(tmp_path / "c.npz", features=X)
    pq.write_table(pa.table({name: X[:, k] for k, name in enumerate("pqr")}), tmp_path / "d.parquet")
    pq.write_table(pa.table({"x": list(X)}), tmp_path / "e.parquet")
    for path in sorted(tmp_path.iterdir()):
        np.testing.assert_array_equal(read_points(path, 3), X)
    np.save(tmp_path / "one.npy", X[0].astype(np.int32))
    np.testing.assert_array_equal(read_points(tmp_path / "one.npy", 3), X[:1])


def broken(folder: Path) -> dict[Path, str]:
    """Files with a fault each, and what the error must say."""
    bad = X.copy()
    bad[2, 1] = np.nan
    np.save(folder / "nan.npy", bad)
    np.savez(folder / "nan.npz", X=bad)
    np.save(folder / "narrow.npy", X[:, :2])
    np.save(folder / "words.npy", np.array([["a", "b", "c"]]))
    np.savez(folder / "other.npz", Y=X)
    np.save(folder / "empty_rows.npy", X[:0])
    (folder / "noise.npy").write_bytes(b"\x93NUMPY nothing")
    (folder / "noise.parquet").write_bytes(b"PAR1 nothing")
    (folder / "empty.parquet").write_bytes(b"")
    (folder / "points.txt").write_text("1,2,3")
    (folder / "nameless.csv").write_text("1,2,3\n4,5,6")
    (folder / "hole.csv").write_text("a,b,c\n4,5,6\n4,,6")
    (folder / "narrow.csv").write_text("a,b\n4,5")
    pq.write_table(pa.table({"p": [1.0], "q": ["a"], "r": [2.0]}), folder / "words.parquet")
    pq.write_table(pa.table({"x": [[1.0, 2.0, 3.0], [1.0]]}), folder / "ragged.parquet")
    return {
        folder / "nan.npy": "nan.npy: row 2, column 1 is nan",
        folder / "nan.npz": "nan.npz: row 2, column 1 is nan",
        folder / "narrow.npy": r"expected rows of 3 numbers, found shape \(4, 2\)",
        folder / "words.npy": "expected numbers, found <U1",
        folder / "other.npz": "expected an array X or features, found Y",
        folder / "empty_rows.npy": "expected rows of 3 numbers",
        folder / "noise.npy": "expected version 1.0 or 2.0 of the npy format",
        folder / "noise.parquet": "not a Parquet file",
        folder / "empty.parquet": "the file is empty",
        folder / "points.txt": "expected .npy, .npz, .csv or .parquet",
        folder / "nameless.csv": "expected a first line of different names, found 1, 2, 3",
        folder / "hole.csv": "row 1, column 1 is nan",
        folder / "narrow.csv": r"expected rows of 3 numbers, found shape \(1, 2\)",
        folder / "words.parquet": "column 'q': expected numbers, found string",
        folder / "ragged.parquet": "column 'x': expected lists of one length",
        folder / "missing.npy": "no such file",
    }


def test_a_broken_file_is_named_with_its_fault(tmp_path: Path) -> None:
    for path, message in broken(tmp_path).items():
        with pytest.raises(FileFormatError, match=message) as caught:
            read_points(path, 3)
        assert path.name in str(caught.value)
