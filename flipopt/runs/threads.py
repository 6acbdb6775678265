"""Splitting a batch over the cores: one block of rows a task, one BLAS thread each.

Letting BLAS split every matrix product instead would make the cores wait for each other after every layer, and leave
the activations between the products to one of them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import chain, islice
from typing import TypeVar

from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

BLOCK_ROWS = 256
"""Rows a block has at most: enough for BLAS to reach its peak, few enough for a layer to stay in the cache."""
SMALLEST_TASK = 3e8
"""Floating-point operations a task needs to be worth a thread; below it BLAS splits its own products better."""

ROUND = 4
"""Items a core gets before the results of a round are handed out."""
EVEN = 16
"""Blocks begin at multiples of this: products of odd numbers of rows are padded."""

_inside = threading.local()
_stop = threading.Event()


@cache
def cores() -> int:
    """Cores to use: FLIPOPT_THREADS if it is set, or what this process may run on."""
    wanted = os.environ.get("FLIPOPT_THREADS", "")
    if wanted.isdigit():
        return max(1, int(wanted))
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1


def over_rows(task: Callable[[slice], T], rows: int, operations_per_row: float) -> list[T]:
    """``task`` on consecutive blocks of ``rows`` rows, on all cores where the work is worth it; results in order."""
    threads = cores()
    alone = threads == 1 or rows * operations_per_row < SMALLEST_TASK * threads or in_task()
    parts = blocks(rows, 1 if alone else threads)
    if alone:
        return [task(part) for part in parts]
    with one_blas_thread():
        return list(_pool(os.getpid()).map(_marked(task), parts))


def over_items(task: Callable[[int], T], count: int, operations: float) -> list[T]:
    """``task`` on 0, ..., count - 1, on all cores where all ``operations`` together are worth it; results in order."""
    parts = over_rows(lambda some: [task(k) for k in range(some.start, some.stop)], count, operations / max(count, 1))
    return list(chain.from_iterable(parts))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread while the block runs: at single points a second one costs more in waiting than it saves.

    The limit is the whole process's, so a task leaves it to whoever waits for it.
    """
    with nullcontext() if in_task() else _blas().limit(limits=1, user_api="blas"):
        yield


def blocks(rows: int, threads: int = 1, most: int | None = None) -> list[slice]:
    """Blocks of at most BLOCK_ROWS (or ``most``) rows, about as many for every thread; an empty one of no rows."""
    count = -(-rows // (most or BLOCK_ROWS))
    count = min(rows, -(-count // threads) * threads) or 1
    size = -(-max(rows, 1) // (count * EVEN)) * EVEN
    return [slice(low, min(low + size, rows)) for low in range(0, max(rows, 1), size)]


@cache
def _pool(pid: int) -> ThreadPoolExecutor:
    """The threads of this process (a forked child needs its own)."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="flipopt")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def in_order(task: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """``task`` on every item, on all cores with one BLAS thread each; results in order, an error in its turn.

    Items are taken in rounds of a few for every core, so memory does not grow with their number. Between rounds the
    caller has its own BLAS threads, and no task is under way whose rounding might depend on them.
    """
    source, alone = iter(items), cores() == 1 or in_task()
    while some := list(islice(source, 1 if alone else ROUND * cores())):
        with one_blas_thread():
            if len(some) == 1:
                results = [task(some[0])]
            else:
                futures = [_pool(os.getpid()).submit(_marked(task), item) for item in some]
                _wait(futures)
        yield from results if len(some) == 1 else (future.result() for future in futures)


def _wait(futures: list[Future[T]]) -> None:
    """Until all are done. A caller that is interrupted, as by Ctrl-C, leaves no work behind."""
    try:
        wait(futures)
    except BaseException:
        abandon(futures)
        raise


def abandon(futures: Collection[Future[T]]) -> None:
    """Have tasks end that nobody waits for any more."""
    if not futures:
        return
    _stop.set()
    for future in futures:
        future.cancel()
    wait(futures)
    _stop.clear()


def submit(task: Callable[[], T]) -> Future[T]:
    """``task`` on a thread of the pool; for who holds ``one_blas_thread``."""
    return _pool(os.getpid()).submit(_marked(lambda _: task()), None)


def single_threaded() -> None:
    """Keep this process to one thread of every library, for good: others do the rest of the work."""
    _inside.task = True
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that are not loaded yet
    ThreadpoolController().limit(limits=1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def as_task(task: Callable[[S], T]) -> Callable[[S], T]:
    """``task`` that splits nothing over further threads, whichever thread calls it."""
    return _marked(task)


def stop_if_interrupted() -> None:
    """Raise if whoever waits for this task has been interrupted: for loops that take long."""
    if _stop.is_set() and in_task():
        raise InterruptedError("the caller was interrupted")


def _marked(task: Callable[[S], T]) -> Callable[[S], T]:
    """``task`` for a thread of the pool: in it no further task waits for a thread of the same pool."""

    def run(item: S) -> T:
        _inside.task = True
        return task(item)

    return run


def in_task() -> bool:
    """Whether this thread works on a task, which no further thread should help with."""
    return getattr(_inside, "task", False)


def even_share(count: int, largest: int) -> int:
    """Items a task should get, at most ``largest``, so that every core gets as many tasks of as many items."""
    turns = max(1, -(-count // (largest * cores())))
    return max(1, -(-count // (turns * cores())))
