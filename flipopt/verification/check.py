"""The check of claimed flip points: what is measured, and what follows from it.

With g the gradient of the objective at x_hat and N the gradients of what is active there, a closest flip point has g in
the cone of N. The KKT residual is how far it is from that, relative to the size of g:

    min over multipliers of |g - N lam| / |g|,   signs of lam as the constraints demand.

For the squared 2-norm this is the sine of the angle between x_hat - x and the cone of normals, measured where the
weights are 1, in sqrt(w) x_hat: the units of the features do not matter. Where the network has
kinks at x_hat, it is the smaller of this and of one that holds in all the pieces that meet there (kinks.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.networks.protocol import Network, linearize_rows
from flipopt.networks.softmax import softmax, softmax_vjp
from flipopt.problem import FlipBatch, FlipProblem
from flipopt.problem.setting import Setting
from flipopt.verification import measures
from flipopt.verification.bracket import Bracket
from flipopt.verification.differences import Combination, slope_error
from flipopt.verification.kinks import explain_by_kinks
from flipopt.verification.measures import Constraints
from flipopt.verification.multipliers import Objective, Rows, stationarity
from flipopt.verification.normals import Lengths, Normals
from flipopt.verification.tolerances import CONFIRMED, ON_BOUNDARY, STATIONARY

Number = TypeVar("Number", float, Array)


@dataclass(frozen=True, eq=False)
class Measures(Generic[Number]):
    """What the check found: numbers at a point, arrays (points,) at many.

    Attributes
    ----------
    boundary_gap
        Largest violation of the goal's equations as a distance, ``|y_i - y_j| / |grad (y_i - y_j)|``, relative to the
        flip's own (normals.py has the formula).
    class_margin
        Smallest slack of the goal's inequalities, measured alike; negative if another class is above. inf if there is
        none. Slacks that are not small are measured by the largest gradient that is known.
    bound_violation, constraint_violation
        Largest excess over the bounds, and over the user's constraints relative to ``max(1, |value|)``.
    kkt_residual
        Relative distance of the objective's gradient from the cone of active normals.
    slope_error
        By how much the gradient in it differs from differences of the outputs, relative; NaN off the boundary.
    kinks
        Neurons that were given a slope between those of the two sides of their kink; 0 where the network is smooth.
    multipliers
        Of the goal's rows, (rows,) or (points, rows), for the objective as the problem states it. Of a flip: the ties
        first, then the other classes in their order.
    """

    boundary_gap: Number
    class_margin: Number
    bound_violation: Number
    constraint_violation: Number
    kkt_residual: Number
    slope_error: Number
    kinks: Number
    multipliers: Array = field(repr=False)

    @property
    def on_boundary(self) -> Any:
        """Whether every constraint holds."""
        on = (self.boundary_gap <= ON_BOUNDARY) & (self.class_margin >= -ON_BOUNDARY)
        return on & (self.bound_violation == 0) & (self.constraint_violation <= ON_BOUNDARY)

    def closest(self, tolerance: float = STATIONARY) -> Any:
        """Whether every constraint holds and the point is stationary, by a gradient that differences confirm."""
        return self.on_boundary & (self.kkt_residual <= tolerance) & (self.slope_error <= CONFIRMED)


@dataclass(frozen=True, eq=False)
class BatchVerification(Measures[Array], Columns):
    """What the check found at many points."""


@dataclass(frozen=True, eq=False)
class Verification(Measures[float]):
    """What the check found at a point, and the geometric picture of it.

    Attributes
    ----------
    angle
        Between x_hat - x and the boundary's normal, in degrees, in sqrt(w) x_hat; 0 at a closest flip with nothing else
        active.
    bracket
        A pair of points either side, if the goal is a flip, the point on the boundary, and the pair was found.
    """

    angle: float
    bracket: Bracket | None


def verify(problem: FlipProblem, x_hat: Array, network: Network | None = None) -> Verification:
    """Check the point ``x_hat`` (n_inputs,); ``network`` is the one in its own precision, for the bracket."""
    goals_at = partial(measures.one_goal, problem.goal)
    batch, normals = _check(problem.setting, problem.x[None], x_hat[None], goals_at)
    found: dict[str, Any] = {name: getattr(batch, name)[0] for name in batch.names()}
    numbers = {name: value if value.ndim else value.item() for name, value in found.items()}
    normal, tied = normals(), problem.goal.classes and numbers["boundary_gap"] <= ON_BOUNDARY
    bracket = Bracket.around(network or problem.network, x_hat, normal[0]) if tied else None
    root = np.sqrt(problem.weights)
    angle = measures.angle((root * (x_hat - problem.x))[None], normal / root).item()
    return Verification(**numbers, angle=angle, bracket=bracket)


def verify_batch(batch: FlipBatch, X_hat: Array) -> BatchVerification:
    """Check the points ``X_hat`` (problems, n_inputs)."""
    return _check(batch.setting, batch.X, X_hat, partial(measures.flips, batch))[0]


def _check(
    setting: Setting, X: Array, X_hat: Array, goals_at: Callable[[Array], Constraints]
) -> tuple[BatchVerification, Callable[[], Array]]:
    """The measures at X_hat (points, n_inputs), and, if asked for, the gradients of the goals' first rows in its shape.

    ``goals_at`` makes the goals from the outputs.
    """
    Y, pullback = linearize_rows(setting.network, X_hat)
    outputs = Y if setting.outputs == "logits" else softmax(Y)

    def weights(point: Array, T: Array) -> Array:
        """Rows T of the outputs as rows of the logits."""
        return T if setting.outputs == "logits" else softmax_vjp(outputs[point], T)

    def gradients(point: Array, T: Array) -> Array:
        return pullback(weights(point, T), point)

    def first() -> Array:
        points = np.arange(len(X_hat))
        return gradients(points, goals.row(points, 0 * points))

    goals, user, lengths = goals_at(outputs), measures.users(setting, X_hat), Lengths.at(setting, X, X_hat)
    normals, noise = Normals(setting, goals, lengths, gradients), _sizes(setting, Y, outputs)
    goals = normals.measured(goals, noise)
    doubt = np.flatnonzero(measures.boundary_gap(goals) > ON_BOUNDARY)
    noise[doubt] = np.maximum(noise[doubt], _terms(setting, X[doubt], X_hat[doubt]))
    goals = normals.measured(goals, noise)
    point, row, free, sign = goals.active()
    T = sign[:, None] * goals.row(point, row)
    V, rows = weights(point, T), Rows(point, free, sign[:, None] * normals.of(point, row))
    if setting.constraints:
        own, own_row, own_free, own_sign = user.active()
        rows = Rows.join([rows, Rows(own, own_free, own_sign[:, None] * user.row(own, own_row))])
    objective = Objective.at(setting, X, X_hat)
    residual, lam = stationarity(objective, rows)
    kinks = explain_by_kinks(setting.network, X_hat, objective, rows, V, residual, lam)
    multipliers = np.zeros(goals.values.shape)
    multipliers[point, row] = sign * lam[: len(V)]
    found = BatchVerification(
        boundary_gap=measures.boundary_gap(goals),
        class_margin=measures.class_margin(goals),
        bound_violation=measures.bound_violation(setting, X, X_hat),
        constraint_violation=measures.constraint_violation(user),
        kkt_residual=residual,
        slope_error=np.full(len(X_hat), np.nan),
        kinks=kinks,
        multipliers=multipliers,
    )
    there = np.flatnonzero(found.on_boundary)
    if len(there):
        v, G = _combined(rows.take(slice(0, len(T))), T, lam[: len(T)], len(X_hat))
        at = Combination.of(X_hat, v, outputs, G, lengths, noise).take(there)
        found.slope_error[there] = slope_error(setting, at)
    return found, first


def _sizes(setting: Setting, Y: Array, outputs: Array) -> Array:
    """What the rounding of the outputs is relative to, (points,); a probability z = exp(y) / ... has that of y."""
    size = np.abs(outputs).max(axis=1)
    return np.asarray(size if setting.outputs == "logits" else size * (1 + np.abs(Y).max(axis=1)))


def _terms(setting: Setting, X: Array, X_hat: Array) -> Array:
    """The same, from what the outputs are sums of: they may all be small where two of them tie.

    A network that knows the size of its terms is asked; at the input x the outputs are more like their terms.
    """
    if len(X) == 0:
        return np.empty(0)
    Y = setting.network.logits(X)
    size = _sizes(setting, Y, Y if setting.outputs == "logits" else softmax(Y))
    terms = getattr(setting.network, "term_sizes", None)
    return size if terms is None or setting.outputs != "logits" else np.maximum(size, terms(X_hat))


def _combined(rows: Rows, T: Array, lam: Array, total: int) -> tuple[Array, Array]:
    """What the multipliers say of the outputs, (points, n_classes), and its gradient, (points, n_inputs).

    Where they say nothing, because x_hat is x or no row explains anything, every active row counts as 1.
    """
    silent = np.bincount(rows.point, lam != 0, minlength=total) == 0
    share = np.where(silent[rows.point], 1.0, lam)[:, None]
    v, G = np.zeros((total, T.shape[1])), np.zeros((total, rows.gradient.shape[1]))
    np.add.at(v, rows.point, share * T)
    np.add.at(G, rows.point, share * rows.gradient)
    return v, G
