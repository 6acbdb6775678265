"""A Dask cluster does the same parts; workers that are killed cost their part, once more."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flipopt as fo
from flipopt.runs.executors import as_executor, in_turn
from flipopt.runs.work import Work
from tests.flips.test_runs import assert_same, only_chunks, solve

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::Warning")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def slow_squares(items: list[int]) -> list[int]:
    time.sleep(0.1)
    return [item**2 for item in items]


def refusing(items: list[int]) -> list[int]:
    raise fo.InputError(f"items: expected none, found {items}")


def squares(task: Any, total: int = 12) -> Work[list[int]]:
    return Work(task, list, total, 1, 2)


def test_the_table_of_a_cluster_is_that_of_the_plain_call(client: Any, tmp_path: Path) -> None:
    plain = solve(None)
    assert_same(solve(tmp_path, executor=client), plain)
    assert only_chunks(tmp_path)
    assert_same(solve(None, executor=client.scheduler.address), plain)


def test_what_a_task_raises_is_raised(client: Any) -> None:
    with pytest.raises(fo.InputError, match="items: expected none, found"):
        list(in_turn(as_executor(client), squares(refusing)))


def test_a_worker_that_is_killed_twice_costs_its_parts(client: Any) -> None:
    results = in_turn(as_executor(client), squares(slow_squares, 60))
    found = next(results)
    for _ in range(2):
        pids = client.run(os.getpid, on_error="ignore")
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        found += next(results)
    found += [value for part in results for value in part]
    assert found == [item**2 for item in range(60)]


def test_no_scheduler_is_one_line() -> None:
    with pytest.raises(fo.FlipoptError, match="executor: no Dask scheduler answers at tcp://127.0.0.1:9"):
        as_executor("tcp://127.0.0.1:9")
