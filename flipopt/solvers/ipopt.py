"""IPOPT, the interior-point solver of Waechter and Biegler: from casadi's wheel, or through cyipopt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from flipopt.common.checks import Array, one_of, optional_package
from flipopt.problem import LimitReached, Oracle
from flipopt.results import Status
from flipopt.solvers.template import Answer, Solver

# IpReturnCodes of IPOPT, by the name that casadi gives and the number that cyipopt gives.
STATUS: dict[int, tuple[str, Status]] = {
    0: ("Solve_Succeeded", Status.CONVERGED),
    1: ("Solved_To_Acceptable_Level", Status.CONVERGED),
    2: ("Infeasible_Problem_Detected", Status.INFEASIBLE),
    3: ("Search_Direction_Becomes_Too_Small", Status.NUMERICAL_ERROR),
    4: ("Diverging_Iterates", Status.NUMERICAL_ERROR),
    5: ("User_Requested_Stop", Status.LIMIT),
    6: ("Feasible_Point_Found", Status.ON_BOUNDARY),
    -1: ("Maximum_Iterations_Exceeded", Status.LIMIT),
    -2: ("Restoration_Failed", Status.INFEASIBLE),
    -3: ("Error_In_Step_Computation", Status.NUMERICAL_ERROR),
    -4: ("Maximum_CpuTime_Exceeded", Status.LIMIT),
    -5: ("Maximum_WallTime_Exceeded", Status.LIMIT),
    -10: ("Not_Enough_Degrees_Of_Freedom", Status.NUMERICAL_ERROR),
    -11: ("Invalid_Problem_Definition", Status.NUMERICAL_ERROR),
    -12: ("Invalid_Option", Status.NUMERICAL_ERROR),
    -13: ("Invalid_Number_Detected", Status.NUMERICAL_ERROR),
    -100: ("Unrecoverable_Exception", Status.NUMERICAL_ERROR),
    -101: ("NonIpopt_Exception_Thrown", Status.NUMERICAL_ERROR),
    -102: ("Insufficient_Memory", Status.NUMERICAL_ERROR),
    -199: ("Internal_Error", Status.NUMERICAL_ERROR),
}
BY_NAME = dict(STATUS.values())
WARM_START = {
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-8,
    "warm_start_bound_frac": 1e-8,
    "warm_start_slack_bound_push": 1e-8,
    "warm_start_slack_bound_frac": 1e-8,
    "mu_init": 1e-4,
}
"""Start from given multipliers, with a small barrier: the point is nearly a solution."""
MANY_ROWS = {
    # The goal's gradients and the one s of the inf-norm are dense rows. MUMPS pairs others with them before it orders,
    # and fills in: no pairing, and an ordering that puts dense rows last.
    "mumps_permuting_scaling": 0,
    "mumps_pivot_order": 6,
    # Many features change by next to nothing, and all rows can be satisfied strictly.
    "bound_relax_factor": 0.0,
}
"""For the 1- and inf-norm, which have two rows a feature."""


@dataclass(frozen=True, kw_only=True)
class Ipopt(Solver):
    """IPOPT."""

    tol: float = 1e-9
    """IPOPT's own convergence tolerance."""
    hessian: str = "limited-memory"
    """limited-memory (L-BFGS) or exact (analytic; a matrix of the size of the free features at every iteration)."""
    backend: str = "casadi"
    """casadi (comes with flipopt) or cyipopt (an extra)."""
    raw_options: Mapping[str, Any] = field(default_factory=dict)
    """Any other options of IPOPT, by its own names."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.hessian, ("limited-memory", "exact"), "hessian")
        one_of(self.backend, ("casadi", "cyipopt"), "backend")

    @property
    def name(self) -> str:
        exact = "-exact" if self.hessian == "exact" else ""
        return f"ipopt{exact}" if self.backend == "casadi" else f"cyipopt{exact}"

    @property
    def summary(self) -> str:
        return f"interior point, {self.hessian} Hessian"

    def missing(self) -> str | None:  # type: ignore[override]
        if find_spec(self.backend) is not None:
            return None
        if self.backend == "casadi":
            return "install it with: pip install casadi"
        return "install it with: pip install 'flipopt[cyipopt]' (needs the IPOPT library and a compiler)"

    def dense_numbers(self, n: int, m: int) -> int:
        return 4 * n * n if self.hessian == "exact" else 0  # the Hessian, how it is made, and its factors

    def loosened(self, tolerance: float, max_iter: int) -> Self:
        # IPOPT scales its dual residual by the multipliers, so the constraints get a tolerance of their own.
        loose = {"constr_viol_tol": tolerance / 10, "dual_inf_tol": 1e2, "compl_inf_tol": 10 * tolerance}
        solver = super().loosened(tolerance, max_iter)
        return replace(solver, tol=max(self.tol, tolerance), raw_options=loose | dict(self.raw_options))

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "hessian_approximation": self.hessian,
            "print_level": 0,
            "sb": "yes",
            # x is often a bound's neighbour: do not push the start away from it.
            "bound_push": 1e-8,
            "bound_frac": 1e-8,
            "honor_original_bounds": "yes",
        }
        if self.max_seconds is not None:
            options["max_cpu_time"] = float(self.max_seconds) * 4  # cores count; the oracle keeps the wall clock
        return options | dict(self.raw_options)

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        options = _for_norm(oracle, u0) | self._options()
        if oracle.multipliers is not None:
            options = WARM_START | options
        return (_by_casadi if self.backend == "casadi" else _by_cyipopt)(oracle, u0, options)


def _for_norm(oracle: Oracle, u0: Array) -> dict[str, Any]:
    """Options that depend on the norm.

    The barrier mu, 1e-10 at the end, adds mu for every row to the objective, whatever the distance is. So with many
    rows, or a short distance, the objective is scaled up until that is 1e-10 of the distance of the start.
    """
    if oracle.problem.norm == 2:
        # the point must satisfy the constraints themselves, not constraints relaxed by 1e-8, which is our tolerance
        return {"bound_relax_factor": 1e-10}
    distance = oracle.objective(u0)
    return MANY_ROWS | {"obj_scaling_factor": max(1.0, oracle.n_free / distance) if distance > 0 else 1.0}


class _Stop:
    """Turns a limit or an error into NaN values, because exceptions cannot cross the solver, and remembers it."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def guard(self, function: Callable[[], Any], shape: tuple[int, ...]) -> Any:
        if self.error is None:
            try:
                return function()
            except Exception as error:  # casadi would print it and go on
                self.error = error
        return np.full(shape, np.nan)


