"""Writing files whole or not at all, and leaving nothing behind."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flipopt.common.errors import StorageError

PREFIX = ".flipopt-"
"""Of temporary files: short, so that it fits wherever the name that it stands for does."""

_unfinished: set[Path] = set()


@contextmanager
def atomic_path(path: str | Path, replace: bool = True) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends well, and vanishes when it does not.

    Not to ``replace`` what is there leaves it: of several processes that make a file at once, the first has made it.

    What the file system refuses, a full disk or a name that is too long, is a :class:`StorageError`, at once where it
    can be known before.
    """
    path = Path(path)
    with storing(path):
        require_writable_name(path)
        remove_abandoned(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=PREFIX, suffix=path.suffix)
        _claim(handle)
    temporary = Path(name)
    _unfinished.add(temporary)
    try:
        with storing(path):
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            if replace:
                temporary.replace(path)
            else:
                with suppress(FileExistsError):
                    os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)
        os.close(handle)


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Errors of the file system while the block runs are one line that names ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, InterruptedError | ConnectionError):
            raise
        raise StorageError(f"{path}: {os.strerror(error.errno)}") from error


def require_writable_name(path: Path) -> None:
    """Raise if no file of this name can be made: it is too long, or that of a folder."""
    with suppress(FileNotFoundError):
        path.lstat()
    if path.is_dir():
        raise StorageError(f"{path}: expected a name for a file, found a folder")


def require_place(path: Path) -> None:
    """Raise if a file cannot be made at ``path``, before the work is done whose result it is to hold."""
    if not path.parent.is_dir():
        raise StorageError(f"{path}: expected a folder that exists, found none")
    with storing(path):
        require_writable_name(path)


def write_synced(path: Path, content: bytes, replace: bool = True) -> None:
    """Write a file whole or not at all, and have it on the disk before this returns; see :func:`atomic_path`."""
    with atomic_path(path, replace) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def remove_abandoned(folder: Path, age: float = 10.0) -> None:
    """Delete temporary files whose process is gone: it held a lock on them that ends with it.

    Those younger than ``age`` seconds may belong to a process that is about to take its lock.
    """
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR)
            try:
                if time.time() - path.stat().st_mtime >= age and _claim(handle):
                    path.unlink(missing_ok=True)
            finally:
                os.close(handle)


def remove_unfinished() -> None:
    """Delete what this process is writing, because it is about to end."""
    for path in list(_unfinished):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _claim(handle: int) -> bool:
    """Whether nobody else holds an open file; it is held until it is closed. Where there are no such locks, False."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
