"""Ending in two seconds: Ctrl-C, SIGTERM and SIGHUP for a program that has the process to itself.

A signal raises :class:`Stopped` in the main thread, which ends what is under way and keeps what is finished. Where that
thread is in a library that does not look up, a second thread, which the system wakes whatever the first one does, ends
the process: files are written whole or not at all, so nothing is lost by it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flipopt.common.writing import remove_unfinished

GRACE = 1.2
"""Seconds that the main thread has to end by itself."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """The program was told to end, by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


_words = {"advice": "", "said": ""}


def advise(words: str) -> None:
    """What to tell whoever stops the program: how to go on."""
    _words["advice"] = words


def farewell(number: int) -> str:
    """The line at the end of a program that was stopped, for who is going to say it."""
    parts = (f"stopped by {signal.Signals(number).name}", _words["advice"])
    _words["said"] = "; ".join(part for part in parts if part)
    return _words["said"]


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals end the block as the module says. In the main thread only; elsewhere, and inside another one, nothing."""
    if threading.current_thread() is not threading.main_thread() or _is_ours(signal.getsignal(signal.SIGINT)):
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    over = threading.Event()
    threading.Thread(target=_watch, args=(ours, over), daemon=True).start()
    wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _raise) for number in SIGNALS}
    try:
        yield
        over.set()
    except BaseException as error:
        if not isinstance(error, Stopped):  # else threads that do not end would keep the process
            over.set()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        theirs.close()  # which ends the watcher


@contextmanager
def postponed() -> Iterator[None]:
    """Signals that come during the block have their effect after it; in the main thread only, as others have none.

    For what must not be left half done, such as starting a process: a mask of signals holds back only one thread's, and
    Python's handlers run in the main thread whichever was told.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _is_ours(handler: Any) -> bool:
    return handler is _raise


def _raise(number: int, _frame: Any) -> None:
    raise Stopped(number)


def _watch(wake: socket.socket, over: threading.Event) -> None:
    with wake:
        while received := wake.recv(1):
            if received[0] in SIGNALS and not over.wait(GRACE):
                _end(received[0])


def _end(number: int) -> None:
    """End the process as it is."""
    remove_unfinished()
    if not _words["said"]:
        show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
        os.write(2, f"{show_cursor}\n{farewell(number)}\n".encode())
    os._exit(128 + number)