def _by_casadi(oracle: Oracle, u0: Array, options: dict[str, Any]) -> Answer:
    import casadi

    stop = _Stop()
    parts = _casadi_functions(casadi, oracle, stop, options["hessian_approximation"] == "exact")
    settings = {f"ipopt.{key}": value for key, value in options.items()}
    settings |= {"print_time": False, "show_eval_warnings": False, "error_on_fail": False, "calc_lam_p": False}
    settings |= {"calc_multipliers": False, "no_nlp_grad": True} | parts.options
    solver = casadi.nlpsol("flip", "ipopt", parts.nlp, settings)
    lower, upper = oracle.bounds
    c_lower, c_upper = oracle.constraint_bounds
    found = solver(x0=u0, lbx=lower, ubx=upper, lbg=c_lower, ubg=c_upper, lam_g0=_start_multipliers(oracle))
    stats = solver.stats()
    u = np.asarray(found["x"]).reshape(-1)
    if stop.error is not None:
        if isinstance(stop.error, LimitReached):
            return Answer(oracle.last, Status.LIMIT, f"stopped after {stop.error}", int(stats.get("iter_count", 0)))
        raise stop.error
    name = str(stats["return_status"])
    return Answer(u, BY_NAME.get(name, Status.NUMERICAL_ERROR), name, int(stats.get("iter_count", 0)))


def _start_multipliers(oracle: Oracle) -> Array:
    """Of every row, in IPOPT's sign: its Lagrangian is f + lam . c, ours f - lam . c."""
    lam = np.zeros(oracle.n_constraints)
    if oracle.multipliers is not None:
        lam[: len(oracle.multipliers)] = -oracle.multipliers
    return lam


@dataclass(frozen=True)
class _Parts:
    nlp: Any
    options: dict[str, Any]


