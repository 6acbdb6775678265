"""Bounds on features: a box around x that changes stay in.

Without bounds a change that is orthogonal to the columns of W(1) is of no use, and the variables are coordinates in
their span. In a box it may be needed, to get along a wall. Programs are in the span all the same: a change is Q d + w
with w orthogonal to Q, and for any multipliers nu of the walls

    min over w of |w|^2 / 2 + nu . w = -|nu - Q Q^T nu|^2 / 2

has a closed form, so that w is no variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flipopt.common.checks import Array

UNIT = float(np.finfo(np.float64).eps)
UNDERFLOW = 1e-150
"""More than what underflow can take from a norm, whose squares may be 0 below 1e-162."""
ROUNDS = 50
"""Of the search for the multiplier of a ball, at most; it ends when no further wall is met."""


@dataclass(frozen=True, eq=False)
class Box:
    """lower <= change <= upper for the features that may change, in units of 1 / sqrt(weights).

    Attributes
    ----------
    lower, upper
        (n,), rounded outwards; at most 0 and at least 0, and infinite where there is no bound.
    inputs
        The number of each among all features, (n,).
    Q, R
        A basis of the columns of W(1) = Q R, (n, s) and (s, n(1)).
    excess
        At least the 2-norm of what Q lacks to be orthonormal.
    """

    lower: Array
    upper: Array
    inputs: Array
    Q: Array
    R: Array
    excess: float

    @cached_property
    def reach(self) -> float:
        """At least the length of the longest change."""
        return float(np.linalg.norm(np.maximum(-self.lower, self.upper))) * (1 + len(self.lower) * UNIT)

    @cached_property
    def outside(self) -> Array:
        """I - Q Q^T, (n, n)."""
        return np.asarray(np.eye(len(self.Q)) - self.Q @ self.Q.T)

    def least(self, A: Array, radius: float) -> Array:
        """Lower bounds (...,) on A d over the part of the box in the ball of a radius, for A (..., n).

        With the multiplier s of the ball, the minimum over d in the box of A d + s (|d|^2 - radius^2) / 2 is a lower
        bound for every s >= 0: every d goes to |A| / s or to its wall. The best s is the one for which d has the length
        of the radius. From |A| / radius it falls, by what is left of the radius after the walls that have been met.
        """
        size, most = np.abs(A), np.where(A > 0, -self.lower, self.upper)
        s = np.linalg.norm(A, axis=-1) / radius
        met = np.zeros(A.shape, dtype=bool)
        with np.errstate(divide="ignore", invalid="ignore"):  # a row of zeros, and walls at infinity
            for _ in range(ROUNDS):
                before, met = met, size > s[..., None] * most
                if (met == before).all():
                    break
                left = radius**2 - (np.where(met, most, 0.0) ** 2).sum(axis=-1)
                inside = (np.where(met, 0.0, size) ** 2).sum(axis=-1)
                s = np.where(left > 0, np.minimum(s, np.sqrt(inside / left)), s)
            d = np.where(size > 0, np.minimum(size / s[..., None], most), 0.0)
        fall, ball = (size * d).sum(axis=-1), s * radius**2
        bent = s * (d * d).sum(axis=-1)
        rounding = (A.shape[-1] + 16) * UNIT * (fall + bent + ball)
        return np.asarray((bent - ball) / 2 - fall - rounding)

    def orthogonal(self, nu: Array) -> tuple[Array, float]:
        """nu - Q Q^T nu for nu (n,), and an upper bound on the norm of what it is for an orthonormal Q."""
        rest = nu - self.Q @ (self.Q.T @ nu)
        n, s = self.Q.shape
        doubt = (3 * self.excess + (n + s + 16) * UNIT * np.sqrt(s)) * float(np.linalg.norm(nu))
        return rest, float(np.linalg.norm(rest)) * (1 + n * UNIT) + doubt


@dataclass(frozen=True, eq=False)
class Walls:
    """The constraints of a program that are walls of the box: those that the ball of its radius goes through.

    Attributes
    ----------
    box, first
        The number of the first of them among the constraints.
    places, signs
        The feature of each, and 1 where it is bounded from above, -1 from below, (walls,).
    radius
        Of the ball.
    """

    box: Box
    first: int
    places: Array
    signs: Array
    radius: float

    @classmethod
    def within(cls, box: Box, radius: float, first: int) -> Walls:
        """Those within a radius."""
        above, below = np.flatnonzero(box.upper < radius), np.flatnonzero(-box.lower < radius)
        signs = np.concatenate([np.ones(len(above)), -np.ones(len(below))])
        return cls(box, first, np.concatenate([above, below]), signs, radius)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def rows(self) -> slice:
        """Their place among the constraints."""
        return slice(self.first, self.first + len(self))

    @property
    def numbers(self) -> Array:
        """Of the constraints in certificates, counted from the first that is free: 2 input, plus 1 from below."""
        return np.asarray(2 * self.box.inputs[self.places] + (self.signs < 0))

    @property
    def normals(self) -> Array:
        """In the span, for d in units of the radius, (walls, s)."""
        return np.asarray(self.radius * self.signs[:, None] * self.box.Q[self.places])

    @property
    def right(self) -> Array:
        """How far away they are, (walls,)."""
        return np.where(self.signs > 0, self.box.upper[self.places], -self.box.lower[self.places])

    @cached_property
    def products(self) -> Array:
        """Of the parts of their unit normals that are orthogonal to the span, (walls, walls)."""
        return np.asarray(self.signs[:, None] * self.box.outside[np.ix_(self.places, self.places)] * self.signs)

    def pressure(self, lam: Array) -> Array:
        """nu (n,) from the multipliers (m,) of all constraints."""
        nu = np.zeros(len(self.box.lower))
        np.add.at(nu, self.places, self.signs * lam[self.rows])
        return nu
