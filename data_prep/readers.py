"""Readers for the IDX files of MNIST and the binary files of CIFAR-10. Both are untrusted input."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipopt.common.errors import FileFormatError
from flipopt.common.files import require_file

Bytes = NDArray[np.uint8]

IDX_UINT8 = 0x08
IDX_MAX_BYTES = 2**31
CIFAR_RECORD = 1 + 3 * 32 * 32
CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


def read_idx(path: Path) -> Bytes:
    """The uint8 array of an IDX file, gzipped or plain, in the shape that its header gives."""
    content = _read_bytes(path)
    if len(content) < 4:
        raise FileFormatError(f"{path}: {len(content)} bytes is too short for an IDX header")
    zero, kind, dimensions = struct.unpack(">HBB", content[:4])
    if zero != 0 or kind != IDX_UINT8 or not 1 <= dimensions <= 4:
        raise FileFormatError(f"{path}: not an IDX file of unsigned bytes (it starts with {content[:4].hex()})")
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise FileFormatError(f"{path}: the IDX header is cut short")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = int(np.prod(shape, dtype=object))
    if len(content) - header != expected:
        raise FileFormatError(f"{path}: the header says {shape}, {expected} bytes; found {len(content) - header}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _read_bytes(path: Path) -> bytes:
    require_file(path)
    with path.open("rb") as stream:
        zipped = stream.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if zipped else open
    try:
        with opener(path, "rb") as stream:
            content: bytes = stream.read(IDX_MAX_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(f"{path}: damaged gzip file: {error}") from error
    return content


def read_cifar_batch(path: Path) -> tuple[Bytes, Bytes]:
    """Images (n, 32, 32, 3) and labels (n,) of one CIFAR-10 binary file."""
    require_file(path)
    content = np.fromfile(path, dtype=np.uint8)
    if len(content) % CIFAR_RECORD:
        raise FileFormatError(f"{path}: {len(content)} bytes is not a whole number of {CIFAR_RECORD}-byte records")
    records = content.reshape(-1, CIFAR_RECORD)
    labels = records[:, 0]
    if labels.max() >= len(CIFAR_CLASSES):
        raise FileFormatError(f"{path}: expected labels 0 to 9, found {labels.max()}")
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels.copy()
