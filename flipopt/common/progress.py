"""The progress bar of everything that takes long."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")


class Advance(Protocol):
    """Moves a bar on."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """So many are done, of ``total`` if that has not been said before."""


@contextmanager
def progress_bar(
    what: str,
    total: int | None = None,
    unit: str = "",
    shown: bool = True,
    console: Console | None = None,
    before: int = 0,
) -> Iterator[Advance]:
    """A bar with the count, its rate in ``unit`` (if it has one) and the time that is left; none unless ``shown``.

    What was done ``before`` counts as done, and not for the rate.
    """
    if not shown:
        yield lambda done, total=None: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task, started = bar.add_task(what, total=total, rate=unit), time.perf_counter()

        def advance(done: int, total: int | None = None) -> None:
            per_second = (done - before) / max(time.perf_counter() - started, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{per_second:.3g} {unit}/s" if unit else "")

        yield advance


def tracked(items: Collection[T], what: str, console: Console | None = None) -> Iterator[T]:
    """The items one after the other, under a bar of how many have been dealt with."""
    with progress_bar(what, len(items), console=console) as advance:
        for done, item in enumerate(items, 1):
            yield item
            advance(done)