def _casadi_functions(casadi: Any, oracle: Oracle, stop: _Stop, exact: bool) -> _Parts:
    """The oracle as the casadi functions that nlpsol asks for."""
    n, m = oracle.n_variables, oracle.n_constraints
    dense = casadi.Sparsity.dense
    rows, columns = oracle.structure
    order = np.lexsort((rows, columns))  # casadi's: column by column
    begin = np.searchsorted(columns[order], np.arange(n + 1))
    sparsity = casadi.Sparsity(m, n, begin.tolist(), rows[order].tolist())  # lists: it reads arrays thirty times slower

    class Part(casadi.Callback):  # type: ignore[misc]
        """One function of casadi's NLP interface."""

        def __init__(
            self, name: str, inputs: list[Any], outputs: list[Any], function: Callable[..., list[Any]]
        ) -> None:
            casadi.Callback.__init__(self)
            self._inputs, self._outputs, self._function = inputs, outputs, function
            self.construct(name, {})

        def get_n_in(self) -> int:
            return len(self._inputs)

        def get_n_out(self) -> int:
            return len(self._outputs)

        def get_name_in(self, k: int) -> str:
            return str(self._inputs[k][0])

        def get_name_out(self, k: int) -> str:
            return str(self._outputs[k][0])

        def get_sparsity_in(self, k: int) -> Any:
            return self._inputs[k][1]

        def get_sparsity_out(self, k: int) -> Any:
            return self._outputs[k][1]

        def eval(self, arguments: list[Any]) -> list[Any]:
            return self._function(*(np.asarray(argument).reshape(-1) for argument in arguments))

    x, p = ("x", dense(n, 1)), ("p", dense(0, 1))
    f, g = ("f", dense(1, 1)), ("g", dense(m, 1))

    def values(u: Array, _: Array) -> list[Any]:
        return [oracle.objective(u), stop.guard(lambda: oracle.constraints(u), (m,))]

    def gradient(u: Array, _: Array) -> list[Any]:
        return [oracle.objective(u), oracle.gradient(u)]

    def jacobian(u: Array, _: Array) -> list[Any]:
        values = stop.guard(lambda: oracle.constraints(u), (m,))
        entries = stop.guard(lambda: oracle.jacobian_entries(u), order.shape)
        return [values, casadi.DM(sparsity, entries[order])]

    def hessian(u: Array, _: Array, factor: Array, lam: Array) -> list[Any]:
        H = stop.guard(lambda: oracle.hessian(u, lam, float(factor[0])), (n, n))
        return [casadi.triu(casadi.DM(H))]

    nlp = Part("nlp", [x, p], [f, g], values)
    grad_f = Part("nlp_grad_f", [x, p], [f, ("grad_f_x", dense(n, 1))], gradient)
    jac_g = Part("nlp_jac_g", [x, p], [g, ("jac_g_x", sparsity)], jacobian)
    options: dict[str, Any] = {"grad_f": grad_f, "jac_g": jac_g}
    if exact:
        upper = casadi.Sparsity.upper(n)
        inputs = [x, p, ("lam_f", dense(1, 1)), ("lam_g", dense(m, 1))]
        options["hess_lag"] = Part("nlp_hess_l", inputs, [("triu_hess_gamma_x_x", upper)], hessian)
    return _Parts(nlp, options)


def _by_cyipopt(oracle: Oracle, u0: Array, options: dict[str, Any]) -> Answer:
    cyipopt = optional_package("cyipopt", "cyipopt", "this backend of Ipopt")
    n, m, stop = oracle.n_variables, oracle.n_constraints, _Stop()
    iterations = 0

    class Callbacks:
        def objective(self, u: Array) -> float:
            return oracle.objective(u)

        def gradient(self, u: Array) -> Array:
            return oracle.gradient(u)

        def constraints(self, u: Array) -> Array:
            values: Array = stop.guard(lambda: oracle.constraints(u), (m,))
            return values

        def jacobian(self, u: Array) -> Array:
            values: Array = stop.guard(lambda: oracle.jacobian_entries(u), oracle.structure[0].shape)
            return values

        def jacobianstructure(self) -> tuple[Array, Array]:
            return oracle.structure

        def intermediate(self, mode: int, iteration: int, *_: Any) -> bool:
            nonlocal iterations
            iterations = iteration
            return stop.error is None

    callbacks = Callbacks()
    if options["hessian_approximation"] == "exact":
        triangle = np.tril_indices(n)

        def hessian(u: Array, lam: Array, factor: float) -> Array:
            values: Array = stop.guard(lambda: oracle.hessian(u, lam, factor), (n, n))
            return values[triangle]

        callbacks.hessian = hessian  # type: ignore[attr-defined]
        callbacks.hessianstructure = lambda: triangle  # type: ignore[attr-defined]
    lower, upper = oracle.bounds
    c_lower, c_upper = oracle.constraint_bounds
    problem = cyipopt.Problem(n=n, m=m, problem_obj=callbacks, lb=lower, ub=upper, cl=c_lower, cu=c_upper)
    for key, value in options.items():
        problem.add_option(key, value)
    u, info = problem.solve(u0, lagrange=_start_multipliers(oracle))
    if stop.error is not None:
        if isinstance(stop.error, LimitReached):
            return Answer(oracle.last, Status.LIMIT, f"stopped after {stop.error}", iterations)
        raise stop.error
    name, status = STATUS.get(int(info["status"]), ("unknown code", Status.NUMERICAL_ERROR))
    return Answer(np.asarray(u), status, name, iterations)
