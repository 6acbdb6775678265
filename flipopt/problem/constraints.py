"""Constraints that a user adds to a flip problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array, as_floats
from flipopt.common.errors import InputError
from flipopt.common.intervals import bounds_of


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """lower <= A x_hat <= upper, with A (rows, n_inputs); equal bounds make an equation, infinite ones none."""

    A: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        A = as_floats(self.A, "A").astype(np.float64)
        if A.ndim != 2 or len(A) == 0:
            raise InputError(f"A: expected shape (rows, n_inputs), found {A.shape}")
        object.__setattr__(self, "A", A)
        _set_bounds(self, len(A))


@dataclass(frozen=True, eq=False)
class NonlinearConstraint:
    """lower <= function(x_hat) <= upper.

    Attributes
    ----------
    function
        x (n_inputs,) to (rows,).
    jacobian
        x to (rows, n_inputs). It is required: flipopt does not difference what it is not told.
    lower, upper
        (rows,) or one number for all rows.
    hessian_product
        (x, v, d) to the Hessian of v . function at x times d, (n_inputs,). Only an exact Hessian asks for it.
    """

    function: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    lower: Array
    upper: Array
    hessian_product: Callable[[Array, Array, Array], Array] | None = None

    def __post_init__(self) -> None:
        for name in ("function", "jacobian"):
            if not callable(getattr(self, name)):
                raise InputError(f"{name}: expected a function of x, found {type(getattr(self, name)).__name__}")
        rows = max(np.size(self.lower), np.size(self.upper))
        _set_bounds(self, rows)


Constraint = LinearConstraint | NonlinearConstraint


@dataclass(frozen=True, eq=False)
class LinearRows:
    """A x_hat >= bound, or = bound in the rows that are equations: A (rows, n_inputs), the others (rows,)."""

    A: Array
    bound: Array
    equations: Array

    @classmethod
    def of(cls, constraints: Sequence[Constraint], n: int) -> LinearRows:
        """The finite sides of the linear ones among ``constraints``, of n inputs."""
        parts = [(np.empty((0, n)), np.empty(0), np.empty(0, dtype=bool))]
        for c in constraints:
            if isinstance(c, LinearConstraint):
                equal = c.lower == c.upper
                low, high = np.isfinite(c.lower), np.isfinite(c.upper) & ~equal
                parts += [(c.A[low], c.lower[low], equal[low]), (-c.A[high], -c.upper[high], equal[high])]
        A, bound, equations = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(A, bound, equations)


def _set_bounds(constraint: LinearConstraint | NonlinearConstraint, rows: int) -> None:
    lower, upper = bounds_of(constraint.lower, constraint.upper, rows)
    object.__setattr__(constraint, "lower", lower)
    object.__setattr__(constraint, "upper", upper)


def outside_balls(centres: Array, radius: float) -> NonlinearConstraint:
    """|x_hat - p|^2 >= radius^2 for every row p of ``centres``."""

    def function(x: Array) -> Array:
        return np.asarray(((x - centres) ** 2).sum(axis=1))

    def jacobian(x: Array) -> Array:
        return np.asarray(2 * (x - centres))

    def hessian_product(x: Array, v: Array, d: Array) -> Array:
        return np.asarray(2 * v.sum() * d)

    lower = np.full(len(centres), radius**2)
    return NonlinearConstraint(function, jacobian, lower, np.full(len(centres), np.inf), hessian_product)
