"""The nonlinear program (1)-(5) and its extensions, as immutable facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_point
from flipopt.common.errors import InputError
from flipopt.networks.protocol import Network, Outputs
from flipopt.problem.constraints import Constraint, NonlinearConstraint
from flipopt.problem.goal import Goal, flip
from flipopt.problem.setting import Setting


@dataclass(frozen=True, eq=False)
class FlipProblem:
    """minimise d(x_hat, x) such that the goal, the bounds and the user's constraints hold.

    Attributes
    ----------
    setting
        What other problems may share: network, norm, bounds, constraints. Its facts can be had from the problem too.
    x
        The given input, (n_inputs,).
    goal
        What the outputs must do at x_hat.
    """

    setting: Setting
    x: Array
    goal: Goal

    def __post_init__(self) -> None:
        x = as_point(self.x, self.network.n_inputs, "x")
        object.__setattr__(self, "x", x)
        self.setting.require_possible(x[None])
        for k, constraint in enumerate(self.constraints):
            if isinstance(constraint, NonlinearConstraint):
                _try(constraint, x, f"constraints[{k}]")

    def changed(self, **facts: Any) -> FlipProblem:
        """The same problem with other facts of its setting: ``changed(norm=1)``."""
        return replace(self, setting=replace(self.setting, **facts))

    @property
    def network(self) -> Network:
        return self.setting.network

    @property
    def norm(self) -> float:
        return self.setting.norm

    @property
    def weights(self) -> Array:
        return self.setting.weights

    @property
    def lower(self) -> Array:
        return self.setting.lower

    @property
    def upper(self) -> Array:
        return self.setting.upper

    @property
    def frozen(self) -> Array:
        return self.setting.frozen

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return self.setting.constraints

    @property
    def outputs(self) -> Outputs:
        return self.setting.outputs

    @property
    def free(self) -> Array:
        """Indices of the features that may change."""
        return self.setting.free

    @property
    def classes(self) -> tuple[int, ...]:
        return self.goal.classes

    def clip(self, x_hat: Array) -> Array:
        """``x_hat`` put within the bounds, and its frozen features put back, exactly."""
        return self.setting.clip(x_hat, self.x)

    def distance(self, x_hat: Array) -> float:
        """d(x_hat, x) in the problem's norm."""
        return float(self.setting.distance(x_hat, self.x))


def flip_problem(
    network: Network, x: ArrayLike, classes: Sequence[int], margin: float = 0.0, **options: Any
) -> FlipProblem:
    """The closest flip of x between ``classes``, all others at least ``margin`` below.

    ``options`` are those of :meth:`Setting.of`: bounds, frozen, weights, norm, constraints, outputs.
    """
    setting = Setting.of(network, **options)
    return FlipProblem(setting, as_point(x, network.n_inputs, "x"), flip(network.n_classes, classes, margin))


def _try(constraint: NonlinearConstraint, x: Array, name: str) -> None:
    """The functions give what they should at x."""
    rows = len(constraint.lower)
    value, jacobian = np.asarray(constraint.function(x)), np.asarray(constraint.jacobian(x))
    if value.shape != (rows,):
        raise InputError(f"{name}: expected function(x) of shape ({rows},), found {value.shape}")
    if jacobian.shape != (rows, len(x)):
        raise InputError(f"{name}: expected jacobian(x) of shape ({rows}, {len(x)}), found {jacobian.shape}")
