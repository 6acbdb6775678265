"""Boundary points between pairs of points of different classes, by bisection of the lines between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_number
from flipopt.common.columns import Columns
from flipopt.common.tables import Table
from flipopt.networks.softmax import softmax
from flipopt.paths.lines import Lines, lines_between

ENDLESS = 1100
"""More halvings than there can be between 0 and 1."""


@dataclass(frozen=True, eq=False)
class BoundaryPoints(Table):
    """One record a pair.

    Attributes
    ----------
    alpha
        Where on the line, (pairs,): the point is (1 - alpha) a + alpha b. NaN where a and b are of one class.
    x
        The points, (pairs, n_inputs).
    gap
        z_s - z_t in size there, (pairs,).
    classes
        (s, t): what the network predicts at a and at b, (pairs, 2).
    success
        Whether s and t are the two largest there and the gap is at most beta, (pairs,); with beta = 0 whether the
        class changes from s to t between alpha and a neighbouring number.
    evaluations
        Of the network, (pairs,).
    """

    alpha: Array
    x: Array
    gap: Array
    classes: Array
    success: Array
    evaluations: Array


def bisect(net: Any, A: Any, B: Any, beta: float = 1e-4) -> BoundaryPoints:
    """Boundary points between the rows of A (class s) and of B (class t): Algorithm 1 of Karimi et al., all at once.

    A line is halved until the probabilities of s and t differ by at most ``beta`` and no third class is above either;
    with beta = 0 to the last bit. A midpoint replaces a where y_s > y_t, and b elsewhere, whatever a third class says:
    where one is ahead in between, the point at which s and t tie is still found, and ``success`` is False. (The
    printed algorithm gives up at the first midpoint of a third class, even if s and t meet without it later;
    :func:`flipopt.borderline.refine` does either.)

    Parameters
    ----------
    net
        Any network; it is computed in float64.
    A, B
        Points (pairs, n_inputs), or one point (n_inputs,) for all pairs.
    beta
        Largest difference of the two probabilities.
    """
    beta = as_number(beta, "beta", least=0.0)
    lines = lines_between(net, A, B, 0.0)
    count, every = len(lines), np.arange(len(lines))
    s, t = (lines.logits(every, np.full(count, end)).argmax(axis=1) for end in (0.0, 1.0))
    met = np.flatnonzero(s != t)
    found = halve(lines, s, t, met, beta)
    x = np.full(lines.A.shape, np.nan)
    x[met] = lines.at(met, found.alpha[met])
    return BoundaryPoints(found.alpha, x, found.gap, np.column_stack([s, t]), found.success, lines.evaluations)


@dataclass(frozen=True, eq=False)
class Halving(Columns):
    """Where the halving of every line has ended, (lines,) each; NaN and no steps where a line was not halved.

    Attributes
    ----------
    alpha, gap
        The last midpoint, and z_s - z_t in size there.
    success
        Whether the gap is at most beta there, or with beta = 0 no number is left to try, and no third class is above
        s or t (if strict: above both).
    steps
        Midpoints that were looked at.
    third
        The class that made an end of it: above one of s and t where no number was left to try, or, if strict, above
        both at a midpoint; -1 elsewhere.
    exhausted
        Whether no number was left between the two ends.
    """

    alpha: Array
    gap: Array
    success: Array
    steps: Array
    third: Array
    exhausted: Array

    @classmethod
    def none(cls, count: int) -> Halving:
        """Of lines that nobody has halved yet."""
        steps, no = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
        return cls(np.full(count, np.nan), np.full(count, np.nan), no, steps, steps - 1, no.copy())


def halve(
    lines: Lines, s: Array, t: Array, live: Array, beta: float, strict: bool = False, most: int = ENDLESS
) -> Halving:
    """Halve the lines ``live`` (k,) from class s to class t, (lines,) each, in ``most`` steps of one network call.

    If ``strict``, a line has failed at the first midpoint where a third class is ahead; else it goes on, by which of s
    and t is ahead of the other. Scores that are not numbers end a line without success.
    """
    found = Halving.none(len(lines))
    low, high = np.zeros(len(lines)), np.ones(len(lines))
    for step in range(1, most + 1):
        if len(live) == 0:
            break
        middle = low[live] + (high[live] - low[live]) / 2
        scores = _Scores.of(lines.logits(live, middle), s[live], t[live])
        forward = scores.lead > 0
        low[live], high[live] = np.where(forward, middle, low[live]), np.where(forward, high[live], middle)
        exhausted = ~(np.nextafter(low[live], np.inf) < high[live])
        bad = scores.beaten if strict else ~scores.alone
        near = ~bad & scores.sound & ((scores.gap <= beta) if beta > 0 else exhausted)
        failed = bad & (exhausted | strict)
        third = np.where(failed & scores.sound, scores.third, -1)
        found.put(live, Halving(middle, scores.gap, near, np.full(len(live), step), third, exhausted))
        live = live[~(near | failed | exhausted) & scores.sound]
    return found


@dataclass(frozen=True)
class _Scores:
    """At some midpoints: y_s - y_t; |z_s - z_t|; the best of the other classes; whether it is above neither s nor t
    (they are ``alone``), or above both (they are ``beaten``); and whether all scores are numbers."""

    lead: Array
    gap: Array
    third: Array
    alone: Array
    beaten: Array
    sound: Array

    @classmethod
    def of(cls, Y: Array, s: Array, t: Array) -> _Scores:
        rows = np.arange(len(Y))
        with np.errstate(invalid="ignore", over="ignore"):
            z = softmax(Y)
            y_s, y_t = Y[rows, s], Y[rows, t]
            lead, gap = y_s - y_t, np.abs(z[rows, s] - z[rows, t])
        others = Y.copy()
        others[rows, s] = others[rows, t] = -np.inf
        third = others.argmax(axis=1)
        best = others[rows, third]
        alone, beaten = best <= np.minimum(y_s, y_t), best > np.maximum(y_s, y_t)
        return cls(lead, gap, third, alone, beaten, np.isfinite(gap))
