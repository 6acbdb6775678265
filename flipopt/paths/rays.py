"""Where the ray from an input through another point meets the boundary: from any point near a flip to one on it."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch

STRETCHES = (1.0, 1.001, 1.01, 1.05, 1.2, 1.6, 2.5, 5.0)
"""Multiples of the way from x at which the other side is looked for; its inverses, if the point is beyond."""
ROUNDS = 60
"""Of the search for a zero: bisection alone would need as many for the last bit."""
ENOUGH = 1e-10
"""Distance from the boundary, relative to that from x, that is as good as zero: a hundredth of what is allowed."""


def onto_boundary(batch: FlipBatch, points: Array) -> tuple[Array, Array, Array]:
    """The point of every ray from x through ``points`` (problems, n_inputs) at which classes i and j tie.

    A ray is bent where it meets a bound. Returns the points, in that shape; which rays have one, (problems,); and the
    forward passes that it took, (problems,). Third classes are not looked at.
    """
    rays = _Rays(batch, points)
    low, high, found = rays.bracket()
    t = np.ones(len(batch))
    rows = np.flatnonzero(found)
    t[rows] = rays.zero(rows, low[rows], high[rows])
    return rays.at(np.arange(len(batch)), t), found, rays.forward


class _Rays:
    """x + t (point - x), put within the bounds."""

    def __init__(self, batch: FlipBatch, points: Array) -> None:
        self.batch, self.points = batch, points
        self.forward = np.zeros(len(batch), dtype=np.int64)

    def at(self, rows: Array, t: Array) -> Array:
        """The points (k, n_inputs) of the rays ``rows`` (k,) at t (k,)."""
        X = self.batch.X[rows]
        return self.batch.take(rows).clip(X + t[:, None] * (self.points[rows] - X))

    def lead(self, rows: Array, t: Array) -> Array:
        """y_i - y_j there."""
        Y, part = self.batch.network.logits(self.at(rows, t)), self.batch.take(rows)
        self.forward[rows] += 1
        return np.asarray(part.leads(Y)[np.arange(len(rows)), part.classes[:, 1]])

    def bracket(self) -> tuple[Array, Array, Array]:
        """t and lead on either side of the boundary, (problems, 2) each, near t = 1, and where there are any."""
        count = len(self.batch)
        low, high = np.full((count, 2), np.nan), np.full((count, 2), np.nan)
        here = self.lead(np.arange(count), np.ones(count)) if count else np.empty(0)
        before, after = np.column_stack([np.ones(count), here]), here > 0
        found = here == 0
        low[found] = high[found] = before[found]
        for stretch in (*STRETCHES[1:], np.inf):
            rows = np.flatnonzero(~found & np.isfinite(here))
            t = np.where(after[rows], stretch, 1 / stretch)
            rows, t = rows[np.isfinite(t)], t[np.isfinite(t)]
            if len(rows) == 0:
                break
            now = np.column_stack([t, self.lead(rows, t)])
            across = (now[:, 1] > 0) != after[rows]
            some = rows[across]
            inner = np.where(after[some, None], before[some], now[across])
            low[some], high[some] = inner, np.where(after[some, None], now[across], before[some])
            found[some] = True
            before[rows] = now
        return low, high, found

    def zero(self, rows: Array, low: Array, high: Array) -> Array:
        """t of the boundary between ``low`` and ``high`` (k, 2), by false position that halves what stays put
        (the Illinois rule: M. Dowell and P. Jarratt, BIT 11, 1971)."""
        t, live = low[:, 0].copy(), np.arange(len(rows))
        a, fa, b, fb = low[:, 0].copy(), low[:, 1].copy(), high[:, 0].copy(), high[:, 1].copy()
        best = np.minimum(np.abs(fa), np.abs(fb))
        t = np.where(np.abs(fa) <= np.abs(fb), a, b)
        for k in range(ROUNDS):
            # By the secant the boundary is so far along the ray, and no farther by the shortest way.
            off = best[live] * np.abs(b - a)[live] > ENOUGH * np.abs(t * (fb - fa))[live]
            live = live[off & (np.abs(b - a)[live] > 4e-16 * np.abs(b[live]))]
            if len(live) == 0:
                break
            A, FA, B, FB = a[live], fa[live], b[live], fb[live]
            secant = B - FB * (B - A) / np.where(FB == FA, 1.0, FB - FA)
            middle = (A + B) / 2
            inside = (secant > np.minimum(A, B)) & (secant < np.maximum(A, B))
            c = np.where(inside & (k % 4 < 3), secant, middle)  # every fourth halves the interval whatever happens
            fc = self.lead(rows[live], c)
            nearer = np.abs(fc) < best[live]
            t[live[nearer]], best[live[nearer]] = c[nearer], np.abs(fc)[nearer]
            left = (fc > 0) == (FA > 0)
            a[live], b[live] = np.where(left, c, A), np.where(left, B, c)
            fa[live], fb[live] = np.where(left, fc, FA / 2), np.where(left, FB / 2, fc)
        return t
