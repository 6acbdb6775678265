"""How far linear functions fall on balls around inputs, or on what a box leaves of the balls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.bounds.matrices import DUAL, OUTWARD, ROUNDING
from flipopt.common.checks import Array

MULTIPLIERS = 4
"""Multipliers of the ball that are tried where a box cuts it; any is sound."""
HALVINGS = 8
"""Of the share of a radius that still proves something."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Changes d of inputs with |d| <= radius, and down <= d <= up where there is a box.

    Attributes
    ----------
    radius
        (rows,)
    norm
        1, 2 or inf.
    down, up
        (rows, n_inputs) at most 0 and at least 0, or None: no box.
    """

    radius: Array
    norm: float
    down: Array | None = None
    up: Array | None = None

    def fall(self, A: Array) -> Array:
        """Upper bounds on -A d for A (rows, k, n): (rows, k)."""
        ball = self.radius[:, None] * np.linalg.norm(A, ord=DUAL[self.norm], axis=2) * OUTWARD
        if self.down is None or self.up is None:
            return np.asarray(ball)
        r = self.radius[:, None]
        down, up = np.maximum(self.down, -r)[:, None], np.minimum(self.up, r)[:, None]
        box = np.maximum(-A * down, -A * up).sum(axis=2) * OUTWARD
        least = np.minimum(ball, box)
        return np.asarray(np.minimum(least, self._both(A, ball, down, up)) if self.norm == 2 else least)

    def zero(self, value: Array, A: Array) -> Array:
        """Where ``value`` + A d reaches 0 first, (rows,), for value (rows, k) and A (rows, k, n).

        With a box that is no more than the radius, or infinity: what is beyond it need not be known.
        """
        if self.down is None:
            steepness = np.linalg.norm(A, ord=DUAL[self.norm], axis=2)
            with np.errstate(divide="ignore", invalid="ignore"):
                zero = value / (steepness * OUTWARD)
            return np.asarray(np.nan_to_num(zero, nan=0.0, posinf=np.inf, neginf=0.0).min(axis=1).clip(0.0))
        sure, doubtful = np.zeros(len(value)), np.ones(len(value))
        whole = (value > self.fall(A)).all(axis=1)
        for _ in range(HALVINGS):
            share = (sure + doubtful) / 2
            holds = (value > Domain(share * self.radius, self.norm, self.down, self.up).fall(A)).all(axis=1)
            sure, doubtful = np.where(holds, share, sure), np.where(holds, doubtful, share)
        return np.where(whole, np.inf, sure * self.radius)

    def _both(self, A: Array, ball: Array, down: Array, up: Array) -> Array:
        """By weak duality: for any l > 0, the sum over j of max(-A_j d_j - l d_j^2 / 2), plus l r^2 / 2.

        The maximisers are -A_j / l within the box. The multipliers approach the one whose d is as long as r.
        """
        square = self.radius[:, None] ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            multiplier, least = ball / square, np.full_like(ball, np.inf)
            for _ in range(MULTIPLIERS):
                free = -A / multiplier[:, :, None]
                d = np.clip(free, down, up)
                inside = d == free
                bound = (-A * d - multiplier[:, :, None] / 2 * d * d).sum(axis=2) + multiplier * square / 2
                least = np.fmin(least, bound)
                left = square - np.where(inside, 0.0, d * d).sum(axis=2)
                multiplier = np.sqrt(np.where(inside, A * A, 0.0).sum(axis=2) / np.maximum(left, 0.0))
        return np.asarray(least + ROUNDING * ball)
