from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from flipopt.runs import threads as parallel


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@given(st.integers(0, 5000), st.integers(1, 8))
def test_blocks_cover_every_row_once_and_are_small(rows: int, threads: int) -> None:
    blocks = parallel.blocks(rows, threads)
    assert [row for block in blocks for row in range(rows)[block]] == list(range(rows))
    assert all(block.stop - block.start <= parallel.BLOCK_ROWS for block in blocks)
    assert all(block.start % parallel.EVEN == 0 for block in blocks)
    assert all(block.stop - block.start <= rows / threads + parallel.EVEN for block in blocks)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_order_and_tasks_may_nest(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: threads)

    def outer(rows: slice) -> list[int]:
        return [block.start for block in parallel.over_rows(lambda inner: inner, rows.stop - rows.start, 1e9)]

    starts = parallel.over_rows(lambda rows: rows.start, 1000, 1e9)
    assert starts == sorted(starts)
    assert all(inner[0] == 0 for inner in parallel.over_rows(outer, 1000, 1e9))


def test_blas_threads_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 2)

    before = blas_threads()
    during = parallel.over_rows(lambda rows: blas_threads(), 600, 1e9)
    assert all(count == 1 for counts in during for count in counts)
    assert blas_threads() == before


def test_an_error_in_a_task_is_raised_and_blas_threads_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 2)

    def fail(rows: slice) -> None:
        raise ValueError(f"row {rows.start}")

    with pytest.raises(ValueError, match="row 0"):
        parallel.over_rows(fail, 600, 1e9)
    assert parallel.over_rows(lambda rows: rows.start, 10, 1.0) == [0]


def test_the_environment_limits_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    parallel.cores.cache_clear()
    monkeypatch.setenv("FLIPOPT_THREADS", "1")
    assert parallel.cores() == 1
    parallel.cores.cache_clear()
    monkeypatch.setenv("FLIPOPT_THREADS", "many")
    assert parallel.cores() >= 1
    parallel.cores.cache_clear()


@pytest.mark.parametrize("known", [("process_cpu_count", 3), ("cpu_count", 5), ("cpu_count", None)])
def test_systems_without_affinity_count_their_processors(
    known: tuple[str, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLIPOPT_THREADS", raising=False)
    for name in ("sched_getaffinity", "process_cpu_count"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, known[0], lambda: known[1], raising=False)
    parallel.cores.cache_clear()
    assert parallel.cores() == (known[1] or 1)
    parallel.cores.cache_clear()


# Items in order


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_items_come_in_order_and_few_are_taken_ahead(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: threads)
    taken: list[int] = []

    def items() -> Iterator[int]:
        for k in range(30):
            taken.append(k)
            yield k

    def late_if_even(k: int) -> int:
        time.sleep(0.002 * (k % 2 == 0))
        return k * k

    found = []
    for result in parallel.in_order(late_if_even, items()):
        found.append(result)
        assert len(taken) <= len(found) + parallel.ROUND * threads
    assert found == [k * k for k in range(30)]
    assert list(parallel.in_order(late_if_even, [])) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_items_may_nest_with_one_blas_thread_each(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: threads)

    def nested(k: int) -> tuple[list[int], list[int]]:
        inner = list(parallel.in_order(lambda j: 10 * k + j, range(5)))
        assert parallel.over_rows(lambda rows: rows.start, 600, 1e9)[0] == 0
        return inner, blas_threads()

    before = blas_threads()
    found = list(parallel.in_order(nested, range(6)))
    assert [inner for inner, _ in found] == [[10 * k + j for j in range(5)] for k in range(6)]
    assert all(set(counts) == {1} for _, counts in found)
    assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_between_two_results_blas_is_the_caller_s(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: threads)
    with threadpool_limits(3, user_api="blas"):
        mine = blas_threads()
        assert max(mine) > 1
        for during in parallel.in_order(lambda k: blas_threads() if k == 0 else None, range(8)):
            assert during is None or set(during) == {1}
            assert blas_threads() == mine
        assert blas_threads() == mine
        results = parallel.in_order(lambda k: k, range(8))
        assert next(results) == 0
        results.close()  # type: ignore[attr-defined]
        assert blas_threads() == mine


@pytest.mark.parametrize("threads", [1, 2])
def test_a_task_leaves_the_limit_to_the_caller(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: threads)

    def limited(k: int) -> int:
        with parallel.one_blas_thread():
            time.sleep(0.002 * (k % 3))
        return k

    with threadpool_limits(3, user_api="blas"):
        mine = blas_threads()
        for _ in parallel.in_order(limited, range(12)):
            assert blas_threads() == mine
        assert blas_threads() == mine


@pytest.mark.parametrize("threads", [1, 2])
def test_an_item_s_error_is_raised_in_its_turn(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: threads)

    def fail_at_three(k: int) -> int:
        if k == 3:
            raise ValueError("three")
        return k

    results = parallel.in_order(fail_at_three, range(9))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
