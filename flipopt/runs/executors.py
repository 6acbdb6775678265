"""Who does the work: threads of this process, other processes, or a Dask cluster; the same call for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from typing import Any, TypeVar

from flipopt.common.errors import InputError
from flipopt.runs.schedule import SHOWN, Schedule
from flipopt.runs.threads import abandon, cores, in_task, one_blas_thread, submit
from flipopt.runs.work import Executor, Work, timed

T = TypeVar("T")


class Threads:
    """Threads of this process, one for each core."""

    def each(self, work: Work[T], schedule: Schedule) -> Iterator[tuple[range, T, float]]:
        workers = cores() if work.threads and not in_task() else 1
        with one_blas_thread():
            if workers == 1:
                yield from self._alone(work, schedule)
            else:
                yield from self._together(work, schedule, workers)

    def _alone(self, work: Work[T], schedule: Schedule) -> Iterator[tuple[range, T, float]]:
        while (part := schedule.take(1)) is not None:
            result, seconds = timed(work.task, work.load(part))
            schedule.finished(part, seconds)
            yield part, result, seconds

    def _together(self, work: Work[T], schedule: Schedule, workers: int) -> Iterator[tuple[range, T, float]]:
        parts: dict[Future[tuple[T, float]], range] = {}

        def fill() -> None:
            while len(parts) < workers and (part := schedule.take(workers)) is not None:
                load = work.load(part)
                parts[submit(lambda load=load: timed(work.task, load))] = part  # type: ignore[misc]

        try:
            fill()
            while parts:
                for future in wait(parts, return_when=FIRST_COMPLETED).done:
                    result, seconds = future.result()
                    part = parts.pop(future)
                    schedule.finished(part, seconds)
                    fill()
                    yield part, result, seconds
        finally:
            abandon(parts)


def as_executor(executor: Any) -> Executor:
    """From None (threads), "processes", a Dask client or its address, or something that is one."""
    if executor is None or executor == "threads":
        return Threads()
    if isinstance(executor, str) and executor == "processes":
        from flipopt.runs.processes import Processes

        return Processes()
    if hasattr(executor, "each"):
        return executor  # type: ignore[no-any-return]
    if (isinstance(executor, str) and "://" in executor) or hasattr(executor, "scatter"):
        from flipopt.runs.cluster import Cluster

        return Cluster(executor)
    expected = "None, 'processes', a dask.distributed Client or its address such as tcp://host:8786"
    raise InputError(f"executor: expected {expected}, found {executor!r}")


def in_turn(executor: Executor, work: Work[T]) -> Iterator[T]:
    """The results of all parts in the order of the items, without a store."""
    early: dict[int, tuple[range, T]] = {}
    first = 0
    schedule = Schedule([range(work.total)], work.step, work.most, SHOWN)
    with closing(executor.each(work, schedule)) as results:  # type: ignore[type-var]
        for part, result, _ in results:
            early[part.start] = part, result
            while first in early:
                part, result = early.pop(first)
                first = part.stop
                yield result
