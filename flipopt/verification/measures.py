"""The measures of a check, each for many points at once; a single point is a batch of one.

Everything is computed from the network, in float64 and in the space of x_hat. A goal is lower <= T o <= upper at each
point, with o the outputs (logits or probabilities); a row with equal bounds is an equation. By how much a row is off
its bound counts as a distance, relative to the flip's own (normals.py); one of the user's, relative to max(1, |value|).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch, LinearConstraint
from flipopt.problem.constraints import Constraint
from flipopt.problem.goal import Goal
from flipopt.problem.setting import Setting
from flipopt.verification.tolerances import ACTIVE


@dataclass(frozen=True, eq=False)
class Constraints:
    """lower <= values <= upper, (points, rows) each or bounds (1, rows).

    ``scale`` (points, rows) is what counts as 1; of goals it is known once their gradients are.

    ``row`` gives, for points and rows (k,), what a gradient is made of: rows of T, (k, n_classes), or gradients as they
    are, (k, n_inputs). T as a whole has n_classes^2 entries a point, most of them never asked for.
    """

    values: Array
    lower: Array
    upper: Array
    row: Callable[[Array, Array], Array]
    scale: Array

    @property
    def equations(self) -> Array:
        return np.asarray(self.lower == self.upper)

    @property
    def excess(self) -> Array:
        """Of each row over its bounds; negative where there is slack."""
        return np.asarray(np.maximum(self.lower - self.values, self.values - self.upper))

    @property
    def violation(self) -> Array:
        """The excess relative to the scale; what has no scale, because nothing changes it, is infinite or 0."""
        excess = self.excess
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(excess == 0, 0.0, excess / self.scale)

    def active(self) -> tuple[Array, Array, Array, Array]:
        """The rows that may have a multiplier, (k,) each: their points and rows, whether it may have either sign, and
        otherwise its sign, +1 at a lower bound and -1 at an upper one. Equations count however far off they are."""
        near = ACTIVE * self.scale
        at_lower = (self.values - self.lower <= near) | self.equations
        at_upper = (self.upper - self.values <= near) | self.equations
        point, row = np.nonzero(at_lower | at_upper)
        return point, row, (at_lower & at_upper)[point, row], np.where(at_lower[point, row], 1.0, -1.0)


def flips(batch: FlipBatch, outputs: Array) -> Constraints:
    """The goals of a batch at the outputs (points, n_classes): the tie of i and j first, then the other classes."""
    points, (i, j), classes = np.arange(len(outputs)), batch.classes.T, np.arange(outputs.shape[1])
    order = np.where(classes == j[:, None], -1, np.where(classes == i[:, None], len(classes), classes))
    others = np.argsort(order, axis=1)[:, : len(classes) - 1 if batch.others else 1]
    y_i, y_k = outputs[points, i][:, None], np.take_along_axis(outputs, others, axis=1)
    tie = np.broadcast_to(np.arange(others.shape[1]) == 0, others.shape)

    def row(points: Array, rows: Array) -> Array:
        k, T = np.arange(len(points)), np.zeros((len(points), len(classes)))
        T[k, i[points]], T[k, others[points, rows]] = 1.0, -1.0
        return T

    lower, upper = (np.where(tie, 0.0 - batch.beyond, bound) for bound in (batch.margin, np.inf))
    return Constraints(y_i - y_k, lower, upper, row, np.ones(others.shape))


def one_goal(goal: Goal, outputs: Array) -> Constraints:
    """The same goal at every point."""
    values = outputs @ goal.T.T
    return Constraints(
        values, goal.lower[None], goal.upper[None], lambda points, rows: goal.T[rows], np.ones(values.shape)
    )


def users(setting: Setting, X_hat: Array) -> Constraints:
    """The user's constraints, which know of one point at a time."""
    lower, upper = (
        np.concatenate([[], *(getattr(c, side) for c in setting.constraints)]) for side in ("lower", "upper")
    )
    values, N = np.empty((len(X_hat), len(lower))), np.empty((len(X_hat), len(lower), X_hat.shape[1]))
    for k, x_hat in enumerate(X_hat) if setting.constraints else ():
        parts = [_value_and_jacobian(c, x_hat) for c in setting.constraints]
        values[k], N[k] = np.concatenate([c for c, _ in parts]), np.concatenate([J for _, J in parts])
    scale = np.maximum(1.0, np.abs(values))
    return Constraints(values, lower[None], upper[None], lambda points, rows: N[points, rows], scale)


def _value_and_jacobian(constraint: Constraint, x_hat: Array) -> tuple[Array, Array]:
    if isinstance(constraint, LinearConstraint):
        return constraint.A @ x_hat, constraint.A
    return np.asarray(constraint.function(x_hat)), np.asarray(constraint.jacobian(x_hat))


def boundary_gap(goals: Constraints) -> Array:
    """The largest violation of an equation, (points,)."""
    return np.asarray(np.abs(np.where(goals.equations, goals.violation, 0.0)).max(axis=1, initial=0.0))


def class_margin(goals: Constraints) -> Array:
    """The smallest slack of an inequality, (points,); inf if there is none."""
    return np.asarray(np.where(goals.equations, np.inf, -goals.violation).min(axis=1, initial=np.inf))


def bound_violation(setting: Setting, X: Array, X_hat: Array) -> Array:
    """The largest excess over the bounds and the largest change of a frozen feature, (points,)."""
    worst = np.zeros(len(X_hat))
    if setting.bounded:
        worst = np.maximum(worst, np.maximum(setting.lower - X_hat, X_hat - setting.upper).max(axis=1))
    if setting.frozen.any():
        worst = np.maximum(worst, np.abs(X_hat - X)[:, setting.frozen].max(axis=1))
    return worst


def constraint_violation(user: Constraints) -> Array:
    """The largest excess over the user's constraints, (points,)."""
    return np.asarray(np.nan_to_num(user.violation, nan=np.inf).max(axis=1, initial=0.0))


def angle(change: Array, normals: Array) -> Array:
    """Degrees between the rows of ``change`` and of ``normals``, whichever way these point, (points,).

    By its tangent, which is accurate for small angles, where arccos is not.
    """
    size = np.abs(normals).max(axis=1, keepdims=True)
    v = normals / np.where(size > 0, size, 1.0)  # so that no square underflows
    along, squared = (change * v).sum(axis=1), (v * v).sum(axis=1)
    across = np.linalg.norm(change - (along / np.where(squared > 0, squared, 1.0))[:, None] * v, axis=1)
    return np.where(squared > 0, np.degrees(np.arctan2(across, np.abs(along) / np.sqrt(np.maximum(squared, 1.0)))), 0.0)
