"""Every change of class along lines through smooth networks, by enclosures of the leads on parts of the lines.

From the first end of a line on, a segment is enclosed by polynomials with an error (bounds/discs.py) and cut into
cells. A cell is decided if

- one class is proved to be ahead of all others in all of it, or
- of two classes it is proved that their lead has a derivative of one sign in all of it, and that the mean of their
  logits is ahead of all other classes, so that none of these ever is.

Where cells of the second kind follow each other, the class changes once if it is not the same at both ends, and else
not at all. The line goes on at the first cell that is not decided, with a shorter segment; the error's estimated order
says how long. docs/explanation/crossings.md has the mathematics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.bounds.discs import FURTHER_ROWS, Discs, LogitsOnDiscs
from flipopt.bounds.matrices import ROUNDING
from flipopt.common.checks import Array, as_number, as_whole
from flipopt.common.columns import Columns
from flipopt.common.errors import InputError
from flipopt.paths.lines import Lines
from flipopt.paths.location import Brackets, Intervals, Search

LARGEST_ORDER = 12
"""For which the rounding of series is bounded in bounds/discs.py."""
FRONTS = 32
"""Parts of lines that are followed at once, at least: few lines are cut into parts."""
WIDER = 1 + 1e-5
"""Cells overlap by this, and by more than the rounding of alpha."""


@dataclass(frozen=True)
class Proving:
    """How lines are followed in proved mode. ``python -m benchmarks paths`` measures the orders."""

    order: int = 9
    """Of the polynomials, 2 to 12; expansions of a higher one cost more and reach farther."""
    resolution: float = 1e-9
    """Length of a segment, in alpha, below which it is left undecided."""
    cells: int = 16
    """Into which a segment is cut."""
    first: float = 0.02
    """Radius of the first disc of a line, in alpha."""
    aim: float = 0.02
    """Share of a lead that the error of the next segment shall have, if it grows as its order says; it grows faster."""
    expansions: int = 4000
    """Of a line or a part of one, at most; what is left then is undecided."""

    def __post_init__(self) -> None:
        if as_whole(self.order, "order", least=2) > LARGEST_ORDER:
            raise InputError(f"order: expected at most {LARGEST_ORDER}, found {self.order}")
        as_number(self.resolution, "resolution", least=1e-12)
        as_whole(self.cells, "cells", least=2)


@dataclass(frozen=True)
class _Fronts(Columns):
    """Where lines, or parts of them, have been followed to.

    ``at`` and ``end`` are alpha, ``radius`` is the next disc's, ``share`` of it is the segment, ``stuck`` says that the
    last segment was left undecided; (fronts,) each.
    """

    line: Array
    at: Array
    end: Array
    radius: Array
    share: Array
    stuck: Array


@dataclass(frozen=True)
class _Runs(Columns):
    """Parts of lines in which the lead of ``first`` over ``second`` is monotone: ``rises`` or falls."""

    line: Array
    low: Array
    high: Array
    first: Array
    second: Array
    rises: Array


def prove(lines: Lines, discs: Discs, options: Proving) -> Search:
    """Follow all lines to their ends."""
    fronts, runs, undecided = _begin(lines, options), [], []
    for _ in range(options.expansions):
        if not len(fronts):
            break
        step = _Step.of(lines, discs, fronts, options)
        runs.append(step.runs())
        fronts, left = step.advance()
        undecided.append(left)
    undecided.append(Intervals(fronts.line, fronts.at, fronts.end))
    return _search(lines, _joined(_Runs.join(runs)), Intervals.join(undecided).sorted())


def _begin(lines: Lines, options: Proving) -> _Fronts:
    parts = -(-FRONTS // len(lines))
    edges = np.linspace(lines.low, lines.high, parts + 1)
    count = parts * len(lines)
    return _Fronts(
        np.repeat(np.arange(len(lines)), parts),
        np.tile(edges[:-1], len(lines)),
        np.tile(edges[1:], len(lines)),
        np.full(count, options.first),
        np.ones(count),
        np.zeros(count, dtype=bool),
    )


@dataclass(frozen=True)
class _Step:
    """A segment of every front, in cells: (fronts, cells) where nothing else is said.

    ``i`` and ``j`` are the classes ahead at the middle of a cell, ``free`` whether i is ahead in all of it,
    ``monotone`` whether only i and j are and their lead has a slope of one sign. ``lead`` and ``slope`` are those at
    the middle, ``error`` that of the lead; ``edges`` the alpha of all ends of cells, (fronts, cells + 1).
    """

    fronts: _Fronts
    options: Proving
    radius: Array
    edges: Array
    i: Array
    j: Array
    lead: Array
    slope: Array
    error: Array
    free: Array
    monotone: Array

    @classmethod
    def of(cls, lines: Lines, discs: Discs, fronts: _Fronts, options: Proving) -> _Step:
        half = np.minimum(fronts.radius * fronts.share, (fronts.end - fronts.at) / 2)
        radius = half / fronts.share + 4 * np.spacing(1 + np.abs(fronts.end))
        centre = fronts.at + half
        direction = lines.B[fronts.line] - lines.A[fronts.line]
        found = discs.enclose(lines.at(fronts.line, centre), radius[:, None] * direction)
        lines.evaluations[:] += np.bincount(fronts.line, minlength=len(lines)) * (discs.order + 1 + FURTHER_ROWS)
        edges = centre[:, None] + half[:, None] * np.linspace(-1, 1, options.cells + 1)
        edges[:, 0] = fronts.at
        edges[:, -1] = np.where(fronts.radius * fronts.share < (fronts.end - fronts.at) / 2, edges[:, -1], fronts.end)
        return cls(fronts, options, radius, edges, *_judged(found, half / radius, options.cells))

    @property
    def decided(self) -> Array:
        """Of cells from the first on, those up to the first in doubt, (fronts,)."""
        clear = self.free | self.monotone
        return np.asarray(np.where(clear.all(axis=1), clear.shape[1], (~clear).argmax(axis=1)))

    def runs(self) -> _Runs:
        """The decided cells in which two classes may be ahead."""
        front, cell = np.nonzero((np.arange(self.free.shape[1]) < self.decided[:, None]) & ~self.free)
        i, j = self.i[front, cell], self.j[front, cell]
        rises = (self.slope[front, cell] > 0) == (i < j)
        low, high = self.edges[front, cell], self.edges[front, cell + 1]
        return _Runs(self.fronts.line[front], low, high, np.minimum(i, j), np.maximum(i, j), rises)

    def advance(self) -> tuple[_Fronts, Intervals]:
        """Where to go on, and segments that are left undecided."""
        old, cells, decided = self.fronts, self.free.shape[1], self.decided
        rows, last = np.arange(len(old)), np.minimum(decided, cells - 1)
        short = self.edges[:, -1] - self.edges[:, 0] <= self.options.resolution
        given_up = (decided == 0) & (short | old.stuck)
        at = np.where(given_up, self.edges[:, -1], self.edges[rows, decided])
        factor, near = self._growth(rows, last, decided == cells)
        fronts = _Fronts(
            old.line,
            at,
            old.end,
            np.where(given_up, 2.0, factor) * self.radius,
            np.where(near & ~given_up, 0.5, 1.0),
            given_up,
        )
        left = Intervals(old.line, old.at, self.edges[:, -1]).take(given_up)
        return fronts.take(at < old.end), left

    def _growth(self, rows: Array, last: Array, all_decided: Array) -> tuple[Array, Array]:
        """By how much the radius may grow, and whether two classes meet nearby, so that the lead's slope must decide.

        The error grows like the power order + 1 of the radius; the slope's error is some times that of the lead.
        """
        lead, slope, error = (np.abs(values[rows, last]) for values in (self.lead, self.slope, self.error))
        near = ~all_decided & (lead < np.maximum(slope / 4, 2 * error))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            wanted = self.options.aim * np.where(near, slope / 4, np.maximum(lead, slope / 8)) / error
            factor = wanted ** (1 / (self.options.order + 1))
        factor = np.where(np.isfinite(factor), factor, 0.4)
        return np.where(all_decided, np.clip(factor, 0.7, 1.6), np.clip(factor, 0.35, 0.8)), near


def _judged(found: LogitsOnDiscs, share: Array, cells: int) -> tuple[Array, ...]:
    """i, j, lead, slope, error, free and monotone of all cells, where u = share v and v is in [-1, 1]."""
    order = found.coefficients.shape[1] - 1
    P = found.coefficients * (share[:, None] ** np.arange(order + 1))[:, :, None]
    error = found.error + ROUNDING * (1 + np.abs(P).sum(axis=1))
    middle = (2 * np.arange(cells) + 1) / cells - 1
    width = WIDER / cells
    farthest = np.minimum(np.abs(middle) + width, 1.0)
    k = np.arange(order + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.einsum("mk,skc->smc", middle[:, None] ** k, P)
        slope = np.einsum("mk,skc->smc", k * middle[:, None] ** np.maximum(k - 1, 0), P)
        bend = np.einsum("mk,skc->smc", k * (k - 1) * farthest[:, None] ** np.maximum(k - 2, 0), np.abs(P))
        doubt = bend * width**2 / 2 + error[:, None]  # beyond what the slope does within the cell
        i, j = np.moveaxis(np.argsort(value, axis=2)[:, :, :-3:-1], 2, 0)
        error = np.broadcast_to(error[:, None], value.shape)
        (v_i, s_i, b_i, d_i, e_i), (v_j, s_j, b_j, d_j, e_j) = (
            [_pick(values, c) for values in (value, slope, bend, doubt, error)] for c in (i, j)
        )
        behind = v_i - value - np.abs(s_i - slope) * width - d_i - doubt > 0
        beaten = (v_i + v_j) / 2 - value - np.abs((s_i + s_j) / 2 - slope) * width - (d_i + d_j) / 2 - doubt > 0
        room = np.maximum(1 - share[:, None] * farthest, 0.0)[:, :, None]  # Cauchy: the slope's error is error / room
        steady = (np.abs(s_i - s_j) - (b_i + b_j) * width) * room > share[:, None, None] * (e_i + e_j)
    one, two = (np.arange(value.shape[2]) == c[:, :, None] for c in (i, j))
    free = (behind | one).all(axis=2)
    monotone = (beaten | one | two).all(axis=2) & steady[:, :, 0] & found.analytic[:, None]
    return i, j, (v_i - v_j)[:, :, 0], (s_i - s_j)[:, :, 0], (e_i + e_j)[:, :, 0], free, monotone


def _joined(runs: _Runs) -> _Runs:
    """Runs that follow each other with the same classes and the same sign of the slope as one."""
    runs = runs.take(np.lexsort((runs.low, runs.line)))
    fresh = np.ones(len(runs), dtype=bool)
    fresh[1:] = runs.low[1:] != runs.high[:-1]
    for name in ("line", "first", "second", "rises"):
        values = getattr(runs, name)
        fresh[1:] |= values[1:] != values[:-1]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(runs))[: len(first)] - 1
    joined = runs.take(first)
    return _Runs(joined.line, joined.low, runs.high[last], joined.first, joined.second, joined.rises)


def _search(lines: Lines, runs: _Runs, undecided: Intervals) -> Search:
    """Runs, and intervals left undecided, with another class at their upper end than at their lower."""
    every = np.arange(len(lines))
    start = lines.logits(every, np.full(len(lines), lines.low)).argmax(axis=1)
    line, low, high = (
        np.concatenate([getattr(part, name) for part in (runs, undecided)]) for name in ("line", "low", "high")
    )
    brackets = Brackets(line, low, high, lines.logits(line, low), lines.logits(line, high))
    changes = brackets.classes
    return Search(brackets.take(changes[:, 0] != changes[:, 1]), undecided, start)


def _pick(values: Array, k: Array) -> Array:
    """The entries of the classes k (fronts, cells) of ``values`` (fronts, cells, n_classes), with a last axis of 1."""
    return np.take_along_axis(values, k[:, :, None], axis=2)
