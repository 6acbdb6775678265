"""The nonlinear program (1)-(5) and its extensions, as immutable facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats, as_rows, one_of
from flipopt.common.errors import InputError
from flipopt.networks.protocol import Network, Outputs
from flipopt.problem.constraints import Constraint, LinearConstraint, NonlinearConstraint, bounds_of
from flipopt.problem.goal import Goal, flip

NORMS = (1, 2, np.inf)


@dataclass(frozen=True, eq=False)
class FlipProblem:
    """minimise d(x_hat, x) such that the goal, the bounds and the user's constraints hold.

    Attributes
    ----------
    network
        In float64 (float32 parameters are kept exactly).
    x
        The given input, (n_inputs,).
    goal
        What the outputs must do at x_hat.
    norm
        1, 2 or inf. The 2-norm is minimised squared: the distance itself has no derivative at x_hat = x.
    weights
        (n_inputs,) positive weights of a weighted 2-norm, sqrt(sum w (x_hat - x)^2); all 1 by default.
    lower, upper
        Bounds on x_hat, (n_inputs,); infinite where there are none.
    frozen
        (n_inputs,) bool: features that keep their value. They are no variables of the problem.
    constraints
        Linear and nonlinear constraints of the user.
    outputs
        Whether the goal speaks of logits or of probabilities.
    """

    network: Network
    x: Array
    goal: Goal
    norm: float = 2
    weights: Array = field(default_factory=lambda: np.ones(()))
    lower: Array = field(default_factory=lambda: np.array(-np.inf))
    upper: Array = field(default_factory=lambda: np.array(np.inf))
    frozen: Array = field(default_factory=lambda: np.zeros((), dtype=bool))
    constraints: tuple[Constraint, ...] = ()
    outputs: Outputs = "logits"

    def __post_init__(self) -> None:
        n = self.network.n_inputs
        x = as_rows(self.x, n, "x").astype(np.float64)
        if x.ndim != 1:
            raise InputError(f"x: expected one point of shape ({n},), found {x.shape}")
        lower, upper = bounds_of(self.lower, self.upper, n, ("bounds (lower)", "bounds (upper)"))
        values: dict[str, Any] = {
            "network": in_float64(self.network),
            "x": x,
            "lower": lower,
            "upper": upper,
            "frozen": _mask(self.frozen, n),
            "weights": _weights(self.weights, n, self.norm),
            "constraints": _checked(self.constraints, x),
        }
        one_of(self.outputs, ("logits", "probabilities"), "outputs")
        for name, value in values.items():
            object.__setattr__(self, name, value)
        outside = self.frozen & ((x < lower) | (x > upper))
        if outside.any():
            raise InputError(f"frozen: feature {int(np.argmax(outside))} is frozen outside its bounds")
        if self.frozen.all():
            raise InputError("frozen: expected at least one feature that may change, found none")

    @property
    def free(self) -> Array:
        """Indices of the features that may change."""
        return np.flatnonzero(~self.frozen)

    @property
    def unrestricted(self) -> bool:
        """Whether every feature may take any value: no bounds, nothing frozen, no further constraints."""
        bounded = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
        return not (bounded or self.frozen.any() or self.constraints)

    @property
    def classes(self) -> tuple[int, ...]:
        return self.goal.classes

    def clip(self, x_hat: Array) -> Array:
        """``x_hat`` put within the bounds, and its frozen features put back, exactly."""
        return np.where(self.frozen, self.x, np.clip(x_hat, self.lower, self.upper))

    def distance(self, x_hat: Array) -> float:
        """d(x_hat, x) in the problem's norm."""
        change = x_hat - self.x
        if self.norm == 2:
            return float(np.sqrt(np.sum(self.weights * change**2)))
        return float(np.linalg.norm(change, ord=self.norm))


def flip_problem(
    network: Network,
    x: ArrayLike,
    classes: Sequence[int],
    margin: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    frozen: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: float = 2,
    constraints: Constraint | Sequence[Constraint] = (),
    outputs: Outputs = "logits",
) -> FlipProblem:
    """The closest flip of x between ``classes`` as a :class:`FlipProblem`; see there for the arguments."""
    low, high = _bounds(bounds)
    if isinstance(constraints, LinearConstraint | NonlinearConstraint):
        constraints = (constraints,)
    return FlipProblem(
        network,
        as_rows(x, network.n_inputs, "x"),
        flip(network.n_classes, classes, margin),
        norm,
        as_floats(1.0 if weights is None else weights, "weights"),
        np.asarray(low),
        np.asarray(high),
        np.asarray(False if frozen is None else frozen),
        tuple(constraints),
        outputs,
    )


def in_float64(network: Network) -> Network:
    """A network that computes in float64 at float64 points."""
    exact: Network | None = getattr(network, "in_float64", None)
    return network.astype(np.float64) if exact is None else exact


def _bounds(bounds: tuple[ArrayLike, ArrayLike] | None) -> tuple[ArrayLike, ArrayLike]:
    if bounds is None:
        return -np.inf, np.inf
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InputError(f"bounds: expected a pair (lower, upper), found {type(bounds).__name__}")
    low, high = bounds
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def _mask(frozen: ArrayLike, n: int, name: str = "frozen") -> Array:
    """A mask (n,) from a mask or from a list of indices."""
    array = np.asarray(frozen)
    if array.dtype == bool and array.shape in ((), (n,)):
        return np.broadcast_to(array, (n,)).copy()
    if array.ndim == 1 and (array.size == 0 or (array.dtype.kind in "iu" and 0 <= array.min() <= array.max() < n)):
        mask = np.zeros(n, dtype=bool)
        mask[array.astype(int)] = True
        return mask
    raise InputError(f"{name}: expected a mask of shape ({n},) or indices below {n}, found {array.dtype} {array.shape}")


def _weights(weights: ArrayLike, n: int, norm: float) -> Array:
    if norm not in NORMS:
        raise InputError(f"norm: expected 1, 2 or inf, found {norm}")
    array = as_floats(weights, "weights").astype(np.float64)
    if array.shape not in ((), (n,)):
        raise InputError(f"weights: expected shape ({n},), found {array.shape}")
    if array.min() <= 0:
        raise InputError(f"weights: expected positive numbers, found {array.min()}")
    if norm != 2 and not (array == 1).all():
        raise InputError(f"weights: expected norm=2 with weights, found norm={norm}")
    return np.broadcast_to(array, (n,)).copy()


def _checked(constraints: Sequence[Constraint], x: Array) -> tuple[Constraint, ...]:
    """Every constraint fits the inputs; functions are tried once at x."""
    for k, constraint in enumerate(constraints):
        name = f"constraints[{k}]"
        if isinstance(constraint, LinearConstraint):
            if constraint.A.shape[1] != len(x):
                raise InputError(f"{name}: expected A with {len(x)} columns, found {constraint.A.shape[1]}")
        elif isinstance(constraint, NonlinearConstraint):
            rows = len(constraint.lower)
            value, jacobian = np.asarray(constraint.function(x)), np.asarray(constraint.jacobian(x))
            if value.shape != (rows,):
                raise InputError(f"{name}: expected function(x) of shape ({rows},), found {value.shape}")
            if jacobian.shape != (rows, len(x)):
                raise InputError(f"{name}: expected jacobian(x) of shape ({rows}, {len(x)}), found {jacobian.shape}")
        else:
            raise InputError(
                f"{name}: expected a LinearConstraint or NonlinearConstraint, found {type(constraint).__name__}"
            )
    return tuple(constraints)
