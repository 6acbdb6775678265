"""SciPy's constrained minimisers: SLSQP, trust-constr and COBYQA."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from flipopt.common.checks import Array, one_of
from flipopt.problem import Oracle
from flipopt.results import Status
from flipopt.solvers.template import Answer, Capabilities, Solver, slsqp_numbers

# Codes of each method (scipy.optimize, OptimizeResult.status).
STATUS: dict[str, dict[int, Status]] = {
    "SLSQP": {
        -1: Status.NUMERICAL_ERROR,  # gradient evaluation required: never at the end
        0: Status.CONVERGED,
        1: Status.NUMERICAL_ERROR,  # function evaluation required
        2: Status.INFEASIBLE,  # more equality constraints than variables
        3: Status.NUMERICAL_ERROR,  # more than 3 n iterations in the least-squares subproblem
        4: Status.INFEASIBLE,  # inequality constraints incompatible
        5: Status.NUMERICAL_ERROR,  # singular matrix E
        6: Status.NUMERICAL_ERROR,  # singular matrix C
        7: Status.NUMERICAL_ERROR,  # rank-deficient equality constraints
        8: Status.NUMERICAL_ERROR,  # positive directional derivative in the line search
        9: Status.LIMIT,  # iterations
    },
    "trust-constr": {
        0: Status.LIMIT,  # evaluations
        1: Status.CONVERGED,  # gradient small
        2: Status.CONVERGED,  # step small
        3: Status.LIMIT,  # stopped by the callback
        4: Status.INFEASIBLE,  # constraint violation exceeds the tolerance
    },
    "COBYQA": {
        0: Status.CONVERGED,  # smallest trust region reached
        1: Status.CONVERGED,  # target value reached
        2: Status.NUMERICAL_ERROR,  # all variables fixed
        3: Status.LIMIT,  # stopped by the callback
        4: Status.ON_BOUNDARY,  # feasible point found
        5: Status.LIMIT,  # evaluations
        6: Status.LIMIT,  # iterations
        -1: Status.NUMERICAL_ERROR,  # bounds infeasible
        -2: Status.NUMERICAL_ERROR,  # linear algebra
    },
}
DERIVATIVE_FREE_N = 30
TINY_BARRIER = 1e-10


@dataclass(frozen=True, kw_only=True)
class Scipy(Solver):
    """A method of scipy.optimize.minimize."""

    method: str = "SLSQP"
    """SLSQP, trust-constr or COBYQA (no derivatives; a few dozen features at most)."""
    tol: float = 1e-12
    """The method's own tolerance."""
    raw_options: Mapping[str, Any] = field(default_factory=dict)
    """Any other options of the method, by SciPy's names."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.method, tuple(STATUS), "method")

    @property
    def name(self) -> str:
        return f"scipy-{self.method.lower()}"

    @property
    def summary(self) -> str:
        return {
            "SLSQP": "sequential quadratic programming",
            "trust-constr": "trust region, interior point for inequalities",
            "COBYQA": "trust region without derivatives, for a few features",
        }[self.method]

    @property
    def capabilities(self) -> Capabilities:
        # The slacks of trust-constr's barrier stay at 1e-7, one a feature in the smooth form of the 1-norm: too far.
        return Capabilities(
            smooth_norms_only=self.method == "trust-constr",
            largest_n=DERIVATIVE_FREE_N if self.method == "COBYQA" else None,
        )

    def dense_numbers(self, n: int, m: int) -> int:
        if self.method == "trust-constr":
            return (4 * n + m) * n  # the Hessians of objective and constraints, their sum, and the projections
        return slsqp_numbers(n, m) if self.method == "SLSQP" else 0

    def loosened(self, tolerance: float, max_iter: int) -> Self:
        return replace(super().loosened(tolerance, max_iter), tol=max(self.tol, tolerance**2))

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        found, before = self._minimize(oracle, u0, self._options()), 0
        if self.method == "trust-constr":
            # It stops at gtol whatever its barrier is, 1e-5 off the active constraints: once more with a tiny barrier.
            before = int(found.nit)
            tiny = {"initial_barrier_parameter": TINY_BARRIER, "initial_barrier_tolerance": TINY_BARRIER}
            found = self._minimize(oracle, np.asarray(found.x), tiny | self._options())
        status = STATUS[self.method].get(int(found.status), Status.NUMERICAL_ERROR)
        return Answer(np.asarray(found.x), status, str(found.message), before + int(found.get("nit", 0)))

    def _minimize(self, oracle: Oracle, u0: Array, options: dict[str, Any]) -> Any:
        from scipy.optimize import Bounds, minimize

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of is in the status, or found by the check
            return minimize(
                oracle.objective,
                u0,
                method=self.method,
                jac=None if self.method == "COBYQA" else oracle.gradient,
                hess=self._objective_hessian(oracle),
                bounds=Bounds(*oracle.bounds),
                constraints=self._constraints(oracle),
                options=options,
            )

    def _options(self) -> dict[str, Any]:
        many = 20 * self.max_iter
        own = {
            "SLSQP": {"ftol": self.tol, "maxiter": self.max_iter},
            "trust-constr": {"gtol": self.tol, "xtol": self.tol, "barrier_tol": self.tol, "maxiter": self.max_iter},
            "COBYQA": {"final_tr_radius": max(self.tol, 1e-10), "maxiter": many, "maxfev": many},
        }
        return own[self.method] | dict(self.raw_options)

    def _objective_hessian(self, oracle: Oracle) -> Any:
        if self.method != "trust-constr":
            return None
        none = np.zeros(oracle.n_constraints)
        return lambda u: oracle.hessian(u, none)

    def _constraints(self, oracle: Oracle) -> Any:
        """Equations and inequalities as dictionaries for SLSQP, a NonlinearConstraint for the others."""
        lower, upper = oracle.constraint_bounds
        if self.method != "SLSQP":
            from scipy.optimize import BFGS, NonlinearConstraint

            first = {} if self.method == "COBYQA" else {"jac": oracle.jacobian, "hess": BFGS()}
            return NonlinearConstraint(oracle.constraints, lower, upper, **first)
        equations = lower == upper
        below, above = np.isfinite(lower) & ~equations, np.isfinite(upper) & ~equations
        rows = [("eq", equations, 1.0, lower), ("ineq", below, 1.0, lower), ("ineq", above, -1.0, upper)]
        return [
            {
                "type": kind,
                "fun": lambda u, these=these, sign=sign, bound=bound: sign * (oracle.constraints(u) - bound)[these],
                "jac": lambda u, these=these, sign=sign: sign * oracle.jacobian(u)[these],
            }
            for kind, these, sign, bound in rows
            if these.any()
        ]
