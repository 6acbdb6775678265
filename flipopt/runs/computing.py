"""Doing what a run lacks, and keeping every part as it comes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from flipopt.common.progress import progress_bar
from flipopt.runs.locks import exclusive
from flipopt.runs.schedule import Schedule
from flipopt.runs.store import Run
from flipopt.runs.work import Executor, Work

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")


def compute(
    run: Run,
    work: Work[T],
    executor: Executor,
    to_arrow: Callable[[T], pyarrow.Table],
    unit: str = "items",
    progress: bool = False,
) -> None:
    """Have everything done that the run lacks. Another process that works on it is waited for."""
    tell: Callable[[str], Any] = print if progress else lambda words: None

    def waiting() -> None:
        tell(f"{run.folder}: waiting for another process that works on this run")

    with exclusive(run.lock, waiting):
        for chunk in run.repair():
            tell(f"{chunk.path}: damaged, its {len(chunk.part)} {unit} are computed again")
        done, schedule = run.done, Schedule(run.missing, run.step, work.most)
        with progress_bar(run.manifest["kind"], run.total, unit, progress, before=done) as advance:
            advance(done)
            with closing(executor.each(work, schedule)) as results:  # type: ignore[type-var]
                for part, result, seconds in results:
                    run.add(part, to_arrow(result), seconds)
                    done += len(part)
                    advance(done)
