from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from data_prep.readers import read_cifar_batch, read_idx
from flipopt.common.errors import FileFormatError


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape) + array.tobytes()


IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize("zipped", [True, False])
def test_idx_plain_and_zipped(zipped: bool, tmp_path: Path) -> None:
    content = idx(IMAGES)
    (tmp_path / "f").write_bytes(gzip.compress(content) if zipped else content)
    np.testing.assert_array_equal(read_idx(tmp_path / "f"), IMAGES)


def test_cifar_planes_become_channels(tmp_path: Path) -> None:
    planes = np.random.default_rng(0).integers(0, 256, size=(5, 3, 32, 32), dtype=np.uint8)
    labels = np.array([0, 9, 3, 8, 1], dtype=np.uint8)
    (tmp_path / "f").write_bytes(np.column_stack([labels, planes.reshape(5, -1)]).tobytes())
    images, read = read_cifar_batch(tmp_path / "f")
    np.testing.assert_array_equal(read, labels)
    np.testing.assert_array_equal(images[4, 10, 20], planes[4, :, 10, 20])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\0\0", "too short for an IDX header"),
        (idx(IMAGES, kind=13), "not an IDX file of unsigned bytes"),
        (b"PNG!" * 9, "not an IDX file"),
        (struct.pack(">HBBI", 0, 8, 3, 2), "header is cut short"),
        (idx(IMAGES)[:-1], r"the header says \(2, 3, 4\), 24 bytes; found 23"),
        (idx(IMAGES) + b"x", "found 25"),
        (struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "the header says"),
        (gzip.compress(idx(IMAGES), mtime=0)[:-9], "damaged gzip"),
        (b"\x1f\x8b" + b"\0" * 20, "damaged gzip"),
    ],
)
def test_broken_idx_files_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "digits").write_bytes(content)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_idx(tmp_path / "digits")
    assert "digits" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\0" * 3074, "not a whole number"),
        (b"\x0a" + b"\0" * 3072, "expected labels 0 to 9, found 10"),
    ],
)
def test_broken_cifar_files_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        read_cifar_batch(tmp_path / "batch")
