"""The gradients of a goal's rows, and by them what counts as 1 in each row: its change over the flip's distance.

By how much a row r is off its bound, e_r in units of the outputs, is about e_r / |grad r| as a distance, in the norm
dual to that of the problem. Relative to the distance d of the flip itself, this is e_r / scale_r with

    scale_r = |grad r| (d + ROUNDING |x_hat| / ON_BOUNDARY) + hidden_r / ON_BOUNDARY,

so that e_r <= ON_BOUNDARY scale_r says: no farther from the boundary than 1e-8 d, and what rounding hides. That is the
rounding of x_hat, and hidden_r = ROUNDING |y|, that of the outputs. The latter excuses no more than a part of the
distance (BLURRED): where rounding hides more, there is no boundary to be seen, except that x itself, at the distance 0,
may be on it as far as the outputs can tell. Elsewhere a row without a gradient has the scale 0. Outputs times a
constant have the same verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem.setting import Setting
from flipopt.verification.measures import Constraints
from flipopt.verification.tolerances import BLURRED, ON_BOUNDARY, ROUNDING

NEAR = 1e-3
"""Slack, measured as ON_BOUNDARY is but by the gradients known so far, up to which a row's own gradient is computed."""
Gradients = Callable[[Array, Array], Array]
"""Points (k,) and weights (k, n_classes) of the outputs to gradients (k, n_inputs)."""


@dataclass(frozen=True, eq=False)
class Lengths:
    """Of the changes x_hat - x and of the points, in the problem's norm, (points,)."""

    distance: Array
    size: Array

    @classmethod
    def at(cls, setting: Setting, X: Array, X_hat: Array) -> Lengths:
        return cls(np.asarray(setting.distance(X_hat, X)), np.asarray(setting.length(X_hat * ~setting.frozen)))

    @property
    def reach(self) -> Array:
        """The distance, or the length of which ON_BOUNDARY is what rounding makes of x_hat where that is longer."""
        return np.asarray(self.distance + ROUNDING * self.size / ON_BOUNDARY)

    def hidden(self, length: Array, noise: Array) -> Array:
        """What the rounding of outputs as large as ``noise`` hides of rows with gradients of this ``length``."""
        most = BLURRED[0] * self.distance + BLURRED[1] * self.size
        whole = ROUNDING * noise[:, None]
        with np.errstate(invalid="ignore"):  # a gradient that overflows
            return np.where(self.distance[:, None] == 0, whole, np.minimum(whole, length * most[:, None]))


class Normals:
    """The gradients of those rows of the goals that matter: equations, what is violated, what is near its bound."""

    def __init__(self, setting: Setting, goals: Constraints, lengths: Lengths, gradients: Gradients) -> None:
        self.setting, self.lengths, self._gradients = setting, lengths, gradients
        self._place = np.full(goals.values.shape, -1)
        self._known: list[Array] = []
        self._length = np.full(goals.values.shape, np.nan)
        excess = goals.excess
        with np.errstate(invalid="ignore"):
            worst = excess == excess.max(axis=1, keepdims=True)
            self._ask(goals, goals.equations | worst | (excess > 0))
            reach = NEAR * self._lengths() * lengths.reach[:, None]
            self._ask(goals, (self._place < 0) & (-excess <= reach))

    def measured(self, goals: Constraints, noise: Array) -> Constraints:
        """The goals with their scales, for outputs as large as ``noise`` (points,)."""
        length = self._lengths()
        with np.errstate(invalid="ignore", over="ignore"):
            scale = length * self.lengths.reach[:, None] + self.lengths.hidden(length, noise) / ON_BOUNDARY
        return replace(goals, scale=scale)

    def of(self, point: Array, row: Array) -> Array:
        """The gradients of rows, (k, n_inputs), for points and rows (k,) of those that matter."""
        known = np.concatenate([np.empty((0, self.setting.network.n_inputs)), *self._known])
        return np.asarray(known[self._place[point, row]])

    def _ask(self, goals: Constraints, mask: Array) -> None:
        point, row = np.nonzero(np.broadcast_to(mask, self._place.shape))
        if len(point) == 0:
            return
        gradient = self._gradients(point, goals.row(point, row))
        self._place[point, row] = sum(map(len, self._known)) + np.arange(len(point))
        self._length[point, row] = self.setting.dual_length(gradient)
        self._known.append(gradient)

    def _lengths(self) -> Array:
        """Of all gradients, (points, rows); for those that are not known, the largest that is known at the point."""
        known = np.where(np.isnan(self._length), 0.0, self._length).max(axis=1, initial=0.0, keepdims=True)
        return np.where(self._place < 0, known, self._length)
