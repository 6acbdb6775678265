"""npz archives: read as untrusted input, written whole or not at all."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.writing import atomic_path

MAX_ARCHIVE_BYTES = 2**32
"""An npz that claims to unpack to more than this (4 GiB) is refused before anything is unpacked."""


def write_npz(path: str | Path, arrays: Mapping[str, Array]) -> None:
    """Write ``arrays`` to a compressed npz, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_npz(path: str | Path, required: tuple[str, ...] = (), finite: bool = True) -> dict[str, Array]:
    """The arrays of an npz from anyone: no pickles, no zip bombs, every numeric value finite (if so asked)."""
    path = Path(path)
    require_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name.removesuffix(".npy"): _read_npy(archive, name) for name in _members(archive, path)}
    except FileFormatError:
        raise
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise FileFormatError(f"{path}: not a readable npz file: {error}") from error
    except Exception as error:  # zlib.error, struct.error and whatever a hostile header provokes
        raise FileFormatError(f"{path}: damaged npz file: {type(error).__name__}: {error}") from error
    missing = [name for name in required if name not in arrays]
    if missing:
        raise FileFormatError(f"{path}: lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'nothing'}")
    for name, array in arrays.items():
        if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise FileFormatError(f"{path}: {name} holds NaN or infinity")
    return arrays


def require_file(path: Path) -> None:
    """Raise unless ``path`` is a non-empty file."""
    if not path.exists():
        raise FileFormatError(f"{path}: no such file")
    if not path.is_file():
        raise FileFormatError(f"{path}: not a file")
    if path.stat().st_size == 0:
        raise FileFormatError(f"{path}: the file is empty")


def _members(archive: zipfile.ZipFile, path: Path) -> list[str]:
    size = sum(member.file_size for member in archive.infolist())
    if size > MAX_ARCHIVE_BYTES:
        raise FileFormatError(f"{path}: unpacks to {size} bytes, more than {MAX_ARCHIVE_BYTES}")
    return [member.filename for member in archive.infolist() if member.filename.endswith(".npy")]


def _read_npy(archive: zipfile.ZipFile, name: str) -> Array:
    """One array. Its header is read first, so that it cannot claim more data than the archive holds."""
    claimed = archive.getinfo(name).file_size
    with archive.open(name) as stream:
        version = npy_format.read_magic(stream)
        read_header: Any = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
        shape, _, dtype = read_header[version](stream)
        if dtype.hasobject:
            raise FileFormatError(f"{archive.filename}: {name} holds Python objects (a pickle), which are not read")
        if int(np.prod(shape, dtype=object)) * dtype.itemsize > claimed:
            raise FileFormatError(f"{archive.filename}: {name} claims shape {shape} but is only {claimed} bytes")
    with archive.open(name) as stream:
        return np.asarray(npy_format.read_array(stream, allow_pickle=False))
