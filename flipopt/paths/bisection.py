"""Boundary points between pairs of points of different classes, by bisection of the lines between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_number
from flipopt.common.tables import Table
from flipopt.networks.softmax import softmax
from flipopt.paths.lines import lines_between


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
    with beta = 0 to the last bit. A midpoint replaces a where z_s > z_t, and b elsewhere, whatever a third class says:
    where one is ahead in between, the point at which s and t tie is still found, and ``success`` is False. (The
    printed algorithm gives up at the first midpoint of a third class, even if s and t meet without it later.)

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
    low, high, alpha = np.zeros(count), np.ones(count), np.full(count, np.nan)
    gap, success = np.full(count, np.nan), np.zeros(count, dtype=bool)
    live = np.flatnonzero(s != t)
    while len(live):
        middle = low[live] + (high[live] - low[live]) / 2
        z = softmax(lines.logits(live, middle))
        rows = np.arange(len(live))
        z_s, z_t = z[rows, s[live]], z[rows, t[live]]
        lead = z_s - z_t
        alpha[live], gap[live] = middle, np.abs(lead)
        z[rows, s[live]] = z[rows, t[live]] = 0.0
        success[live] = z.max(axis=1) <= np.minimum(z_s, z_t)
        left = lead > 0
        low[live], high[live] = np.where(left, middle, low[live]), np.where(left, high[live], middle)
        near = success[live] & (gap[live] <= beta) if beta > 0 else np.zeros(len(live), dtype=bool)
        live = live[~near & (np.nextafter(low[live], np.inf) < high[live])]
    success &= (gap <= beta) | (beta == 0)
    x = np.full(lines.A.shape, np.nan)
    met = np.flatnonzero(s != t)
    x[met] = lines.at(met, alpha[met])
    return BoundaryPoints(alpha, x, gap, np.column_stack([s, t]), success, lines.evaluations)
