"""The normal form that every solver sees, its calls counted, cached by the point and stopped at their limits.

    minimise f(u)   such that   lower_c <= c(u) <= upper_c,   lower <= u <= upper

The variables u are the free features of x_hat in units of their weights, scale * x_hat (Setting.scale), followed for
the 1- and inf-norm by variables s of their smooth form:

    norm 2     f = sum w (x_hat - x)^2
    norm 1     f = sum s,   s_k >= |x_hat_k - x_k|       one s a free feature
    norm inf   f = s,       s >= |x_hat_k - x_k|         one s for all

The rows of s are sparse, and as many as features: their Jacobian is never formed unless a solver asks for all of it
as a dense matrix.

The goal's rows are multiplied by a power of two that makes them of ordinary size (``goal_scale``): solvers have
absolute tolerances, and logits may have any size.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import DerivativeError
from flipopt.networks.protocol import Pullback
from flipopt.networks.softmax import softmax, softmax_vjp
from flipopt.problem.constraints import Constraint, LinearConstraint, NonlinearConstraint
from flipopt.problem.flip import FlipProblem
from flipopt.problem.setting import Setting

ORDINARY = 16.0
"""Size of logits that solvers are used to."""


class LimitReached(Exception):  # noqa: N818 - it is no error
    """An evaluation was asked for after the limit; the message says which."""


@dataclass
class Evaluations:
    """Network evaluations at single points: forward passes, backward passes (one a row), Hessian products."""

    forward: int = 0
    backward: int = 0
    hessian: int = 0

    @property
    def total(self) -> int:
        return self.forward + self.backward + self.hessian

    def __add__(self, other: Evaluations) -> Evaluations:
        return Evaluations(self.forward + other.forward, self.backward + other.backward, self.hessian + other.hessian)


class Oracle:
    """Objective and constraints of a :class:`FlipProblem` with derivatives.

    Parameters
    ----------
    problem
        The problem.
    max_evaluations
        Forward passes after which every further one raises :class:`LimitReached`.
    max_seconds
        The same for wall-clock time since the oracle was made.
    multipliers
        Of the goal's rows, (rows,), as :class:`~flipopt.Verification` gives them, if a solution of a problem nearby is
        the starting point; a solver that can use them does.
    """

    def __init__(
        self,
        problem: FlipProblem,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        multipliers: Array | None = None,
    ) -> None:
        self.problem = problem
        self.scale = problem.setting.scale[problem.free]
        self._multipliers = multipliers
        self.evaluations = Evaluations()
        self.started = time.perf_counter()
        self._max_evaluations, self._max_seconds = max_evaluations, max_seconds
        self._point: tuple[Array, Array, Pullback] | None = None
        self._dense: Array | None = None
        self.n_free = len(problem.free)
        self.n_variables, self.n_constraints = size_of(problem.setting, len(problem.goal.T))
        self.last = self.variables(problem.x)
        self._free = problem.free
        self._linear = [c for c in problem.constraints if isinstance(c, LinearConstraint)]
        self._nonlinear = [c for c in problem.constraints if isinstance(c, NonlinearConstraint)]

    # The shape of the problem

    @cached_property
    def goal_scale(self) -> float:
        """The power of two that the goal's rows are multiplied by; 1 for probabilities, which have their size."""
        problem = self.problem
        return logit_scale(problem.network.logits(problem.x)) if problem.outputs == "logits" else 1.0

    @cached_property
    def T(self) -> Array:
        """The goal's rows as solvers see them, (rows, n_classes)."""
        return self.goal_scale * self.problem.goal.T

    @property
    def multipliers(self) -> Array | None:
        """To start from, of the goal's rows as solvers see them."""
        return None if self._multipliers is None else self._multipliers / self.goal_scale

    @property
    def n_extra(self) -> int:
        """Variables that only the norm needs."""
        return self.n_variables - self.n_free

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Of the variables."""
        problem, extra = self.problem, self.n_extra
        lower = np.concatenate([self.scale * problem.lower[problem.free], np.zeros(extra)])
        return lower, np.concatenate([self.scale * problem.upper[problem.free], np.full(extra, np.inf)])

    @property
    def constraint_bounds(self) -> tuple[Array, Array]:
        """Of c(u): goal, linear, nonlinear, norm."""
        goal = self.problem.goal
        users: list[Constraint] = [*self._linear, *self._nonlinear]
        scaled = self.goal_scale * goal.lower, self.goal_scale * goal.upper
        parts = [scaled, *((c.lower, c.upper) for c in users)]
        lower, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
        x = self.problem.x[self._free]
        shift = np.concatenate([-x, x]) if self.n_extra else np.empty(0)
        return np.concatenate([lower, shift]), np.concatenate([upper, np.full(len(shift), np.inf)])

    def variables(self, x_hat: Array) -> Array:
        """u of a point x_hat, within the bounds."""
        problem = self.problem
        change = (problem.clip(x_hat) - problem.x)[problem.free]
        extra = {1: np.abs(change), 2: np.empty(0), np.inf: np.abs(change).max(keepdims=True)}[problem.norm]
        return np.concatenate([self.scale * (problem.x[problem.free] + change), extra])

    def point(self, u: Array) -> Array:
        """x_hat of the variables u."""
        x_hat = self.problem.x.copy()
        x_hat[self.problem.free] = u[: self.n_free] / self.scale
        return x_hat

    # Values and first derivatives

    def objective(self, u: Array) -> float:
        problem = self.problem
        if problem.norm == 2:
            return float(np.sum(problem.weights[self._free] * (u / self.scale - problem.x[self._free]) ** 2))
        return float(np.sum(u[self.n_free :]))

    def gradient(self, u: Array) -> Array:
        problem = self.problem
        if problem.norm == 2:
            return np.asarray(2 * problem.weights[self._free] * (u / self.scale - problem.x[self._free]) / self.scale)
        return np.concatenate([np.zeros(self.n_free), np.ones(self.n_extra)])

    def constraints(self, u: Array) -> Array:
        """c(u)."""
        outputs, _ = self._forward(u)
        x_hat = self.point(u)
        users = [c.A @ x_hat for c in self._linear] + [np.asarray(c.function(x_hat)) for c in self._nonlinear]
        return np.concatenate([self.T @ outputs, *users, self._norm_values(u)])

    def jacobian(self, u: Array) -> Array:
        """dc/du, (n_constraints, n_variables)."""
        if not self.n_extra:
            return self._dense_rows(u)
        J = np.zeros((self.n_constraints, self.n_variables))
        J[self.structure] = self.jacobian_entries(u)
        return J

    @cached_property
    def structure(self) -> tuple[Array, Array]:
        """Row and column of every entry of the Jacobian that is not always 0, (entries,) each.

        First those of the goal and of the user's constraints, row by row, dense in the features; then the norm's.
        """
        n, m = self.n_free, self.n_constraints - (2 * self.n_free if self.n_extra else 0)
        rows, columns = (index.reshape(-1) for index in np.indices((m, n)))
        if not self.n_extra:
            return rows, columns
        norm, feature = m + np.arange(2 * n), np.tile(np.arange(n), 2)
        s = n + (feature if self.problem.norm == 1 else 0 * feature)
        return np.concatenate([rows, norm, norm]), np.concatenate([columns, feature, s])

    def jacobian_entries(self, u: Array) -> Array:
        """The entries of dc/du in the order of ``structure``, (entries,)."""
        n = self.n_free if self.n_extra else 0
        return np.concatenate([self._dense_rows(u).reshape(-1), -np.ones(n), np.ones(3 * n)])

    # Second derivatives of factor f + lam . c

    def hessian_product(self, u: Array, lam: Array, d: Array, factor: float = 1.0) -> Array:
        """The Hessian of the Lagrangian times d, (n_variables,)."""
        return np.asarray(self._hessian_rows(u, lam, d[None, :], factor)[0])

    def hessian(self, u: Array, lam: Array, factor: float = 1.0) -> Array:
        """The Hessian of the Lagrangian, (n_variables, n_variables)."""
        network, free = self.problem.network, self._free
        whole = getattr(network, "hessian", None)  # a network that has the matrix at once
        H = self._hessian_rows(u, lam, np.eye(self.n_variables)[: self.n_free], factor, with_network=whole is None)
        v = self._goal_weights(lam)
        if whole is not None and np.any(v):
            self.evaluations.hessian += self.n_free
            matrix = whole(self.point(u), v, self.problem.outputs)[np.ix_(free, free)]
            H[:, : self.n_free] += matrix / np.multiply.outer(self.scale, self.scale)
        full = np.zeros((self.n_variables, self.n_variables))
        full[: self.n_free] = H
        return (full + full.T) / 2

    def _goal_weights(self, lam: Array) -> Array:
        """v such that the goal's part of lam . c is v . outputs."""
        return np.asarray(lam[: len(self.T)] @ self.T)

    def _hessian_rows(self, u: Array, lam: Array, D: Array, factor: float, with_network: bool = True) -> Array:
        """The Hessian times every row of D; ``with_network`` says whether the network's part is wanted."""
        problem, free, rows = self.problem, self._free, len(D)
        self._check_limits()
        x_hat = self.point(u)
        directions = np.zeros((rows, len(problem.x)))
        directions[:, free] = D[:, : self.n_free] / self.scale
        v = self._goal_weights(lam)
        product = np.zeros_like(directions)
        if with_network and np.any(v):
            self.evaluations.hessian += rows
            points = np.broadcast_to(x_hat, directions.shape)
            product += problem.network.hessian_product(points, v, directions, problem.outputs)
        at = len(problem.goal.T) + sum(len(c.lower) for c in self._linear)
        for c in self._nonlinear:
            weights = lam[at : at + len(c.lower)]
            at += len(c.lower)
            if c.hessian_product is None:
                raise DerivativeError("constraints: a nonlinear constraint has no hessian_product, and it was needed")
            product += np.stack([c.hessian_product(x_hat, weights, d) for d in directions])
        if problem.norm == 2:
            product += 2 * factor * problem.weights * directions
        return np.pad(product[:, free] / self.scale, ((0, 0), (0, self.n_extra)))

    # Limits

    @property
    def limit(self) -> str | None:
        """The limit that is reached, in words, or None."""
        if self._max_evaluations is not None and self.evaluations.forward >= self._max_evaluations:
            return f"{self._max_evaluations} evaluations"
        return self._late()

    @property
    def forward_left(self) -> int:
        """Forward passes until the limit."""
        if self._max_evaluations is None:
            return int(np.iinfo(np.int64).max)
        return max(0, self._max_evaluations - self.evaluations.forward)

    @property
    def deadline(self) -> float:
        """When the time is over, in seconds of ``time.perf_counter``."""
        return np.inf if self._max_seconds is None else self.started + self._max_seconds

    def count_forward(self) -> None:
        """Count a forward pass that is made elsewhere; past a limit it must not be made, and this raises."""
        self._check_limits()
        self.evaluations.forward += 1

    def extend(self, seconds: float) -> None:
        """Allow more time, to finish what the limit has stopped."""
        if self._max_seconds is not None:
            self._max_seconds += seconds

    # Behind the scenes

    def _forward(self, u: Array) -> tuple[Array, Pullback]:
        """Outputs and pullback at u; the last point is kept."""
        self._check_time()  # also at a known point: a solver may ask for it forever
        if self._point is None or not np.array_equal(self._point[0], u):
            self.count_forward()
            Y, pullback = self.problem.network.linearize(self.point(u))
            outputs = softmax(Y) if self.problem.outputs == "probabilities" else Y
            self._point, self._dense = (u.copy(), outputs, pullback), None
            self.last = u.copy()
        return self._point[1], self._point[2]

    def _check_limits(self) -> None:
        limit = self.limit
        if limit is not None:
            raise LimitReached(limit)

    def _check_time(self) -> None:
        late = self._late()
        if late is not None:
            raise LimitReached(late)

    def _late(self) -> str | None:
        if self._max_seconds is not None and time.perf_counter() - self.started > self._max_seconds:
            return f"{self._max_seconds:g} seconds"
        return None

    def _dense_rows(self, u: Array) -> Array:
        """Of the goal and of the user's constraints by the features, (rows, n_free)."""
        outputs, pullback = self._forward(u)
        if self._dense is None:
            T = self.T
            weights = softmax_vjp(outputs, T) if self.problem.outputs == "probabilities" else T
            self.evaluations.backward += len(T)
            x_hat = self.point(u)
            users = [c.A for c in self._linear] + [np.asarray(c.jacobian(x_hat)) for c in self._nonlinear]
            self._dense = np.concatenate([pullback(weights), *users])[:, self._free] / self.scale
        return self._dense

    def _norm_values(self, u: Array) -> Array:
        """s - x_hat and s + x_hat: at least -x and x, so that s -+ (x_hat - x) >= 0."""
        x_hat, s = np.split(u, [self.n_free])
        return np.concatenate([s - x_hat, s + x_hat]) if self.n_extra else s


def size_of(setting: Setting, rows: int) -> tuple[int, int]:
    """Variables and constraints of the normal form of problems whose goal has so many rows."""
    n = len(setting.free)
    extra = {1: n, 2: 0, np.inf: 1}[setting.norm]
    users = sum(len(c.lower) for c in setting.constraints)
    return n + extra, rows + users + (2 * n if extra else 0)


def logit_scale(Y: Array) -> float:
    """The power of two that gives logits Y (n_classes,), by their range, an ordinary size."""
    size = float(np.ptp(Y)) or float(np.abs(Y).max())
    return float(np.exp2(np.round(np.log2(ORDINARY / size)))) if 0 < size < np.inf else 1.0
