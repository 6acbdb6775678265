"""NLopt: local gradient methods, augmented Lagrangians, and global searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from flipopt.common.checks import Array, one_of
from flipopt.problem import Oracle
from flipopt.results import Status
from flipopt.solvers.template import Answer, Capabilities, Solver, slsqp_numbers

# nlopt_result, the codes of NLopt.
STATUS: dict[int, tuple[str, Status]] = {
    1: ("success", Status.CONVERGED),
    2: ("stopval reached", Status.ON_BOUNDARY),
    3: ("ftol reached", Status.CONVERGED),
    4: ("xtol reached", Status.CONVERGED),
    5: ("maxeval reached", Status.LIMIT),
    6: ("maxtime reached", Status.LIMIT),
    -1: ("failure", Status.NUMERICAL_ERROR),
    -2: ("invalid arguments", Status.NUMERICAL_ERROR),
    -3: ("out of memory", Status.NUMERICAL_ERROR),
    -4: ("roundoff limited", Status.NUMERICAL_ERROR),
    -5: ("forced stop", Status.LIMIT),
}


_ANYTHING = Capabilities()


@dataclass(frozen=True)
class _Algorithm:
    """What an algorithm of NLopt is and can take; a wrapped one runs inside an augmented Lagrangian."""

    summary: str
    capabilities: Capabilities = _ANYTHING
    wrapped: bool = False


# Too many variables for a global search, and a degenerate linear program stalls MMA and CCSAQ: norm 2 only.
_SEARCH = Capabilities(smooth_norms_only=True, needs_finite_bounds=True, is_global=True)
_INEQUALITIES = Capabilities(equations=False, smooth_norms_only=True)
ALGORITHMS = {
    "LD_SLSQP": _Algorithm("sequential quadratic programming"),
    "LD_MMA": _Algorithm("method of moving asymptotes", _INEQUALITIES),
    "LD_CCSAQ": _Algorithm("conservative convex separable approximations", _INEQUALITIES),
    "AUGLAG": _Algorithm("augmented Lagrangian around a local method", wrapped=True),
    "GN_ISRES": _Algorithm("global: evolution strategy", _SEARCH),
    "GN_DIRECT_L_RAND": _Algorithm("global: dividing rectangles in an augmented Lagrangian", _SEARCH, wrapped=True),
    "G_MLSL_LDS": _Algorithm("global: multi-level single linkage in an augmented Lagrangian", _SEARCH, wrapped=True),
}
FEASIBLE = 1e-10
STALLED = 1e-6
"""A constraint violated by more than this means that a run ended too early."""
RESTARTS = 5
POLISHING = 200
"""Evaluations, at least, of SLSQP after a global search."""
DUAL_EVALUATIONS = 1000
"""Of the problem that MMA and CCSAQ solve in every step."""


@dataclass(frozen=True, kw_only=True)
class Nlopt(Solver):
    """An algorithm of NLopt.

    LD_MMA and LD_CCSAQ have no equations: the flip y_i = y_j becomes y_i <= y_j, which is active at the closest point
    since x is on the other side. GN_DIRECT_L_RAND and G_MLSL_LDS have no constraints at all and run inside an augmented
    Lagrangian. Global algorithms search the box of the bounds, which must be finite, and their best point is refined.
    """

    algorithm: str = "LD_SLSQP"
    """LD_SLSQP, LD_MMA, LD_CCSAQ, AUGLAG, GN_ISRES, GN_DIRECT_L_RAND or G_MLSL_LDS."""
    inner: str = "LD_LBFGS"
    """Local algorithm inside AUGLAG, and inside G_MLSL_LDS."""
    tol: float = 1e-13
    """Relative change of the objective at which NLopt stops."""
    seed: int = 0
    """Of the random algorithms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.algorithm, tuple(ALGORITHMS), "algorithm")
        one_of(self.inner, ("LD_LBFGS", "LD_MMA", "LD_CCSAQ", "LD_SLSQP", "LD_VAR2", "LD_TNEWTON"), "inner")

    @property
    def name(self) -> str:
        return f"nlopt-{self.algorithm.lower()}"

    @property
    def summary(self) -> str:
        return ALGORITHMS[self.algorithm].summary

    @classmethod
    def missing(cls) -> str | None:
        return None if find_spec("nlopt") else "install it with: pip install nlopt"

    @property
    def capabilities(self) -> Capabilities:
        return ALGORITHMS[self.algorithm].capabilities

    def dense_numbers(self, n: int, m: int) -> int:
        # A global search is polished by SLSQP; the others take the Jacobian as a matrix.
        local = self.inner if self.algorithm == "AUGLAG" else self.algorithm
        return slsqp_numbers(n, m) if self.capabilities.is_global or local == "LD_SLSQP" else 2 * m * n

    def loosened(self, tolerance: float, max_iter: int) -> Self:
        return replace(super().loosened(tolerance, max_iter), tol=max(self.tol, tolerance**2))

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        answer = self._run(oracle, u0, self.algorithm)
        if self.capabilities.is_global:
            # A global search gives the valley, not the digits: SLSQP goes to its bottom.
            local = self._run(oracle, answer.u, "LD_SLSQP")
            message = f"{answer.message}, then {local.message}"
            return Answer(local.u, local.status, message, answer.iterations + local.iterations)
        if not self.capabilities.equations:
            # MMA and CCSAQ may shrink their steps to nothing before the constraints hold, and do better from there.
            for _ in range(RESTARTS):
                if self._feasible(oracle, answer.u):
                    break
                again = self._run(oracle, answer.u, self.algorithm)
                answer = Answer(again.u, again.status, again.message, answer.iterations + again.iterations)
        return answer

    def _feasible(self, oracle: Oracle, u: Array) -> bool:
        values = oracle.constraints(u)
        lower, upper = oracle.constraint_bounds
        return bool((values >= lower - STALLED).all() and (values <= upper + STALLED).all())

    def _run(self, oracle: Oracle, u0: Array, algorithm: str) -> Answer:
        import nlopt

        can, wrapped = ALGORITHMS[algorithm].capabilities, ALGORITHMS[algorithm].wrapped
        n = oracle.n_variables
        optimiser = nlopt.opt(nlopt.AUGLAG if wrapped else getattr(nlopt, algorithm), n)
        if wrapped:
            optimiser.set_local_optimizer(self._inner(nlopt, n))
        lower, upper = oracle.bounds
        optimiser.set_lower_bounds(lower)
        optimiser.set_upper_bounds(upper)
        optimiser.set_min_objective(lambda u, grad: _with_gradient(oracle.objective(u), oracle.gradient, u, grad))
        self._add_constraints(optimiser, oracle, can.equations)
        if not can.equations:
            # MMA and CCSAQ begin at x, where the objective is 0, and call a stalled objective convergence even while
            # the point is infeasible: the step tells better. Exact solutions of their dual problem only cost time.
            optimiser.set_xtol_rel(self.tol)
            optimiser.set_param("dual_maxeval", DUAL_EVALUATIONS)
        else:
            optimiser.set_ftol_rel(self.tol)
        polishing = POLISHING if algorithm != self.algorithm else 1
        most = 100 * self.max_iter if can.is_global else max(self.max_iter, polishing)
        optimiser.set_maxeval(most)
        if self.max_seconds is not None:
            optimiser.set_maxtime(self.max_seconds)
        nlopt.srand(self.seed)
        try:
            u = optimiser.optimize(np.clip(u0, lower, upper))
        except nlopt.RoundoffLimited:
            return Answer(oracle.last, Status.NUMERICAL_ERROR, "roundoff limited", optimiser.get_numevals())
        except RuntimeError as error:  # NLopt's generic failure; G_MLSL_LDS may end so at a good point
            return Answer(oracle.last, Status.NUMERICAL_ERROR, f"failure: {error}", optimiser.get_numevals())
        message, status = STATUS.get(optimiser.last_optimize_result(), ("unknown code", Status.NUMERICAL_ERROR))
        return Answer(np.asarray(u), status, message, optimiser.get_numevals())

    def _inner(self, nlopt: Any, n: int) -> Any:
        """The algorithm inside the augmented Lagrangian."""
        name = self.inner if self.algorithm == "AUGLAG" else self.algorithm
        local = nlopt.opt(getattr(nlopt, name), n)
        local.set_ftol_rel(self.tol)
        local.set_maxeval(self.max_iter)
        if name == "G_MLSL_LDS":
            local.set_local_optimizer(nlopt.opt(getattr(nlopt, self.inner), n))
        return local

    def _add_constraints(self, optimiser: Any, oracle: Oracle, with_equations: bool) -> None:
        """NLopt's form: equations h(u) = 0 and inequalities h(u) <= 0."""
        lower, upper = oracle.constraint_bounds
        equations = lower == upper
        below, above = np.isfinite(lower) & ~equations, np.isfinite(upper) & ~equations
        signs = [(1.0, above, upper), (-1.0, below, lower)]
        if with_equations:
            if equations.any():
                rows = _Rows(oracle, 1.0, equations, lower)
                optimiser.add_equality_mconstraint(rows, np.full(int(equations.sum()), FEASIBLE))
        elif equations.any():
            # The start tells on which side x is; the other side must be reached.
            side = np.sign((oracle.constraints(oracle.variables(oracle.problem.x)) - lower)[equations])[0] or 1.0
            signs.append((float(side), equations, lower))
        for sign, these, bound in signs:
            if these.any():
                tolerances = np.full(int(these.sum()), FEASIBLE)
                optimiser.add_inequality_mconstraint(_Rows(oracle, sign, these, bound), tolerances)


class _Rows:
    """sign * (c(u) - bound) of some rows, in the calling convention of NLopt."""

    def __init__(self, oracle: Oracle, sign: float, these: Array, bound: Array) -> None:
        self.oracle, self.sign, self.these, self.bound = oracle, sign, these, bound

    def __call__(self, result: Array, u: Array, grad: Array) -> None:
        result[:] = self.sign * (self.oracle.constraints(u) - self.bound)[self.these]
        if grad.size:
            grad[:] = self.sign * self.oracle.jacobian(u)[self.these]


def _with_gradient(value: float, gradient: Any, u: Array, grad: Array) -> float:
    if grad.size:
        grad[:] = gradient(u)
    return value
