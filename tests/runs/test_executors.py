"""Threads and processes do the same parts; workers that die or raise cost what they must and no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.runs.executors import Threads, as_executor, in_turn
from flipopt.runs.processes import Processes
from flipopt.runs.schedule import Schedule
from flipopt.runs.work import Work

EXECUTORS = {"threads": Threads(), "processes": Processes(2)}


@dataclass(frozen=True)
class Squares:
    """Squares of items; at item ``bad`` it raises, or ends its process until the file ``marks`` has two lines."""

    bad: int = -1
    marks: Path | None = None

    def __call__(self, items: list[int]) -> list[int]:
        if self.bad in items:
            if self.marks is None:
                raise fo.InputError(f"item: expected a good one, found {self.bad}")
            with self.marks.open("a") as file:
                file.write("x\n")
            if len(self.marks.read_text()) <= 4:
                os._exit(7)
        return [item**2 for item in items]


def work(task: Squares, total: int = 20, step: int = 3) -> Work[list[int]]:
    return Work(task, list, total, step, most=total)


def squares(executor: Threads | Processes, task: Squares) -> list[int]:
    return [value for part in in_turn(executor, work(task)) for value in part]


@pytest.mark.parametrize("name", EXECUTORS)
def test_results_come_in_the_order_of_the_items(name: str) -> None:
    assert squares(EXECUTORS[name], Squares()) == [item**2 for item in range(20)]


@pytest.mark.parametrize("name", EXECUTORS)
def test_what_a_task_raises_is_raised(name: str) -> None:
    with pytest.raises(fo.InputError, match="item: expected a good one, found 7"):
        squares(EXECUTORS[name], Squares(bad=7))


def test_a_process_that_dies_costs_its_part_once_more(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    assert squares(Processes(2), Squares(7, marks)) == [item**2 for item in range(20)]
    assert len(marks.read_text().splitlines()) == 3


def test_a_part_that_ends_every_process_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(fo.FlipoptError, match=r"3 processes have died \(exit code 7\) of items \d+ to \d+"):
        squares(Processes(1), Squares(7, Path("/dev/null")))


@pytest.mark.parametrize("name", EXECUTORS)
def test_closing_leaves_nothing_at_work(name: str) -> None:
    before = threading.active_count()
    with closing(EXECUTORS[name].each(work(Squares()), Schedule([range(20)], 3, 20))) as results:
        next(results)
    assert threading.active_count() <= before + 2  # the pool's own


def test_what_cannot_be_sent_is_said() -> None:
    lock = threading.Lock()
    with pytest.raises(fo.InputError, match="executor: expected a network and constraints that can be sent"):
        list(in_turn(Processes(1), Work(lambda items: lock, list, 4, 1, 4)))


@pytest.mark.parametrize("executor", ["thread", 3, "localhost:8786"])
def test_an_unknown_executor_is_refused(executor: object) -> None:
    with pytest.raises(fo.InputError, match="executor: expected None, 'processes', a dask"):
        as_executor(executor)


def parts(schedule: Schedule, seconds: float) -> Iterator[range]:
    while (part := schedule.take(2)) is not None:
        yield part
        schedule.finished(part, seconds * len(part))


@given(st.integers(1, 500), st.integers(1, 20), st.integers(1, 200), st.floats(1e-3, 100.0))
def test_parts_are_whole_steps_and_cover_every_item_once(total: int, step: int, most: int, seconds: float) -> None:
    found = list(parts(Schedule([range(total)], step, most), seconds))
    assert [item for part in found for item in part] == list(range(total))
    assert all(part.start % step == 0 for part in found)
    assert all(len(part) <= max(step, most) for part in found)


def test_parts_take_about_as_long_as_they_should() -> None:
    found = list(parts(Schedule([range(100_000)], 10, 10_000, seconds=10.0), 0.01))
    assert len(found[0]) == 10
    assert 980 <= len(found[5]) <= 1000
    assert len(found[-1]) <= 20  # so that all workers end together


def test_a_part_that_was_given_back_comes_again() -> None:
    schedule = Schedule([range(4), range(8, 12)], 4, 4)
    part = schedule.take(1)
    assert part == range(4)
    schedule.give_back(part)
    assert (schedule.left, schedule.take(1), schedule.take(1), schedule.take(1)) == (8, range(4), range(8, 12), None)
