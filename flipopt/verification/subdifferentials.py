"""The gradients of the objective at a point, and the nearest of them to a vector v = lam N.

In the 2-norm there is one, in the 1-norm a box, in the inf-norm a face of the cross-polytope:

    norm 1     sign(change) where a feature has changed, anything in [-1, 1] where it has not
    norm inf   t_k sign(change_k) for the features that have changed the most, t >= 0, sum t = 1; 0 for the others

To each belong the multipliers of the bounds that x_hat touches: where v is beyond the gradient on the side that a bound
can take up, nothing is left. So the squared distance is convex in v, and a quadratic on each of many pieces. No array
here has more than a few entries a feature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.verification.tolerances import ACTIVE

Pair = tuple[Array, Array]
"""Of lower and upper bounds: their values, or masks of the features that touch them."""


@dataclass(frozen=True, eq=False)
class Piece:
    """What is left of g - v, (n,), and the quadratic that holds around v.

    ``counts`` (n,) are the features whose v must equal ``target`` (n,); with ``signs``, the sum of sign * v over the
    features ``shared`` (n,) must be 1, and what is missing is spread evenly over them.
    """

    left: Array
    counts: Array
    target: Array
    shared: Array
    signs: Array

    @property
    def distance(self) -> float:
        return float(np.linalg.norm(self.left))

    def same(self, other: Piece) -> bool:
        """Whether the quadratic is the same."""
        masks = (self.counts, other.counts), (self.shared, other.shared)
        equal = all(np.array_equal(a, b) for a, b in masks)
        return equal and np.array_equal(self.target[self.counts], other.target[self.counts])

    def equations(self, N: Array) -> Pair:
        """A (rows, m) and right (rows,): the distance is |A lam - right| for v = lam N, with N (m, n)."""
        A, right = N[:, self.counts].T, self.target[self.counts]
        if not self.shared.any():
            return A, right
        root = np.sqrt(self.shared.sum())
        return np.vstack([A, N @ np.where(self.shared, self.signs, 0.0) / root]), np.append(right, 1 / root)


class Subdifferential(ABC):
    """Gradients of the objective, and what multipliers of bounds add to them."""

    @abstractmethod
    def piece(self, v: Array) -> Piece:
        """The quadratic around v (n,)."""

    @abstractmethod
    def residual(self, v: Array) -> float:
        """How far v (n,) is from the gradients, relative where there is only one."""


@dataclass(frozen=True, eq=False)
class Box(Subdifferential):
    """low <= g <= high, (n,) each; infinite on the side that a bound takes up. ``size`` is what counts as 1."""

    low: Array
    high: Array
    size: float

    def piece(self, v: Array) -> Piece:
        target = np.clip(v, self.low, self.high)
        none = np.zeros(len(v), dtype=bool)
        # A point on the edge of an interval counts to both pieces; where the interval is a point it must count.
        counts = (target != v) | (self.low == self.high)
        return Piece(target - v, counts, target, none, np.empty(0))

    def residual(self, v: Array) -> float:
        return self.piece(v).distance / self.size


@dataclass(frozen=True, eq=False)
class Face(Subdifferential):
    """g = t signs with t >= 0, sum t = 1 over the features ``most`` (n,); ``short`` (n,) is 1 - |change| / distance."""

    signs: Array
    most: Array
    short: Array
    edges: Pair

    def piece(self, v: Array) -> Piece:
        t, level = self.weights(v)
        left, held = self._left(v, t), t > 0
        counts = ~taken(t * self.signs - v, self.edges) & ~held
        return Piece(left, counts, np.zeros(len(v)), held & (level != 0), self.signs)

    def residual(self, v: Array) -> float:
        t, _ = self.weights(v)
        # Complementarity of the features that are nearly, not quite, changed the most.
        return max(float(np.linalg.norm(self._left(v, t))), float(t @ self.short))

    def _left(self, v: Array, t: Array) -> Array:
        left = t * self.signs - v
        return np.where(taken(left, self.edges), 0.0, left)

    def weights(self, v: Array) -> tuple[Array, float]:
        """t (n,) that leaves the least of t signs - v, and the level by which all of signs v that it takes are above t.

        Features at bounds cost nothing on one side. Those that cost nothing above t take no part if the level is
        positive, and those that cost nothing below take the whole of a level that would be negative.
        """
        w, (low, high), up = self.signs * v, self.edges, self.signs > 0
        over = self.most & np.where(up, high, low)  # t < w is taken up by the bound
        under = self.most & np.where(up, low, high)  # t > w is
        plain = np.where(self.most, np.maximum(w, 0.0), 0.0)
        t, needed = np.where(over, 0.0, plain), 1.0
        if t.sum() >= needed:
            return _simplex(w, self.most & ~over)
        if plain.sum() >= needed:
            share = (needed - t.sum()) / (plain - t).sum()
            return t + share * (plain - t), 0.0
        if under.any():
            more = np.where(under, 1 - self.short, 0.0)
            best = under & (more == more.max())
            return plain + np.where(best, (needed - plain.sum()) / best.sum(), 0.0), 0.0
        return _simplex(w, self.most)


def subdifferential(norm: float, change: Array, g: Array, edges: Pair) -> Subdifferential:
    """Of the objective at a change (n,) that is not 0; ``g`` (n,) is its gradient in the 2-norm."""
    size = np.abs(change).max()
    if norm == np.inf:
        # An interior-point solution stays off weakly active rows by about 1e-5; what is not quite active is charged.
        return Face(np.sign(change), np.abs(change) >= size * (1 - 100 * ACTIVE), 1 - np.abs(change) / size, edges)
    still = (np.abs(change) <= ACTIVE * size) & (norm == 1)
    g = np.sign(change) if norm == 1 else g
    low, high = np.where(still, -1.0, g), np.where(still, 1.0, g)
    unique = np.linalg.norm(g) if not still.any() else 1.0
    return Box(np.where(edges[0], -np.inf, low), np.where(edges[1], np.inf, high), float(unique))


def taken(left: Array, edges: Pair) -> Array:
    """Where the multiplier of a bound takes up what is left: nu >= 0 at a lower bound, <= 0 at an upper one."""
    return np.asarray((edges[0] & (left > 0)) | (edges[1] & (left < 0)))


def _simplex(w: Array, these: Array) -> tuple[Array, float]:
    """The nearest t >= 0 (n,) to w with sum 1 over ``these``, 0 elsewhere, and the level: t = max(w - level, 0)."""
    falling = np.sort(w[these])[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    level = float(levels[np.flatnonzero(falling > levels)[-1]])
    return np.where(these, np.maximum(w - level, 0.0), 0.0), level
