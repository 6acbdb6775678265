"""A Dask cluster, on this machine or many: ``dask.distributed`` has the parts done, wherever its workers are."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from flipopt.common.checks import optional_package
from flipopt.common.errors import FlipoptError, StorageError
from flipopt.runs.schedule import Schedule
from flipopt.runs.threads import as_task, one_blas_thread
from flipopt.runs.work import Work, timed

T = TypeVar("T")

LOSSES = 5
"""Times that a part may be lost with its worker before it is given up."""
AHEAD = 2
"""Parts for every thread of the workers: one to do, and one that is there already when it is done."""


class Cluster:
    """The workers of a ``dask.distributed`` client, or of the scheduler at an address."""

    def __init__(self, client: Any) -> None:
        distributed = optional_package("distributed", "dask", "executor")
        self.own = isinstance(client, str)
        if self.own:
            try:
                client = distributed.Client(client, timeout=10)
            except (OSError, TimeoutError, ValueError) as error:
                raise StorageError(f"executor: no Dask scheduler answers at {client}: {error}") from error
        self.client, self.distributed = client, distributed

    def each(self, work: Work[T], schedule: Schedule) -> Iterator[tuple[range, T, float]]:
        parts: dict[Any, range] = {}
        losses: Counter[int] = Counter()
        task = self._sent(work.task)
        try:
            while True:
                self._fill(parts, work, schedule, task)
                if not parts:
                    return
                for future in self._ended(list(parts)):
                    part = parts.pop(future)
                    answer = self._answer(future)
                    if answer is None:
                        _require_another(part, losses)
                        schedule.give_back(part)
                        task = self._sent(work.task)
                        continue
                    result, seconds = answer
                    schedule.finished(part, seconds)
                    self._fill(parts, work, schedule, task)
                    yield part, result, seconds
        finally:
            self.client.cancel(list(parts))
            if self.own:
                self.client.close()

    def _sent(self, task: Callable[[Any], Any]) -> Any:
        """The task, on every worker."""
        return self.client.scatter([task], broadcast=True, hash=False)[0]

    def _fill(self, parts: dict[Any, range], work: Work[T], schedule: Schedule, task: Any) -> None:
        """As many parts as the workers that are there now can do."""
        slots = max(1, sum(self.client.nthreads().values()))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            while len(parts) < AHEAD * slots and (part := schedule.take(slots)) is not None:
                parts[self.client.submit(_done, task, work.load(part), pure=False)] = part

    def _ended(self, futures: list[Any]) -> list[Any]:
        """Those that are done or lost, at least one."""
        try:
            return list(self.distributed.wait(futures, return_when="FIRST_COMPLETED").done)
        except CancelledError:
            return [future for future in futures if future.status not in ("pending", "processing")]

    def _answer(self, future: Any) -> tuple[Any, float] | None:
        """The result and its seconds; None if it has gone with its worker. What the task itself raised is raised."""
        try:
            return future.result()  # type: ignore[no-any-return]
        except (self.distributed.KilledWorker, CancelledError):
            return None


def _require_another(part: range, losses: Counter[int]) -> None:
    losses[part.start] += 1
    if losses[part.start] >= LOSSES:
        raise FlipoptError(f"executor: {LOSSES} workers were lost with items {part.start} to {part.stop - 1}")


def _done(task: Callable[[Any], T], load: Any) -> tuple[T, float]:
    """What a worker does; it may be a thread of a process that has others."""
    with one_blas_thread():
        return timed(as_task(task), load)
