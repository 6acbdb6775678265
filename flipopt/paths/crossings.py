"""Where the class changes along many lines at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from flipopt.common.checks import Array, one_of
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.common.tables import Table
from flipopt.paths.adaptive import Sampling, sample
from flipopt.paths.lines import Lines, lines_between
from flipopt.paths.location import Intervals, Search, located
from flipopt.runs.threads import in_order

MODES = ("proved", "adaptive")
LINES_AT_ONCE = {"proved": 32, "adaptive": 512}
"""Lines of a task: enough for large products, few enough for all cores to have some."""


@dataclass(frozen=True, eq=False)
class Crossings(Table):
    """Where the predicted class changes along lines, one record a crossing, sorted by line and alpha.

    Attributes
    ----------
    line
        Index of the line, (crossings,).
    alpha
        The place: the first floating-point number at which the class after is predicted, where the one before it
        still has the class before, (crossings,). The point is (1 - alpha) a + alpha b.
    classes
        (before, after) of each crossing, (crossings, 2).
    start
        The class at the first end of every line, (lines,).
    decided
        Of every line, (lines,): in proved mode, whether it is proved that there are these crossings and no others; in
        adaptive mode whether sampling came to its end before it reached its finest distance.
    evaluations
        Network evaluations of every line, (lines,). An expansion of order K counts as K + 3: so many rows go through
        the network's matrices for it.
    undecided
        The intervals ``line``, ``low``, ``high`` that were left undecided.
    """

    line: Array
    alpha: Array
    classes: Array
    start: Array = field(repr=False)
    decided: Array = field(repr=False)
    evaluations: Array = field(repr=False)
    undecided: Intervals = field(repr=False)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return "line", "alpha", "classes"

    @property
    def count(self) -> Array:
        """Crossings of every line, (lines,)."""
        return np.bincount(self.line, minlength=len(self.start))

    def take(self, rows: Array | slice) -> Self:
        """Some of the crossings; what is known of the lines stays."""
        chosen = {name: getattr(self, name)[rows] for name in self.names()}
        return type(self)(**chosen, **{name: getattr(self, name) for name in _OF_LINES})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The lines of all parts, one after the other, numbered anew."""
        first = np.cumsum([0, *(len(part.start) for part in parts)])
        moved = [
            cls(
                part.line + offset,
                part.alpha,
                part.classes,
                part.start,
                part.decided,
                part.evaluations,
                Intervals(part.undecided.line + offset, part.undecided.low, part.undecided.high),
            )
            for part, offset in zip(parts, first, strict=False)
        ]
        names = (*cls.names(), *_OF_LINES[:-1])
        columns = {name: np.concatenate([getattr(part, name) for part in moved]) for name in names}
        return cls(**columns, undecided=Intervals.join([part.undecided for part in moved]))


_OF_LINES = ("start", "decided", "evaluations", "undecided")


def crossings(
    net: Any,
    A: Any,
    B: Any,
    mode: str = "proved",
    beyond: float = 0.0,
    options: Any = None,
    progress: bool = False,
) -> Crossings:
    """Where the predicted class changes on the lines from the rows of A to those of B.

    Parameters
    ----------
    net
        Any network; it is computed in float64.
    A, B
        Points (lines, n_inputs), or one point (n_inputs,) for all lines.
    mode
        "proved" finds every crossing and proves that there is no other, by enclosures of the leads along a line
        (:class:`~flipopt.paths.Proving`), or says which intervals it leaves undecided. It needs a dense network: a
        :class:`~flipopt.DenseNetwork`, or one of torch, ONNX or scikit-learn that is a chain of linear layers and
        known activations. With piecewise linear activations the pieces are found one by one.
        "adaptive" takes every network, and assumes that between two samples the logits' second derivatives along
        the line are at most ``safety`` times what differences of neighbouring samples show
        (:class:`~flipopt.paths.Sampling`). What varies faster than the first samples can show is missed.
    beyond
        How far lines go on past both ends, as a share of their length.
    options
        A :class:`~flipopt.paths.Proving` or :class:`~flipopt.paths.Sampling`, as the mode has it.
    progress
        Whether to show a bar.
    """
    one_of(mode, MODES, "mode")
    lines = lines_between(net, A, B, beyond)
    search = _searcher(lines, mode, options)
    step = LINES_AT_ONCE[mode]
    parts = [slice(first, first + step) for first in range(0, len(lines), step)]

    def task(part: slice) -> Crossings:
        some = lines.take(part)
        return _found(some, search(some))

    found: list[Crossings] = []
    done = 0
    with progress_bar(f"crossings, {mode}", len(lines), "lines", progress) as advance:
        for result in in_order(task, parts):
            found.append(result)
            done += len(result.start)
            advance(done)
    return Crossings.join(found)


def _searcher(lines: Lines, mode: str, options: Any) -> Any:
    """What makes a Search of some of the lines."""
    options = Sampling() if options is None else options
    if not isinstance(options, Sampling):
        raise InputError(f"options: expected a Sampling in adaptive mode, found {type(options).__name__}")
    chosen: Sampling = options
    return lambda some: sample(some, chosen)


def _found(lines: Lines, search: Search) -> Crossings:
    """Every bracket narrowed down to the last bit."""
    brackets, undecided = located(lines, search.brackets), search.undecided.sorted()
    decided = np.ones(len(lines), dtype=bool)
    decided[undecided.line] = False
    return Crossings(
        brackets.line, brackets.high, brackets.classes, search.start, decided, lines.evaluations.copy(), undecided
    )
