"""One process at a time: a lock on an open file, which the system lets go when its process ends, however it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from flipopt.common.writing import storing

PAUSE = 0.2
"""Seconds between two looks at a lock that another process holds."""


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Alone with the file ``path`` while the block runs; ``waiting`` is called once if another process is there."""
    with storing(path):
        file = path.open("r+b")
    with file:
        told = False
        while not locked(file):
            if not told:
                waiting()
                told = True
            time.sleep(PAUSE)
        yield


def taken(path: Path) -> bool:
    """Whether a process holds the lock of ``path``."""
    with storing(path), path.open("rb") as file:
        return not locked(file, shared=True)


def locked(file: IO[Any], shared: bool = False) -> bool:
    """Try once; the lock ends when the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return _locked_by_windows(file)
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked_by_windows(file: IO[Any]) -> bool:
    import msvcrt

    far: Any = msvcrt
    try:
        file.seek(2**30)  # beyond what anybody reads
        far.locking(file.fileno(), far.LK_NBLCK, 1)
    except OSError:
        return False
    return True
