"""The template of every solver: checks, limits, refinement and verification here, one hook in the adapters."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipProblem, Goal, LimitReached, Oracle, Setting, size_of
from flipopt.results import FlipResult, Status
from flipopt.runs.threads import one_blas_thread
from flipopt.solvers.refinement import refine
from flipopt.verification import CONFIRMED, ON_BOUNDARY, STATIONARY, Verification, verify

LATE = 1.0
"""Seconds past its limit after which a solver is said to have ignored it."""
FINISH = 0.5
"""Seconds past its limit within which what the solver left may still be refined."""


@dataclass(frozen=True)
class Capabilities:
    """What a solver can take; a problem outside it is answered with UNAVAILABLE."""

    equations: bool = True
    """Equations as such. Without them a single flip equation is still possible, as an inequality from x's side."""
    smooth_norms_only: bool = False
    """Only the 2-norm: the others' extra variables are too much for it."""
    needs_finite_bounds: bool = False
    """It searches a box."""
    is_global: bool = False
    """It looks beyond the nearest local minimum."""
    largest_n: int | None = None
    """Free features above which it is hopeless."""


class _NoPoint(Exception):  # noqa: N818 - it never leaves this file
    """An answer without a point that could be checked."""


@dataclass(frozen=True)
class Answer:
    """What an adapter returns: the solver's own words, which nobody trusts."""

    u: Array
    status: Status
    message: str
    iterations: int = 0


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """A nonlinear-programming solver. Its fields are its options; instances never change."""

    max_iter: int = 500
    """Iterations of the solver."""
    max_evaluations: int | None = None
    """Network evaluations (forward passes); None for no limit."""
    max_seconds: float | None = None
    """Wall-clock seconds; None for no limit."""
    max_bytes: int = 4 << 30
    """Memory of the solver's dense matrices; a problem that needs more is refused before it is tried."""
    tolerance: float = STATIONARY
    """Largest KKT residual, relative to the objective's gradient, of a point that is called closest."""
    refine: bool = True
    """Finish with Newton steps on the active constraints where the solver's point is close but not stationary."""

    def __post_init__(self) -> None:
        for name in ("max_iter", "max_evaluations", "max_seconds", "max_bytes", "tolerance"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name}: expected a positive number, found {value}")

    @property
    def name(self) -> str:
        """How it is called in results."""
        return type(self).__name__.lower()

    @property
    def capabilities(self) -> Capabilities:
        """What it can take."""
        return Capabilities()

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        return (type(self).__doc__ or "").strip().splitlines()[0]

    def loosened(self, tolerance: float, max_iter: int) -> Self:
        """This solver for a stage that others follow: it stops early, and nothing is refined."""
        return replace(self, refine=False, max_iter=min(self.max_iter, max_iter))

    @classmethod
    def missing(cls) -> str | None:
        """None if the solver can run here, or what to install."""
        return None

    @abstractmethod
    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        """Minimise from u0; exceptions are caught by the template."""

    def dense_numbers(self, n: int, m: int) -> int:
        """Numbers in the dense matrices that it forms for n variables and m constraints; 0 if that is no matter."""
        return 0

    def cannot(self, setting: Setting, goal: Goal | None = None) -> str | None:
        """Why this solver cannot take problems of the setting with such a goal (a flip of two classes), or None."""
        can, free = self.capabilities, setting.free
        if can.smooth_norms_only and setting.norm != 2:
            return f"{self.name} takes only norm=2"
        bounded = np.isfinite(setting.lower[free]).all() and np.isfinite(setting.upper[free]).all()
        if can.needs_finite_bounds and not bounded:
            return f"{self.name} searches a box: it needs finite bounds on every feature"
        if not can.equations and goal is not None and int(goal.equations.sum()) > 1:
            return f"{self.name} has no equations, and more than one cannot be turned into an inequality"
        if not can.equations and any((c.lower == c.upper).any() for c in setting.constraints):
            return f"{self.name} has no equations, and a constraint with equal bounds is one"
        if can.largest_n is not None and len(free) > can.largest_n:
            return f"{self.name} takes at most {can.largest_n} free features, not {len(free)}"
        n, m = size_of(setting, setting.network.n_classes - 1 if goal is None else len(goal.T))
        needed = 8 * self.dense_numbers(n, m)
        if needed > self.max_bytes:
            sizes = f"{needed / 2**30:,.1f} GiB for {n:,} variables and {m:,} constraints"
            return f"{self.name} forms dense matrices of {sizes}; max_bytes allows {self.max_bytes / 2**30:,.1f} GiB"
        return None

    @final
    def solve(
        self,
        problem: FlipProblem,
        x0: Array | None = None,
        network: Network | None = None,
        multipliers: Array | None = None,
    ) -> FlipResult:
        """Solve ``problem`` from the point ``x0`` (by default x) and check the answer.

        ``network`` is the network in its own precision, in which the two sides of the boundary are compared, and
        ``multipliers`` are those of the goal's rows (rows,) to start from, for the solvers that can. A solve that fails
        gives a result with its status; it never raises.
        """
        start = problem.x if x0 is None else as_rows(x0, problem.network.n_inputs, "x0").astype(np.float64)
        reason = self.missing() or self.cannot(problem.setting, problem.goal)
        if reason is not None:
            return self._result(problem, problem.x, Status.UNAVAILABLE, reason, None, Evaluations(), 0, 0.0)
        oracle = Oracle(problem, self.max_evaluations, self.max_seconds, multipliers)
        with one_blas_thread():
            answer = self._attempt(oracle, oracle.variables(start))
            return self._judge(oracle, answer, network)

    def _attempt(self, oracle: Oracle, u0: Array) -> Answer:
        """The solver's answer, or what stopped it."""
        try:
            return self._solve(oracle, u0)
        except LimitReached as limit:
            return Answer(oracle.last, Status.LIMIT, f"stopped after {limit}")
        except Exception as error:  # whatever a solver does, one solve must not end the run
            return Answer(oracle.last, Status.NUMERICAL_ERROR, f"{type(error).__name__}: {error}")

    def _judge(self, oracle: Oracle, answer: Answer, network: Network | None) -> FlipResult:
        """Check the point, refine it if that helps, and decide the status."""
        problem, x_hat, check = oracle.problem, oracle.problem.x, None
        try:
            x_hat, check = self._checked(oracle, answer, network)
            elapsed = time.perf_counter() - oracle.started
            status, message = self._verdict(check, answer, elapsed)
        except Exception as error:  # the network's or a user's function may fail at a solver's strange point
            elapsed = time.perf_counter() - oracle.started
            status = Status.NUMERICAL_ERROR
            fault = error if isinstance(error, _NoPoint) else f"the check failed, {type(error).__name__}: {error}"
            message = f"{fault} ({answer.message})"
        return self._result(problem, x_hat, status, message, check, oracle.evaluations, answer.iterations, elapsed)

    def _checked(self, oracle: Oracle, answer: Answer, network: Network | None) -> tuple[Array, Verification]:
        """The point of the answer, within its bounds and refined if that helps, and what the check says of it."""
        problem = oracle.problem
        if np.shape(answer.u) != (oracle.n_variables,) or not np.isfinite(answer.u).all():
            raise _NoPoint("no finite point of the right size was returned")
        u = np.asarray(answer.u, dtype=np.float64)
        x_hat = problem.clip(oracle.point(u))
        check = verify(problem, x_hat, network)
        if self.refine and not check.closest(self.tolerance):
            oracle.extend(FINISH)
            better = refine(oracle, x_hat, check)
            if better is not None:
                return better, verify(problem, better, network)
        return x_hat, check

    def _verdict(self, check: Verification, answer: Answer, elapsed: float) -> tuple[Status, str]:
        """The status that the check supports, and what to say about it."""
        if self.max_seconds is not None and elapsed > self.max_seconds + LATE:
            message = f"ignored its limit of {self.max_seconds:g} s and took {elapsed:.1f} s ({answer.message})"
            return Status.LIMIT, message
        if check.closest(self.tolerance):
            return Status.CONVERGED, answer.message
        if check.on_boundary and not check.slope_error <= CONFIRMED:
            fault = f"the gradient differs from differences of the outputs by {check.slope_error:.1e}"
            return Status.ON_BOUNDARY, f"{fault} ({answer.message})"
        if check.on_boundary:
            return Status.ON_BOUNDARY, f"KKT residual {check.kkt_residual:.1e} ({answer.message})"
        if answer.status is Status.CONVERGED:
            return Status.NUMERICAL_ERROR, f"claims success, but {_fault(check)} ({answer.message})"
        status = Status.NUMERICAL_ERROR if answer.status is Status.ON_BOUNDARY else answer.status
        return status, f"{answer.message}; {_fault(check)}"

    def _result(
        self,
        problem: FlipProblem,
        x_hat: Array,
        status: Status,
        message: str,
        check: Verification | None,
        evaluations: Evaluations,
        iterations: int,
        elapsed: float,
    ) -> FlipResult:
        distance = problem.distance(x_hat) if check is not None and check.on_boundary else np.nan
        return FlipResult(
            x_hat, distance, problem.classes, status, message, check, evaluations, iterations, elapsed, self.name
        )


def slsqp_numbers(n: int, m: int) -> int:
    """Numbers that SLSQP works with for n variables and m constraints, in the leading terms of its work space."""
    return 17 * n * n // 2 + 3 * m * n


def _fault(check: Verification) -> str:
    """The first thing the check found wrong."""
    if check.boundary_gap > ON_BOUNDARY:
        return f"the point is off the boundary by {check.boundary_gap:.1e} of its distance"
    if check.class_margin < -ON_BOUNDARY:
        return f"another class is above by {-check.class_margin:.1e} of its distance"
    if check.bound_violation > 0:
        return f"a bound is violated by {check.bound_violation:.1e}"
    return f"a constraint is violated by {check.constraint_violation:.1e}"
