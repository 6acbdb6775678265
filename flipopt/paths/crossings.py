"""Where the class changes along many lines at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from flipopt.bounds.discs import Discs
from flipopt.bounds.series import is_linear, known
from flipopt.common.checks import Array, one_of
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.common.tables import Table
from flipopt.networks.dense import DenseNetwork
from flipopt.paths.adaptive import Sampling, sample
from flipopt.paths.lines import Lines, lines_between
from flipopt.paths.location import Intervals, Search, located
from flipopt.paths.pieces import Pieces
from flipopt.paths.proving import Proving, prove
from flipopt.runs.threads import in_order

MODES = ("proved", "adaptive")
Searcher = Callable[[Lines], Search]
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
        Network evaluations of every line, (lines,). An expansion of order K counts as K + 4: so many rows go through
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


def _searcher(lines: Lines, mode: str, options: Any) -> Searcher:
    """What makes a Search of some of the lines."""
    kind: type[Sampling | Proving] = Sampling if mode == "adaptive" else Proving
    options = kind() if options is None else options
    if not isinstance(options, kind):
        raise InputError(f"options: expected a {kind.__name__} in {mode} mode, found {type(options).__name__}")
    return partial(sample, options=options) if isinstance(options, Sampling) else prover(lines.network, options)


def prover(network: Any, options: Proving) -> Searcher:
    """A search that proves what it finds, for a network of which something can be proved."""
    if not isinstance(network, DenseNetwork) or not all(known(activation) for activation in network.activations):
        raise InputError(
            "network: expected a chain of linear layers with erf, tanh, ELU, ReLU, PReLU or no activations, of which "
            f"crossings can be proved, found {_kind(network)}; mode='adaptive' takes every network"
        )
    if all(is_linear(activation) for activation in network.activations):
        return Pieces(network).search
    return partial(prove, discs=Discs(network, options.order), options=options)


def _kind(network: Any) -> str:
    """What a network is, for a message."""
    names = sorted({type(a).__name__ for a in getattr(network, "activations", ()) if not known(a)})
    return f"a {type(network).__name__}" + (f" with {', '.join(names)}" if names else "")


def _found(lines: Lines, search: Search) -> Crossings:
    """Every bracket narrowed down to the last bit."""
    brackets, undecided = located(lines, search.brackets), search.undecided.sorted()
    decided = np.ones(len(lines), dtype=bool)
    decided[undecided.line] = False
    return Crossings(
        brackets.line, brackets.high, brackets.classes, search.start, decided, lines.evaluations.copy(), undecided
    )
