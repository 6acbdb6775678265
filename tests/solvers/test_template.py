"""Whatever a solver does or claims, the template says what really happened."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

import flipopt as fo
from flipopt.problem import Oracle
from flipopt.solvers import Answer, Ipopt, Nlopt, Scipy, Solver, as_solver, installed, ipopt, nlopt, scipy
from flipopt.solvers import template as base
from tests.cases import linear, moons

PROBLEM = fo.flip_problem(linear(np.array([3.0, 4.0])), np.array([3.0, 4.0]), (0, 1))  # 5 from the boundary, at 0
GOOD, OFF, ASIDE = np.zeros(2), np.array([1.0, 1.0]), np.array([4.0, -3.0])


@dataclass(frozen=True, kw_only=True)
class Claims(Solver):
    """Returns what it is told to."""

    point: object = None
    status: fo.Status = fo.Status.CONVERGED
    words: str = "trust me"

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        return Answer(self.point, self.status, self.words)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Raises(Solver):
    error: Exception

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        raise self.error


@dataclass(frozen=True, kw_only=True)
class Sleeps(Solver):
    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        time.sleep(base.LATE + 0.1)
        return Answer(GOOD, fo.Status.CONVERGED, "well rested")


@dataclass(frozen=True, kw_only=True)
class Loops(Solver):
    moves: bool = True

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        for k in itertools.count():
            oracle.constraints(u0 + (0.01 * (k % 100) if self.moves else 0))
        raise AssertionError


def test_a_wrong_point_that_claims_success_is_caught() -> None:
    found = Claims(point=OFF).solve(PROBLEM)
    assert found.status is fo.Status.NUMERICAL_ERROR
    assert "claims success, but the point is off the boundary by 3.9e-01 of its distance (trust me)" in found.message
    assert np.isnan(found.distance)
    assert not found.success


def test_a_boundary_point_that_is_not_closest_is_not_called_closest() -> None:
    found = Claims(point=ASIDE, refine=False).solve(PROBLEM)
    assert found.status is fo.Status.ON_BOUNDARY
    assert found.message == "KKT residual 7.1e-01 (trust me)"  # the sine of 45 degrees
    assert found.distance == pytest.approx(np.sqrt(50))


@pytest.mark.parametrize("status", list(fo.Status))
def test_a_good_point_is_taken_whatever_the_solver_claims(status: fo.Status) -> None:
    found = Claims(point=GOOD, status=status).solve(PROBLEM)
    assert found.status is fo.Status.CONVERGED
    assert found.distance == pytest.approx(5)
    assert found.message == "trust me"


@pytest.mark.parametrize("status", [status for status in fo.Status if status is not fo.Status.CONVERGED])
def test_a_bad_point_keeps_the_solver_s_own_reason(status: fo.Status) -> None:
    found = Claims(point=OFF, status=status).solve(PROBLEM)
    assert found.status is (fo.Status.NUMERICAL_ERROR if status is fo.Status.ON_BOUNDARY else status)
    assert found.message == "trust me; the point is off the boundary by 3.9e-01 of its distance"


@pytest.mark.parametrize(
    "point",
    [np.array([np.nan, 0.0]), np.array([np.inf, 0.0]), np.zeros(3), np.zeros((1, 2)), np.zeros(0), None, "point"],
    ids=repr,
)
def test_no_finite_point_of_the_right_size(point: object) -> None:
    found = Claims(point=point).solve(PROBLEM)
    assert found.status is fo.Status.NUMERICAL_ERROR
    assert found.message == "no finite point of the right size was returned (trust me)"
    assert (found.x == PROBLEM.x).all()
    assert found.check is None
    assert found.multipliers.size == 0


@pytest.mark.parametrize("error", [ZeroDivisionError("oh dear"), MemoryError("too big"), fo.DerivativeError("none")])
def test_an_exception_becomes_a_message(error: Exception) -> None:
    found = Raises(error=error).solve(PROBLEM)
    assert found.status is fo.Status.NUMERICAL_ERROR
    assert f"{type(error).__name__}: {error}" in found.message


def test_a_constraint_that_fails_at_the_solver_s_point_does_not_end_the_run() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        if x[0] < 1:
            raise ValueError("not here")
        return x[:1]

    one = fo.NonlinearConstraint(function, lambda x: np.eye(2)[:1], -10.0, 10.0)
    found = Claims(point=GOOD).solve(PROBLEM.changed(constraints=(one,)))
    assert found.status is fo.Status.NUMERICAL_ERROR
    assert "ValueError: not here" in found.message


def test_a_solver_that_sleeps_past_its_limit_is_told_off() -> None:
    found = Sleeps(max_seconds=0.01).solve(PROBLEM)
    assert found.status is fo.Status.LIMIT
    assert "ignored its limit of 0.01 s and took 1." in found.message
    assert "(well rested)" in found.message


def test_an_endless_solver_is_stopped_by_its_evaluations() -> None:
    found = Loops(max_evaluations=7).solve(PROBLEM)
    assert found.status is fo.Status.LIMIT
    assert found.message.startswith("stopped after 7 evaluations; ")
    assert found.evaluations.forward == 7


@pytest.mark.parametrize("moves", [True, False])
def test_an_endless_solver_is_stopped_by_the_clock(moves: bool) -> None:
    found = Loops(max_seconds=0.1, moves=moves).solve(PROBLEM)
    assert found.status is fo.Status.LIMIT
    assert found.message.startswith("stopped after 0.1 seconds; ")
    assert found.elapsed >= 0.1


REAL = [
    Ipopt(),
    Ipopt(hessian="exact"),
    Nlopt(),
    *(Nlopt(algorithm=name) for name in nlopt.ALGORITHMS if name != "LD_SLSQP"),
    *(Scipy(method=name) for name in scipy.STATUS),
]


@pytest.mark.parametrize("solver", REAL, ids=lambda solver: solver.name)
def test_the_limit_of_evaluations_holds(solver: Solver) -> None:
    problem = fo.flip_problem(moons(), np.array([-0.5, 0.9]), (0, 1), bounds=(-4.0, 4.0))
    found = replace(solver, max_evaluations=2).solve(problem)
    assert found.evaluations.forward <= 2
    assert found.status is fo.Status.LIMIT
    assert "stopped after 2 evaluations" in found.message


@pytest.mark.parametrize("solver", REAL, ids=lambda solver: solver.name)
def test_the_limit_of_time_holds(solver: Solver) -> None:
    problem = fo.flip_problem(moons(), np.array([-0.5, 0.9]), (0, 1), bounds=(-4.0, 4.0))
    found = replace(solver, max_seconds=1e-5).solve(problem)
    assert found.status is fo.Status.LIMIT


def test_every_code_of_ipopt_has_a_status() -> None:
    codes = {0, 1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -10, -11, -12, -13, -100, -101, -102, -199}  # IpReturnCodes_inc.h
    assert set(ipopt.STATUS) == codes
    assert all(isinstance(status, fo.Status) for _, status in ipopt.STATUS.values())
    assert len(ipopt.BY_NAME) == len(codes)


def test_every_code_of_nlopt_has_a_status() -> None:
    module = pytest.importorskip("nlopt")
    reached = [f"{what}_REACHED" for what in ("STOPVAL", "FTOL", "XTOL", "MAXEVAL", "MAXTIME")]
    failed = ["FAILURE", "INVALID_ARGS", "OUT_OF_MEMORY", "ROUNDOFF_LIMITED", "FORCED_STOP"]
    names = ["SUCCESS", *reached, *failed]
    assert {getattr(module, name) for name in names} == set(nlopt.STATUS)
    assert all(isinstance(status, fo.Status) for _, status in nlopt.STATUS.values())


def test_every_algorithm_of_nlopt_exists() -> None:
    module = pytest.importorskip("nlopt")
    assert all(hasattr(module, name) for name in nlopt.ALGORITHMS)


def test_every_code_of_scipy_has_a_status() -> None:
    assert set(scipy.STATUS["SLSQP"]) >= set(range(-1, 10))
    assert set(scipy.STATUS["trust-constr"]) >= set(range(4))
    assert set(scipy.STATUS["COBYQA"]) >= set(range(7)) | {-1, -2}


def test_what_a_solver_cannot_take_is_said_and_not_tried() -> None:
    found = Nlopt(algorithm="GN_ISRES").solve(PROBLEM)
    assert found.status is fo.Status.UNAVAILABLE
    assert "needs finite bounds" in found.message
    two = fo.LinearConstraint(np.eye(2)[:1], 0.0, 0.0)
    assert "equal bounds" in str(Nlopt(algorithm="LD_MMA").cannot(PROBLEM.changed(constraints=(two,)).setting))
    assert "at most 30 free features" in str(
        Scipy(method="COBYQA").cannot(fo.flip_problem(linear(np.ones(31)), np.ones(31), (0, 1)).setting)
    )


def test_a_solver_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cyipopt", "nlopt"):
        monkeypatch.setitem(sys.modules, name, None)
    for solver in (Ipopt(backend="cyipopt"), Nlopt()):
        found = solver.solve(PROBLEM)
        assert found.status is fo.Status.UNAVAILABLE
        assert "pip install" in found.message
    lines = {line.name: line for line in installed()}
    assert not lines["nlopt"].available
    assert lines["scipy"].available


def test_bad_names_and_options_are_named() -> None:
    with pytest.raises(fo.InputError, match="solver: expected a Solver or one of ipopt, .*found 'snopt'"):
        as_solver("snopt")
    with pytest.raises(fo.InputError, match="solver: .*found 3"):
        as_solver(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="toll"):
        Ipopt(toll=1e-9)  # type: ignore[call-arg]
    with pytest.raises(fo.InputError, match="max_iter: expected a positive number, found 0"):
        Ipopt(max_iter=0)
    with pytest.raises(fo.InputError, match="max_seconds: expected a positive number, found -1"):
        Scipy(max_seconds=-1)
    with pytest.raises(fo.InputError, match="hessian: expected one of limited-memory, exact, found 'bfgs'"):
        Ipopt(hessian="bfgs")
    with pytest.raises(fo.InputError, match="algorithm: expected one of LD_SLSQP"):
        Nlopt(algorithm="LD_NOTHING")
    with pytest.raises(fo.InputError, match="method: expected one of SLSQP"):
        Scipy(method="BFGS")
    with pytest.raises(fo.InputError, match="x0: expected shape"):
        Ipopt().solve(PROBLEM, np.zeros(3))


def test_an_unknown_option_of_ipopt_is_reported_and_not_raised() -> None:
    found = Ipopt(raw_options={"no_such_option": 1}).solve(PROBLEM)
    assert found.status is fo.Status.NUMERICAL_ERROR
    assert "no_such_option" in found.message
