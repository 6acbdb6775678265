"""Programs end in two seconds when they are told to, whatever their main thread does, and leave nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flipopt.runs.stopping import GRACE, SIGNALS, postponed

BUSY = {
    "python": "while True: pass",
    "in a library": "ctypes.CDLL(None).usleep(60_000_000)",  # which does not come back to the interpreter
    "asleep": "time.sleep(60)",
    "waiting for a thread": "threading.Thread(target=time.sleep, args=(60,)).start(); time.sleep(60)",
}
PROGRAM = """
import ctypes, threading, time
from pathlib import Path
from flipopt.common.writing import atomic_path
from flipopt.runs.stopping import Stopped, advise, farewell, stoppable

advise("the same command goes on")
try:
    with stoppable(), atomic_path(Path(FOLDER) / "out.txt") as temporary:
        temporary.write_text("half")
        print("ready", flush=True)
        WORK
except Stopped as stopped:
    raise SystemExit(farewell(stopped.number))
"""


def started(folder: Path, work: str) -> subprocess.Popen[str]:
    words = PROGRAM.replace("FOLDER", repr(str(folder))).replace("WORK", work)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = subprocess.Popen([sys.executable, "-c", words], text=True, **pipes)  # type: ignore[call-overload]
    assert program.stdout.readline() == "ready\n"
    return program  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("work", "number"), [*((work, signal.SIGINT) for work in BUSY), *(("asleep", number) for number in SIGNALS[1:])]
)
def test_a_signal_ends_a_program_with_a_line_and_no_file(tmp_path: Path, work: str, number: int) -> None:
    program = started(tmp_path, BUSY[work])
    program.send_signal(number)
    _, words = program.communicate(timeout=GRACE + 10)
    assert words.strip() == f"stopped by {signal.Signals(number).name}; the same command goes on"
    assert program.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_is_postponed_comes_after_the_block() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores SIGINT
    done = []

    def work() -> None:
        with postponed():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("after")

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert done == ["inside"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_is_raised_where_nothing_came() -> None:
    handlers = [signal.getsignal(number) for number in SIGNALS]
    with postponed():
        pass
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
