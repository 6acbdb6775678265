"""What an adaptive path does with stages that succeed and fail, with solvers that do as they are told.

A linear classifier has no activations, so that l(t) = t: with 10 stages the first step goes to 0.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import flipopt as fo
from flipopt.homotopy import Homotopy, StepControl, follow
from flipopt.problem import Oracle
from flipopt.solvers import Answer, Pieces, Solver, TrustRegion
from tests.cases import linear
from tests.homotopy.paths import (
    LEAD,
    OFFSET,
    A,
    X,
    assert_recorded,
    assert_speaks_of_the_trained_network,
    random_network,
)

DOUBLE = StepControl(grow=2.0, shrink=0.5, shortest=0.4)
SIDEWAYS = np.array([2.0, 1.0, 0.0])
"""Along the boundary of ``linear(A, OFFSET)``."""


@dataclass(frozen=True)
class Seen:
    """What a stage was given."""

    t: float
    start: np.ndarray
    problem: fo.FlipProblem


@dataclass(frozen=True, kw_only=True)
class Scripted(Solver):
    """The exact answer for ``linear(A, OFFSET)``, except where it is told to fail; every stage that it saw."""

    fails: Callable[[float, int], bool] = lambda t, call: False
    """Of t and of how many calls there were before."""
    aside: Callable[[float, int], float] = lambda t, call: 0.0
    """How far along the boundary the answer is off."""
    seen: list[Seen] = field(default_factory=list)

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        problem, call = oracle.problem, len(self.seen)
        t = float(1 - 2 * problem.network.biases[-1][1] / LEAD)  # the easy network's bias is LEAD / 2 there
        self.seen.append(Seen(t, oracle.point(u0), problem))
        oracle.constraints(u0)
        if self.fails(t, call):
            return Answer(np.full_like(u0, np.nan), fo.Status.INFEASIBLE, "as told")
        step = A / (A @ A) if problem.norm == 2 else np.sign(A) / np.abs(A).sum()
        x_hat = X - t * LEAD * step + self.aside(t, call) * SIDEWAYS
        return Answer(oracle.variables(x_hat), fo.Status.CONVERGED, "as told")


@dataclass(frozen=True, kw_only=True)
class Hopeless(Solver):
    """Finds nothing."""

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        return Answer(np.full_like(u0, np.nan), fo.Status.INFEASIBLE, "no idea")


def scripted(
    fails: Callable[[float, int], bool], norm: float = 2, control: StepControl = DOUBLE, **options
) -> tuple[fo.FlipResult, Scripted]:
    """With norm 2 a solver of short steps can take over, and does not fail; with others there is none."""
    solver, problem = Scripted(fails=fails), fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=norm)
    return follow(problem, solver, Homotopy(control=control, **options)), solver


def told(found: fo.FlipResult) -> list[tuple[float, bool, str]]:
    return [(pytest.approx(stage.t, abs=1e-9), stage.kept, stage.decision) for stage in found.stages]


# Steps


def test_steps_grow_while_stages_succeed() -> None:
    found, solver = scripted(lambda t, _: False)
    assert told(found) == [
        (0.1, True, "longer step"),
        (0.3, True, "longer step"),
        (0.7, True, "longer step"),
        (1.0, True, "arrived"),
    ]
    for stage, seen in zip(found.stages, solver.seen[1:], strict=False):  # each from where the one before ended
        np.testing.assert_allclose(seen.start, stage.x)
    assert found.success
    assert_recorded(found)
    slow, _ = scripted(lambda t, _: False, control=StepControl(grow=1.0), stages=4)
    assert [stage.t for stage in slow.stages] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    hard, _ = scripted(lambda t, _: False, control=StepControl(target=1), stages=4)  # no stage is easier than that
    assert [stage.t for stage in hard.stages] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert hard.stages[0].decision == "same step"


def test_a_failed_stage_is_tried_again_with_a_shorter_step_from_the_same_point() -> None:
    found, solver = scripted(lambda t, call: call == 1, norm=np.inf)
    assert told(found)[:3] == [
        (0.1, True, "longer step"),
        (0.3, False, "failed: shorter step"),
        (0.2, True, "longer step"),
    ]
    np.testing.assert_array_equal(solver.seen[1].start, solver.seen[2].start)
    assert np.isnan(found.stages[1].boundary_gap)
    assert found.stages[2].step == pytest.approx(0.1)
    assert found.success
    assert_recorded(found)


def test_a_stage_that_raises_is_a_failed_stage() -> None:
    def fails(t: float, call: int) -> bool:
        if call == 0:
            raise ZeroDivisionError("oh dear")
        return False

    found, _ = scripted(fails)
    assert found.stages[0].status is fo.Status.NUMERICAL_ERROR
    assert not found.stages[0].kept
    assert found.success


def test_a_path_may_step_back_to_take_up_another_branch() -> None:
    found, _ = scripted(lambda t, call: call == 2, norm=np.inf, monotone=False)
    assert told(found)[2:5] == [
        (0.7, False, "failed: shorter step"),
        (0.15, True, "a step back"),  # by the shorter step of 0.2, but no farther than half-way
        (0.35, True, "longer step"),
    ]
    assert found.success
    forward, _ = scripted(lambda t, call: call == 2, norm=np.inf)
    assert "a step back" not in [stage.decision for stage in forward.stages]
    # A step back that fails itself leaves the path where it was.
    found, _ = scripted(lambda t, call: call in (2, 3), norm=np.inf, monotone=False)
    assert told(found)[3:5] == [(0.15, False, "a step back"), (0.5, True, "longer step")]
    assert found.success


def test_a_uniform_path_goes_on_from_the_point_before_a_failure() -> None:
    found, solver = scripted(lambda t, call: call == 1, stages=4, adaptive=False)
    assert told(found) == [
        (0.25, True, "next"),
        (0.5, False, "go on from the point before"),
        (0.75, True, "next"),
        (1.0, True, "next"),
    ]
    np.testing.assert_allclose(solver.seen[2].start, found.stages[0].x)
    assert found.success


@pytest.mark.parametrize("adaptive", [True, False])
def test_the_last_stage_is_the_problem_that_was_asked_with_its_own_network(adaptive: bool) -> None:
    problem, solver = random_network(fo.ReLU(), 2), Seeing()
    follow(problem, solver, Homotopy(adaptive=adaptive, restarts=0))
    before, last = [p for p in solver.seen if p is not problem], [p for p in solver.seen if p is problem]
    assert before
    assert last
    for stage in before:
        assert stage.network is not problem.network
        assert stage.network.weights[0] is problem.network.weights[0]  # no stage copies them


@dataclass(frozen=True, kw_only=True)
class Seeing(fo.solvers.Ipopt):
    """IPOPT, and the problems that it was given."""

    seen: list[fo.FlipProblem] = field(default_factory=list)

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        self.seen.append(oracle.problem)
        return super()._solve(oracle, u0)


# Takeover


@pytest.mark.parametrize(
    ("kind", "smooth", "takes_over"),
    [(fo.ReLU(), False, "pieces"), (fo.Erf(0.5), False, "trust-region"), (fo.ReLU(), True, "trust-region")],
    ids=["relu", "erf", "relu-by-elu"],
)
def test_after_failures_a_solver_takes_over_that_suits_the_network(
    kind: fo.Activation, smooth: bool, takes_over: str
) -> None:
    problem = random_network(kind, 2)
    found = follow(problem, Hopeless(), Homotopy(restarts=0, smooth=smooth))
    assert found.success, found.message
    enough = 1 if takes_over == "pieces" else StepControl.failures
    *first, last = found.stages[:enough]
    others = found.stages[enough:]
    assert {stage.decision for stage in first} <= {"failed: shorter step"}
    assert {stage.solver for stage in (*first, last)} == {"hopeless"}
    assert last.decision == f"failed: shorter step, {takes_over.replace('-', ' ')} from here"
    assert {stage.solver for stage in others if stage.t < 1} == {takes_over}
    assert others[-1].solver == ("trust-region" if kind == fo.Erf(0.5) else "pieces")  # the trained network has pieces
    changes = [stage.decision for stage in others if "from here" in stage.decision]
    assert changes == (["longer step, pieces from here"] if smooth else [])
    assert_speaks_of_the_trained_network(found, problem)
    assert_recorded(found)


def test_a_stage_at_its_limit_is_kept_but_brings_the_takeover() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Short(Scripted):
        def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
            answer = super()._solve(oracle, u0)
            near = answer.u + 1e-5 * A  # on the boundary, roughly
            return Answer(near, fo.Status.LIMIT, "stopped")

    options = Homotopy(control=StepControl(failures=1))
    found = follow(fo.flip_problem(linear(A, OFFSET), X, (0, 1)), Short(), options)
    assert told(found)[0] == (0.1, True, "longer step, trust region from here")
    assert {stage.solver for stage in found.stages[1:]} == {"trust-region"}
    assert found.success


def test_where_no_other_solver_can_take_the_problem_the_path_stays_with_the_user_s() -> None:
    found, _ = scripted(lambda t, call: call < 2, norm=np.inf)
    assert {stage.solver for stage in found.stages} == {"scripted"}
    assert not any("from here" in stage.decision for stage in found.stages)
    assert found.success


@dataclass(frozen=True, kw_only=True)
class OwnTrustRegion(TrustRegion):
    """A user's: it fails at first, and says with which options it was called."""

    failures: int = 2
    used: list[tuple[float, float, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "own"

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        self.used.append((self.radius, self.funnel, self.max_iter))
        if len(self.used) <= self.failures:
            return Answer(np.full_like(u0, np.nan), fo.Status.INFEASIBLE, "not yet")
        return super()._solve(oracle, u0)


@pytest.mark.parametrize("failures", [0, 2, 8])
def test_a_user_s_own_trust_region_keeps_the_path_and_its_options(failures: int) -> None:
    problem, control = random_network(fo.Erf(0.5), 0), StepControl(iterations=30)
    solver = OwnTrustRegion(radius=0.01, funnel=0.2, max_iter=77, failures=failures)
    found = follow(problem, solver, Homotopy(control=control))
    assert found.success, found.message
    assert {stage.solver for stage in found.stages} == {"own"}
    assert not any("from here" in stage.decision for stage in found.stages)
    assert set(solver.used) == {(0.01, 0.2, 30), (0.01, 0.2, 77)}
    assert sum(not stage.kept for stage in found.stages) == failures


def test_a_user_s_own_trust_region_gives_way_to_the_descent_over_pieces() -> None:
    found = follow(random_network(fo.ReLU(), 2), OwnTrustRegion(failures=1), Homotopy())
    assert found.stages[0].decision == "failed: shorter step, pieces from here"
    assert {stage.solver for stage in found.stages[1:]} == {"pieces"}
    assert found.success
    own = follow(random_network(fo.ReLU(), 2), Pieces(), Homotopy())
    assert {stage.solver for stage in own.stages} == {"pieces"}
    assert not any("from here" in stage.decision for stage in own.stages)
    assert own.success


def test_a_boundary_point_that_is_not_stationary_is_gone_on_from_at_the_end() -> None:
    problem = fo.flip_problem(linear(A, OFFSET), X, (0, 1))
    solver = Scripted(refine=False, aside=lambda t, call: 1.0)
    found = follow(problem, solver, Homotopy())
    last = found.stages[-2:]
    assert [stage.decision for stage in last] == ["not stationary, trust region from here", "arrived"]
    assert [stage.t for stage in last] == [1, 1]
    assert [stage.solver for stage in last] == ["scripted", "trust-region"]
    assert found.success
    assert found.distance == pytest.approx(LEAD / np.linalg.norm(A))


# Restarts, and the end


def test_when_nothing_helps_every_way_is_tried_and_no_success_is_claimed() -> None:
    found, solver = scripted(lambda t, _: True, norm=np.inf, restarts=1)
    once = [0.1, 0.05, 1.0]  # until shorter than 0.04, and then what can be said of the trained network
    assert [stage.t for stage in found.stages] == pytest.approx([*once, *once, 1.0, 1.0], abs=1e-9)
    decisions = [stage.decision for stage in found.stages]
    assert decisions[2] == decisions[5] == "the path ended early: a direct attempt from its last point"
    assert decisions[6:] == ["the path failed: a direct solve without it"] * 2
    assert not found.success
    assert np.isnan(found.distance)
    assert not any(stage.kept for stage in found.stages)
    starts = [seen.start for seen in solver.seen]
    np.testing.assert_array_equal(starts[6], X)
    assert np.linalg.norm(starts[7] - X) > 0  # the end of the walk


def test_restarts_keep_away_from_where_paths_have_ended() -> None:
    control, calls = StepControl(grow=2.0, away=0.2), []

    def fails(t: float, call: int) -> bool:
        calls.append(t)
        return t > 0.5 and len(calls) < 20  # the first path ends before 0.5

    found, solver = scripted(fails, norm=np.inf, control=control)
    assert found.success
    again = next(k for k, seen in enumerate(solver.seen) if seen.problem.constraints)
    end = next(stage.x for stage in found.stages[:again][::-1] if stage.kept)
    radius = control.away * np.linalg.norm(end - X)
    for seen in solver.seen[again:]:
        if seen.t > 1 - 1e-9:
            assert seen.problem.constraints == ()  # the trained network's problem is the one that was asked
            continue
        (ball,) = seen.problem.constraints
        away = end + radius * np.array([1.0, 0.0, 0.0])
        assert ball.function(away) == pytest.approx(ball.lower)
        assert ball.function(end) < ball.lower
    assert solver.seen[again].start == pytest.approx(X)
    # No point that the second path went on from is inside, to the tolerance of a stage.
    for stage in found.stages[again:-1]:
        if stage.kept and stage.t < 1:
            assert np.linalg.norm(stage.x - end) ** 2 >= radius**2 - control.tolerance


def test_a_direct_solve_is_the_last_resort() -> None:
    rescued, _ = scripted(lambda t, call: call < 3, norm=np.inf, restarts=0)
    assert rescued.success
    assert rescued.stages[-1].decision == "the path failed: a direct solve without it"
    without, _ = scripted(lambda t, call: True, norm=np.inf, restarts=0)
    assert not without.success
    assert len(without.stages) == 5  # the path, and two direct solves


def test_no_boundary_point_is_given_up_for_none_or_for_a_farther_one() -> None:
    problem = fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=np.inf)
    asides = iter([3.0, 1.0, 2.0])  # of the attempts at the trained network
    known: dict[int, float] = {}

    def aside(t: float, call: int) -> float:
        return known.setdefault(call, next(asides)) if t > 1 - 1e-9 else 0.0

    solver = Scripted(refine=False, aside=aside, fails=lambda t, call: t > 1 - 1e-9 and len(known) == 3)
    found = follow(problem, solver, Homotopy())
    assert found.status is fo.Status.ON_BOUNDARY
    distances = [stage.distance for stage in found.stages if stage.t == 1 and stage.status is fo.Status.ON_BOUNDARY]
    assert len(distances) == 3
    assert found.distance == min(distances)
    assert found.distance == distances[1]
    assert found.stages[-1].status is fo.Status.NUMERICAL_ERROR
    assert_speaks_of_the_trained_network(found, problem)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations: expected a positive number, found 0"),
        ({"tolerance": -1.0}, "tolerance: expected a positive number, found -1.0"),
        ({"shortest": np.nan}, "shortest: expected a positive number, found nan"),
        ({"shrink": 1.0}, "shrink, grow: expected shrink < 1 <= grow, found 1.0, 2.0"),
        ({"grow": 0.9}, "shrink, grow: expected shrink < 1 <= grow, found 0.4, 0.9"),
    ],
)
def test_bad_values_are_named(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        StepControl(**options)
