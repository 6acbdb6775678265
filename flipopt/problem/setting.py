"""What flip problems share: everything but the input and the classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats, as_sequence, one_of, rectangular
from flipopt.common.errors import InputError
from flipopt.common.intervals import bounds_of, pair_of
from flipopt.networks.protocol import Network, Outputs
from flipopt.problem.constraints import Constraint, LinearConstraint, LinearRows, NonlinearConstraint

NORMS = (1, 2, np.inf)


@dataclass(frozen=True, eq=False)
class Setting:
    """The network, how distances are measured, and which points are allowed.

    Attributes
    ----------
    network
        In float64 (float32 parameters are kept exactly).
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
    norm: float = 2
    weights: Array = field(default_factory=lambda: np.ones(()))
    lower: Array = field(default_factory=lambda: np.array(-np.inf))
    upper: Array = field(default_factory=lambda: np.array(np.inf))
    frozen: Array = field(default_factory=lambda: np.zeros((), dtype=bool))
    constraints: tuple[Constraint, ...] = ()
    outputs: Outputs = "logits"

    def __post_init__(self) -> None:
        n = self.network.n_inputs
        lower, upper = bounds_of(self.lower, self.upper, n, ("bounds (lower)", "bounds (upper)"))
        one_of(self.outputs, ("logits", "probabilities"), "outputs")
        values: dict[str, Any] = {
            "network": in_float64(self.network),
            "lower": lower,
            "upper": upper,
            "frozen": mask_of(self.frozen, n, "frozen"),
            "weights": _weights(self.weights, n, self.norm),
            "constraints": _fitting(self.constraints, n),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.frozen.all():
            raise InputError("frozen: expected at least one feature that may change, found none")

    @classmethod
    def of(
        cls,
        network: Network,
        bounds: tuple[ArrayLike | None, ArrayLike | None] | None = None,
        frozen: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        norm: float = 2,
        constraints: Constraint | Sequence[Constraint] = (),
        outputs: Outputs = "logits",
    ) -> Setting:
        """From the arguments of the public verbs, where None stands for none."""
        low, high = pair_of(bounds)
        if isinstance(constraints, LinearConstraint | NonlinearConstraint):
            constraints = (constraints,)
        constraints = as_sequence(constraints, "constraints", "LinearConstraint or NonlinearConstraint")
        return cls(
            network,
            norm,
            as_floats(1.0 if weights is None else weights, "weights"),
            rectangular(low, "bounds (lower)", "numbers"),
            rectangular(high, "bounds (upper)", "numbers"),
            rectangular(False if frozen is None else frozen, "frozen", "a mask or indices"),
            constraints,
            outputs,
        )

    @cached_property
    def free(self) -> Array:
        """Indices of the features that may change."""
        return np.flatnonzero(~self.frozen)

    @cached_property
    def scale(self) -> Array:
        """What solvers multiply the features by, (n_inputs,), so that a unit is of the same weight in all of them.

        The weights say what counts as the same change of two features, whatever their units: u = sqrt(w) x has a
        spherical objective. The nearest powers of two do as well, and by them u / scale is x again to the last digit.
        """
        return np.asarray(np.exp2(np.round(np.log2(self.weights) / 2)))

    @cached_property
    def bounded(self) -> bool:
        """Whether a feature that may change has a bound."""
        free = ~self.frozen
        return bool(np.isfinite(self.lower[free]).any() or np.isfinite(self.upper[free]).any())

    @cached_property
    def linear(self) -> LinearRows:
        """The linear ones of the user's constraints."""
        return LinearRows.of(self.constraints, self.network.n_inputs)

    @cached_property
    def unrestricted(self) -> bool:
        """Whether every feature may take any value: no bounds, nothing frozen, no further constraints."""
        return not (self.bounded or self.frozen.any() or self.constraints)

    def clip(self, X_hat: Array, X: Array) -> Array:
        """``X_hat``, (n_inputs,) or a row a problem, put within the bounds, and frozen features put back to X."""
        return np.where(self.frozen, X, np.clip(X_hat, self.lower, self.upper))

    def distance(self, X_hat: Array, X: Array) -> Any:
        """d(x_hat, x) in the norm: a number, or one a row."""
        return self.length(X_hat - X)

    def length(self, change: Array) -> Any:
        """Of a change (n_inputs,), or of one a row, in the norm."""
        if self.norm == 2:
            return np.sqrt((self.weights * change**2).sum(axis=-1))
        return np.linalg.norm(change, ord=self.norm, axis=-1)

    def dual_length(self, gradients: Array) -> Array:
        """Of gradients (rows, n_inputs) in the dual norm over the features that may change, (rows,): by how much what
        they belong to changes at most for a change of length 1."""
        G = np.where(self.frozen, 0.0, gradients) if self.frozen.any() else gradients
        if self.norm == 2:
            return np.asarray(np.linalg.norm(G / np.sqrt(self.weights), axis=-1))
        return np.asarray(np.linalg.norm(G, ord=np.inf if self.norm == 1 else 1, axis=-1))

    def warn_outside(self, X: Array, name: str) -> None:
        """Warn if some of X (rows, n_inputs) are outside the bounds: pixels in other units, for instance."""
        outside = (self.lower > X) | (self.upper < X)
        if outside.any():
            row, feature = np.argwhere(outside)[0]
            where = f"{name}[{row}, {feature}]" if name == "X" else f"{name}[{feature}]"
            warnings.warn(
                f"{name}: expected inputs within the bounds, found {where} = {X[row, feature]:.6g} outside "
                f"[{self.lower[feature]:.6g}, {self.upper[feature]:.6g}] and {int(outside.sum()) - 1} more values; "
                "flip points lie within the bounds, and distances are from the inputs as given",
                stacklevel=4,
            )

    def require_possible(self, X: Array) -> None:
        """Raise where a frozen feature of X (rows, n_inputs) is outside its bounds."""
        outside = self.frozen & ((self.lower > X) | (self.upper < X))
        if outside.any():
            row, feature = np.argwhere(outside)[0]
            where = f" in row {row}" if len(X) > 1 else ""
            raise InputError(f"frozen: feature {feature} is frozen outside its bounds{where}")


def in_float64(network: Network) -> Network:
    """A network that computes in float64 at float64 points."""
    exact: Network | None = getattr(network, "in_float64", None)
    return network.astype(np.float64) if exact is None else exact


def mask_of(features: ArrayLike, n: int, name: str) -> Array:
    """A mask (n,) from a mask or from a list of indices."""
    array = np.asarray(features)
    if array.dtype == bool and array.shape in ((), (n,)):
        return np.broadcast_to(array, (n,)).copy()
    if array.ndim == 1 and (array.size == 0 or (array.dtype.kind in "iu" and 0 <= array.min() <= array.max() < n)):
        mask = np.zeros(n, dtype=bool)
        mask[array.astype(int)] = True
        return mask
    raise InputError(f"{name}: expected a mask of shape ({n},) or indices below {n}, found {array.dtype} {array.shape}")


def _weights(weights: ArrayLike, n: int, norm: float) -> Array:
    if isinstance(norm, bool) or not isinstance(norm, int | float | np.number) or norm not in NORMS:
        raise InputError(f"norm: expected 1, 2 or inf, found {norm!r}")
    array = as_floats(weights, "weights").astype(np.float64)
    if array.shape not in ((), (n,)):
        raise InputError(f"weights: expected shape ({n},), found {array.shape}")
    if array.min() <= 0:
        raise InputError(f"weights: expected positive numbers, found {array.min()}")
    if norm != 2 and not (array == 1).all():
        raise InputError(f"weights: expected norm=2 with weights, found norm={norm}")
    return np.broadcast_to(array, (n,)).copy()


def _fitting(constraints: Sequence[Constraint], n: int) -> tuple[Constraint, ...]:
    """Constraints that fit the inputs; what functions return is known only at a point."""
    for k, constraint in enumerate(constraints):
        name = f"constraints[{k}]"
        if isinstance(constraint, LinearConstraint):
            if constraint.A.shape[1] != n:
                raise InputError(f"{name}: expected A with {n} columns, found {constraint.A.shape[1]}")
        elif not isinstance(constraint, NonlinearConstraint):
            raise InputError(
                f"{name}: expected a LinearConstraint or NonlinearConstraint, found {type(constraint).__name__}"
            )
    return tuple(constraints)
