"""Files from strangers, of a limited size: npy arrays and npz archives."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, FlipoptError
from flipopt.common.limits import LimitError, limits, require_within
from flipopt.common.quoting import brief, listed, plain, quoted
from flipopt.common.writing import atomic_path

KINDS = "biufcSU"
"""Kinds of numpy arrays that are read: numbers and text, no objects, records or dates."""
END_OF_ZIP, LONGEST_COMMENT = 22, 2**16
CHUNK = 2**20
LAST_CHARACTER = 0x10FFFF


def write_npz(path: str | Path, arrays: Mapping[str, Array]) -> None:
    """Write ``arrays`` to a compressed npz, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_npz(path: str | Path, required: tuple[str, ...] = (), finite: bool = True) -> dict[str, Array]:
    """The arrays of an npz from anyone: no pickles, no zip bombs, every numeric value finite (if so asked)."""
    path = Path(path)
    require_file(path)
    with reading(path, "a readable npz file"), path.open("rb") as file:
        _require_small_directory(file, path)
        with zipfile.ZipFile(file) as archive:
            members = _members(archive, path)
            arrays = {
                name: _read_member(archive, member, f"{path}: {quoted(name)}") for name, member in members.items()
            }
    missing = [name for name in required if name not in arrays]
    if missing:
        raise FileFormatError(f"{path}: lacks {', '.join(missing)}; it holds {listed(arrays) or 'nothing'}")
    for name, array in arrays.items():
        if finite and array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise FileFormatError(f"{path}: {plain(name)} holds NaN or infinity")
    return arrays


def read_npy(path: Path) -> Array:
    """The array of an npy file from anyone."""
    size = require_file(path)
    with reading(path, "a readable npy file"), path.open("rb") as file:
        return _read_array(file, size, str(path))


def require_file(path: Path, largest: int | None = None) -> int:
    """The size of ``path`` in bytes; raise unless it is a plain file that is neither empty nor larger than allowed."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        known = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise FileFormatError(f"{path}: {'no such file' if known else brief(error)}") from error
    if not stat.S_ISREG(found.st_mode):  # a pipe would wait for ever, a device may never end
        raise FileFormatError(f"{path}: not a file")
    if found.st_size == 0:
        raise FileFormatError(f"{path}: the file is empty")
    require_within(found.st_size, largest or limits().size, f"{path}: bytes in the file")
    return found.st_size


def require_neighbour(path: Path) -> int:
    """The same of a file that another one names or implies; it may not be a link, which may lead out of the folder."""
    if os.path.islink(path):  # which, unlike Path.is_symlink, takes any name
        raise FileFormatError(f"{path}: a link, which is not followed")
    return require_file(path)


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Whatever a parser that is not ours raises on a damaged file, as a FileFormatError; around such calls alone."""
    try:
        yield
    except FlipoptError:
        raise
    except MemoryError as error:
        raise LimitError(f"{path}: takes more memory than there is") from error
    except Exception as error:  # zlib.error, struct.error, RecursionError, tokenize errors: parsers promise nothing
        raise FileFormatError(f"{path}: not {kind}: {brief(error)}") from error


def _require_small_directory(file: IO[bytes], path: Path) -> None:
    """Raise if a zip's list of members is long: zipfile would make an object of each before anything can be asked."""
    file.seek(0, os.SEEK_END)
    file.seek(-min(file.tell(), 20 + END_OF_ZIP + LONGEST_COMMENT), os.SEEK_END)
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < END_OF_ZIP:
        raise FileFormatError(f"{path}: not a readable npz file: it has no end of a zip archive")
    if tail[max(0, at - 20) : at].startswith(b"PK\6\7"):
        raise FileFormatError(f"{path}: expected an archive below 4 GiB, found the directory of a larger one")
    (length,) = struct.unpack("<I", tail[at + 12 : at + 16])
    require_within(length, limits().directory, f"{path}: bytes of its directory")
    file.seek(0)


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The arrays' members by name. They are never written anywhere, so that a name like ../x is only a name."""
    members = archive.infolist()
    require_within(sum(member.file_size for member in members), limits().size, f"{path}: bytes that it unpacks to")
    found: dict[str, zipfile.ZipInfo] = {}
    for member in (member for member in members if member.filename.endswith(".npy")):
        name = member.filename.removesuffix(".npy")
        if name in found:
            raise FileFormatError(f"{path}: expected one array {quoted(name)}, found two")
        found[name] = member
    return found


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> Array:
    with archive.open(member) as stream:
        return _read_array(stream, member.file_size, where)


def _read_array(stream: IO[bytes], size: int, where: str) -> Array:
    """One array out of ``size`` bytes. Its header is read first, so that it cannot claim more than there is."""
    version = npy_format.read_magic(stream)
    headers: Any = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
    if version not in headers:
        raise FileFormatError(f"{where}: expected version 1.0 or 2.0 of the npy format, found {version}")
    shape, fortran, dtype = headers[version](stream)
    if dtype.hasobject:
        raise FileFormatError(f"{where} holds Python objects (a pickle), which are not read")
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise FileFormatError(f"{where}: expected numbers or text, found {quoted(dtype)}")
    count = int(np.prod(shape, dtype=object))
    if any(side < 0 for side in shape) or count * dtype.itemsize > size:
        raise FileFormatError(f"{where} claims shape {quoted(shape)} but is only {size} bytes")
    require_within(count * max(8, dtype.itemsize), limits().size, f"{where}: bytes of its numbers")
    array = _filled(stream, count, dtype, f"{where} claims shape {quoted(shape)}")
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _filled(stream: IO[bytes], count: int, dtype: np.dtype[Any], where: str) -> Array:
    """``count`` values, which must be all that the stream still holds."""
    array = np.empty(count, dtype)
    raw = array.view(np.uint8)
    for start in range(0, len(raw), CHUNK):
        piece = raw[start : start + CHUNK]
        if stream.readinto(piece.data) != len(piece):  # type: ignore[attr-defined]
            raise FileFormatError(f"{where} but ends before that")
    if stream.read(1):
        raise FileFormatError(f"{where} but goes on after that")
    if (
        dtype.kind == "U"
        and count
        and raw.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder)).max() > LAST_CHARACTER
    ):
        raise FileFormatError(f"{where} but is not text")
    return array
