"""Work that can be done in parts, and what does it.

An executor takes parts from a schedule, has a task done for each, and hands the results out as they come. The task is
sent to a worker once; what belongs to a part travels with it, so that no worker holds all the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from flipopt.runs.schedule import Schedule

T = TypeVar("T")


@dataclass(frozen=True)
class Work(Generic[T]):
    """Something to be done for items 0, ..., total - 1.

    Attributes
    ----------
    task
        Makes the result of a part from its load; for other processes it must be possible to pickle both.
    load
        What the task needs for a part.
    total, step
        Number of items, and what limits of parts are multiples of.
    most
        Items of a part, at most.
    threads
        Whether several threads may work at once.
    """

    task: Callable[[Any], T]
    load: Callable[[range], Any]
    total: int
    step: int
    most: int
    threads: bool = True


class Executor(Protocol):
    """Has the parts of a schedule done."""

    def each(self, work: Work[T], schedule: Schedule) -> Iterator[tuple[range, T, float]]:
        """Parts, their results and the seconds that they took, as they come. To be closed, which ends all workers."""


def timed(task: Callable[[Any], T], load: Any) -> tuple[T, float]:
    """The result, and the seconds that it took."""
    started = time.perf_counter()
    return task(load), time.perf_counter() - started
