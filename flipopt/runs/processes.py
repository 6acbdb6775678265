"""Other processes on this machine: no lock of an interpreter between them, and one that dies costs only its part."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from flipopt.common.errors import FlipoptError, InputError
from flipopt.runs.schedule import Schedule
from flipopt.runs.stopping import postponed
from flipopt.runs.threads import cores, single_threaded
from flipopt.runs.work import Work, timed

T = TypeVar("T")

DEATHS = 3
"""Workers that may die of one part before it is given up."""


class Processes:
    """``count`` processes, by default one for each core."""

    def __init__(self, count: int | None = None) -> None:
        if count is not None and not (isinstance(count, int) and count >= 1):
            raise InputError(f"count: expected a number of processes >= 1, found {count!r}")
        self.count = count or cores()

    def each(self, work: Work[T], schedule: Schedule) -> Iterator[tuple[range, T, float]]:
        count = max(1, min(self.count, -(-schedule.left // work.step)))
        task, deaths = pickled(work.task), Counter[int]()
        workers: list[_Worker] = []
        try:
            while len(workers) < count:
                workers.append(_Worker(task))
            while True:
                for worker in workers:
                    if worker.part is None and (part := schedule.take(count)) is not None:
                        worker.ask(part, pickled(work.load(part)))
                busy = {worker.pipe: worker for worker in workers if worker.part is not None}
                if not busy:
                    return
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    part = worker.part
                    assert part is not None
                    answer = worker.answer()
                    if answer is None:
                        deaths[part.start] += 1
                        _require_another(worker, part, deaths[part.start])
                        schedule.give_back(part)
                        workers[workers.index(worker)] = _Worker(task)
                        continue
                    result, seconds = answer
                    schedule.finished(part, seconds)
                    if (following := schedule.take(count)) is not None:
                        worker.ask(following, pickled(work.load(following)))
                    yield part, result, seconds
        finally:
            for worker in workers:
                worker.kill()


class _Worker:
    """A process that has a task, and the part that it is busy with."""

    def __init__(self, task: bytes) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, task), daemon=True)
        self.part: range | None = None
        try:
            with postponed(), _deaf_to_ctrl_c():
                self.process.start()
        except BaseException:  # Ctrl-C that had to wait
            if self.process.pid is not None:
                self.process.kill()
            raise
        theirs.close()

    def ask(self, part: range, load: bytes) -> None:
        self.part = part
        with suppress(OSError):  # a process that is dead is found by the next look at its pipe
            self.pipe.send_bytes(load)

    def answer(self) -> tuple[Any, float] | None:
        """The result and its seconds; None if the process has died. What the task raised is raised here."""
        try:
            content = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.kill()
            return None
        self.part = None
        good, answer = pickle.loads(content)
        if not good:
            raise answer
        return answer  # type: ignore[no-any-return]

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _require_another(worker: _Worker, part: range, deaths: int) -> None:
    if deaths < DEATHS:
        return
    code = worker.process.exitcode
    raise FlipoptError(
        f"executor: {deaths} processes have died (exit code {code}) of items {part.start} to {part.stop - 1}. A script "
        "that starts processes needs `if __name__ == '__main__':` around what it does"
    )


def pickled(thing: Any) -> bytes:
    """For another process: by pickle, or by cloudpickle where that is not enough and it is installed."""
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        try:
            import cloudpickle

            return bytes(cloudpickle.dumps(thing))
        except Exception:
            raise InputError(
                f"executor: expected a network and constraints that can be sent to another process, found {error}"
            ) from error


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started in the block never hear of Ctrl-C: it is for their owner, a moment later."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which the first process needs, and which lets the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, task: bytes) -> None:
    """What a process does; it does not outlive its owner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a library may have let it through again
    threading.Thread(target=_end_with_owner, daemon=True).start()
    single_threaded()
    work = None
    while True:
        try:
            load = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            if work is None:
                work = pickle.loads(task)
                single_threaded()  # what the task has imported
            answer = pickled((True, timed(work, pickle.loads(load))))
        except Exception as error:
            answer = _told(error)
        with suppress(OSError):  # the owner is gone
            pipe.send_bytes(answer)


def _told(error: Exception) -> bytes:
    """An exception for the owner; one that cannot be sent as its words."""
    try:
        content = pickled((False, error))
        pickle.loads(content)
    except Exception:
        return pickled((False, FlipoptError(f"{type(error).__name__}: {error}")))
    return content


def _end_with_owner() -> None:
    owner = multiprocessing.parent_process()
    if owner is not None:
        wait([owner.sentinel])
        os._exit(1)
