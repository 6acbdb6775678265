"""Where exactly the class changes: from a bracket to two neighbouring floating-point numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.common.tables import Table
from flipopt.paths.lines import Lines

KAPPA = 0.2
"""Of the ITP rule: how much a secant step is drawn to the middle, times the square of the bracket over its first."""


@dataclass(frozen=True)
class Brackets(Columns):
    """Intervals of lines with one predicted class at their lower and another at their upper end.

    ``line``, ``low`` and ``high`` (alpha) are (brackets,), the logits ``Y_low`` and ``Y_high`` (brackets, n_classes).
    """

    line: Array
    low: Array
    high: Array
    Y_low: Array
    Y_high: Array

    @property
    def classes(self) -> Array:
        """(before, after), (brackets, 2)."""
        return np.column_stack([self.Y_low.argmax(axis=1), self.Y_high.argmax(axis=1)])


@dataclass(frozen=True)
class Intervals(Table):
    """Parts of lines, from alpha ``low`` to ``high``: (intervals,) each, as ``line`` is."""

    line: Array
    low: Array
    high: Array

    def sorted(self) -> Intervals:
        """By line and alpha, with those in one that meet."""
        order = self.take(np.lexsort((self.low, self.line)))
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (order.line[1:] != order.line[:-1]) | (order.low[1:] > order.high[:-1])
        first = np.flatnonzero(fresh)
        last = np.append(first[1:], len(order)) - 1
        return Intervals(order.line[first], order.low[first], order.high[last] if len(order) else order.high)


@dataclass(frozen=True)
class Search:
    """What a search came to: intervals in which the class changes, those that were left undecided, and the class at
    the first end of every line, (lines,)."""

    brackets: Brackets
    undecided: Intervals
    start: Array


def located(lines: Lines, brackets: Brackets) -> Brackets:
    """Every bracket as two neighbouring numbers alpha with different predicted classes, sorted by line and alpha.

    By the ITP rule (I. F. D. Oliveira and R. H. C. Takahashi, ACM Trans. Math. Softw. 47(1), 2021): secant steps drawn
    a little to the middle, and kept so near it that no more steps are needed than by bisection and one. Where a third
    class turns up in between, a bracket becomes two.
    """
    done: list[Brackets] = []
    first = budget = brackets.high - brackets.low
    while len(brackets):
        apart = np.nextafter(brackets.low, np.inf) < brackets.high
        done.append(brackets.take(~apart))
        brackets, budget, first = brackets.take(apart), budget[apart], first[apart]
        alpha = _next(brackets, budget, first)
        Y = lines.logits(brackets.line, alpha)
        here, classes = Y.argmax(axis=1), brackets.classes
        third = np.flatnonzero((here != classes[:, 0]) & (here != classes[:, 1]))
        more = Brackets(brackets.line[third], alpha[third], brackets.high[third], Y[third], brackets.Y_high[third])
        left = here == classes[:, 0]
        brackets = Brackets(
            brackets.line,
            np.where(left, alpha, brackets.low),
            np.where(left, brackets.high, alpha),
            np.where(left[:, None], Y, brackets.Y_low),
            np.where(left[:, None], brackets.Y_high, Y),
        )
        brackets, width = Brackets.join([brackets, more]), more.high - more.low
        budget, first = np.append(budget / 2, width), np.append(first, width)
    found = Brackets.join(done) if done else brackets
    return found.take(np.lexsort((found.high, found.line)))


def _next(brackets: Brackets, budget: Array, first: Array) -> Array:
    """Where to look next, strictly inside every bracket; ``budget`` is twice what bisection would have left."""
    rows, (i, j) = np.arange(len(brackets)), brackets.classes.T
    low, high = brackets.low, brackets.high
    f_low, f_high = (Y[rows, i] - Y[rows, j] for Y in (brackets.Y_low, brackets.Y_high))
    fall, width, middle = f_low - f_high, high - low, low + (high - low) / 2
    secant = np.where(fall > 0, low + width * f_low / np.where(fall > 0, fall, 1.0), middle)
    ulp = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    drawn = np.maximum(KAPPA * width * width / first, 2 * ulp)
    towards = np.where(np.abs(middle - secant) <= drawn, middle, secant + np.sign(middle - secant) * drawn)
    slack = np.maximum(budget - width / 2, 0.0)
    alpha = np.clip(towards, middle - slack, middle + slack)
    return np.asarray(np.clip(alpha, np.nextafter(low, np.inf), np.nextafter(high, -np.inf)))
