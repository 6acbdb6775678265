"""Decisions of the adaptive path, with solvers that do as they are told.

A linear classifier has no activations, so that l(t) = 3 t: the first step goes to 1/3, the next to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest

import flipopt as fo
from flipopt.homotopy import Homotopy, follow, path
from flipopt.problem import Oracle
from flipopt.solvers import Answer, Solver, TrustRegion
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


@dataclass(frozen=True)
class Seen:
    """What a stage was given."""

    start: np.ndarray
    problem: fo.FlipProblem


@dataclass(frozen=True, kw_only=True)
class Scripted(Solver):
    """The exact answer for ``linear(A, OFFSET)``, except where it is told to fail; every t that it saw."""

    fails: Callable[[float, int], bool]
    """Of t and of how many calls there were before."""
    evaluations_each: int = 1
    seen: list[tuple[float, Seen]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "scripted"

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        problem = oracle.problem
        t = float(1 - 2 * problem.network.biases[-1][1] / LEAD)  # the easy network's bias is LEAD / 2 there
        self.seen.append((round(t, 12), Seen(oracle.point(u0), problem)))
        for k in range(self.evaluations_each):
            oracle.constraints(u0 + 1e-9 * k)
        if self.fails(t, len(self.seen) - 1):
            return Answer(np.full_like(u0, np.nan), fo.Status.INFEASIBLE, "as told")
        step = A / (A @ A) if problem.norm == 2 else np.sign(A) / np.abs(A).sum()
        return Answer(oracle.variables(X - t * LEAD * step), fo.Status.CONVERGED, "as told")


def scripted(fails: Callable[[float, int], bool], norm: float = 2, **options) -> tuple[fo.FlipResult, Scripted]:
    """With norm 2 the trust-region solver can take over, and does not fail; otherwise it cannot take the problem."""
    solver = Scripted(fails=fails)
    return follow(fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=norm), solver, Homotopy(**options)), solver


def told(found: fo.FlipResult) -> list[tuple[float, bool, str]]:
    return [(pytest.approx(stage.t, abs=1e-9), stage.kept, stage.decision) for stage in found.stages]


def test_easy_stages_lengthen_the_step() -> None:
    found, solver = scripted(lambda t, _: False)
    assert told(found) == [(1 / 3, True, "longer step"), (1.0, True, "arrived")]
    assert [t for t, _ in solver.seen] == pytest.approx([1 / 3, 1.0])
    np.testing.assert_allclose(solver.seen[1][1].start, found.stages[0].x)  # from where the stage before ended
    assert found.success


def test_a_short_first_step_is_never_shorter_than_a_uniform_one() -> None:
    found, _ = scripted(lambda t, _: False, stages=2)
    assert [stage.t for stage in found.stages] == pytest.approx([0.5, 1.0])


def test_hard_stages_shorten_the_step() -> None:
    solver = Scripted(fails=lambda t, _: False, evaluations_each=60)
    found = follow(fo.flip_problem(linear(A, OFFSET), X, (0, 1)), solver, Homotopy())
    # sqrt(15 / 60) = 0.5, but no less than 0.7, and no step is made shorter than 0.5 for that: 1, 0.7, 0.5, 0.5, ...
    assert told(found) == [
        (1 / 3, True, "hard: shorter step"),
        (1.7 / 3, True, "hard: shorter step"),
        (2.2 / 3, True, "same step"),
        (2.7 / 3, True, "same step"),
        (1.0, True, "arrived"),
    ]


def test_a_failed_stage_is_tried_again_with_a_shorter_step() -> None:
    found, solver = scripted(lambda t, call: call == 0)
    assert told(found)[:2] == [(1 / 3, False, "failed: shorter step"), (0.4 / 3, True, "longer step")]
    assert found.stages[1].step == pytest.approx(0.4 / 3)
    assert np.isnan(found.stages[0].boundary_gap)
    np.testing.assert_array_equal(solver.seen[1][1].start, X)  # not from the failed point
    assert found.success
    assert_recorded(found)


def test_after_two_failures_the_trust_region_solver_takes_over() -> None:
    found, _ = scripted(lambda t, _: t < 1)
    assert told(found)[:3] == [
        (1 / 3, False, "failed: shorter step"),
        (0.4 / 3, False, "failed: shorter step, trust region from here"),
        (0.16 / 3, True, "longer step"),
    ]
    assert [stage.solver for stage in found.stages[:3]] == ["scripted", "scripted", "trust-region"]
    assert {stage.solver for stage in found.stages[2:]} == {"trust-region"}
    lengths = [stage.step for stage in found.stages[2:-1]]
    assert [b / a for a, b in pairwise(lengths)] == pytest.approx([path.TRUST_GROW] * (len(lengths) - 1))
    assert found.success
    assert_recorded(found)


@pytest.mark.parametrize(("kind", "takes_over"), [(fo.ReLU(), "pieces"), (fo.Erf(0.5), "trust-region")], ids=repr)
def test_the_solver_that_takes_over_suits_the_network(kind: fo.Activation, takes_over: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Hopeless(Solver):
        def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
            return Answer(np.full_like(u0, np.nan), fo.Status.INFEASIBLE, "no idea")

    problem = random_network(kind, 2)
    found = follow(problem, Hopeless(), Homotopy(restarts=0))
    assert found.success, found.message
    solvers = [stage.solver for stage in found.stages]
    taken = solvers.index(takes_over)
    assert found.stages[taken - 1].decision == "failed: shorter step, trust region from here"
    assert set(solvers[:taken]) == {"hopeless"}
    assert set(solvers[taken:]) == {takes_over}
    assert_speaks_of_the_trained_network(found, problem)
    assert_recorded(found)


def taken_over_by(iterations: int, monkeypatch: pytest.MonkeyPatch) -> tuple[fo.FlipResult, list[int]]:
    """A path whose trust-region solver needs this many iterations a stage, and those that it was given."""
    given = []

    class Slow(TrustRegion):
        def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
            given.append(self.max_iter)
            slow = self.max_iter < iterations
            return Answer(u0 * np.nan, fo.Status.LIMIT, "slow") if slow else super()._solve(oracle, u0)

    monkeypatch.setattr(path, "TrustRegion", Slow)
    return scripted(lambda t, _: True, restarts=0)[0], given


def test_where_no_step_can_be_shorter_the_trust_region_solver_gets_more_iterations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, given = taken_over_by(path.LOOSE_ITERATIONS + 1, monkeypatch)
    assert told(found)[2:6] == [
        (0.16 / 3, False, "failed: shorter step"),
        (0.064 / 3, False, "failed: shorter step"),
        (0.0256 / 3, False, "failed: more iterations"),
        (path.SHORT / 3, True, "longer step"),
    ]
    assert given[:3] == [path.LOOSE_ITERATIONS] * 3
    assert given[3:-1] == [path.PATIENT * path.LOOSE_ITERATIONS] * (len(given) - 4)
    assert given[-1] == path.TRUST_ITERATIONS  # the last stage has always had many
    assert found.success
    assert_recorded(found)


def test_more_iterations_are_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, given = taken_over_by(path.TRUST_ITERATIONS + 1, monkeypatch)
    decisions = [stage.decision for stage in found.stages]
    assert decisions.count("failed: more iterations") == 1
    again = decisions.index("failed: more iterations") + 1
    steps = [0.5, 0.2, 0.08, 0.032]  # from SHORT on, times 0.4, until shorter than 0.02
    assert [stage.t for stage in found.stages[again : again + 4]] == pytest.approx(np.divide(steps, 3))
    assert decisions[again : again + 4] == ["failed: shorter step"] * 3 + ["failed: no shorter step"]
    assert max(given[:-1]) == path.PATIENT * path.LOOSE_ITERATIONS
    assert not found.success


def test_a_failure_at_the_very_end_brings_the_trust_region_solver_at_once() -> None:
    found, _ = scripted(lambda t, _: t == 1)
    assert told(found)[:3] == [
        (1 / 3, True, "longer step"),
        (1.0, False, "failed: shorter step, trust region from here"),
        (1.8 / 3, True, "longer step"),
    ]
    assert found.stages[-1].solver == found.solver == "trust-region"
    assert found.success


@dataclass(frozen=True, kw_only=True)
class Sideways(Solver):
    """On the boundary, but off to one side, in any norm."""

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        t = 1 - 2 * oracle.problem.network.biases[-1][1] / LEAD
        return Answer(oracle.variables(X - t * LEAD * A / (A @ A) + [2.0, 1.0, 0.0]), fo.Status.CONVERGED, "trust me")


def test_a_boundary_point_that_is_not_stationary_is_gone_on_from_at_the_end() -> None:
    problem = fo.flip_problem(linear(A, OFFSET), X, (0, 1))
    found = follow(problem, Sideways(refine=False), Homotopy())
    last = found.stages[-2:]
    assert [stage.decision for stage in last] == ["not stationary: trust region from here", "arrived"]
    assert [stage.t for stage in last] == [1, 1]
    assert [stage.solver for stage in last] == ["sideways", "trust-region"]
    assert found.success
    assert found.distance == pytest.approx(LEAD / np.linalg.norm(A))
    # Where the trust-region solver cannot help, the same stage is tried a few times, and then no success is claimed.
    hopeless = follow(problem.changed(norm=np.inf), Sideways(refine=False), Homotopy(restarts=0))
    assert hopeless.status is fo.Status.ON_BOUNDARY
    last = [stage.decision for stage in hopeless.stages if stage.t == 1]
    assert last[:-2] == ["not stationary: trust region from here"] * (path.REPEATS + 1)
    assert last[-2:] == ["the path failed: a direct solve without it"] * 2  # from x, and from the end of the walk


def test_when_nothing_helps_every_way_is_tried_and_no_success_is_claimed() -> None:
    found, solver = scripted(lambda t, _: True, norm=np.inf, restarts=1)
    steps = [1.0, 0.4, 0.16, 0.064, 0.0256]  # times 0.4, until shorter than 0.02
    aside = [0.25, 0.1, 0.04]
    once = [*np.divide([*steps, *aside], 3), 1.0]
    assert [stage.t for stage in found.stages] == pytest.approx([*once, *once, 1.0, 1.0], abs=1e-9)
    decisions = [stage.decision for stage in found.stages]
    assert decisions[:9] == decisions[9:18]
    assert decisions[18:] == ["the path failed: a direct solve without it"] * 2
    assert [k for k in range(9) if decisions[k] == "failed: no shorter step"] == [4, 7]
    assert decisions[1] == decisions[6] == "failed: shorter step, trust region from here"
    assert decisions[8] == "the path ended early: a direct attempt from its last point"
    assert not found.success
    assert not any(stage.kept for stage in found.stages)
    starts = [seen.start for _, seen in solver.seen]
    for k in (*range(5), *range(9, 14)):
        np.testing.assert_array_equal(starts[k], X)
    for k in (*range(5, 9), *range(14, 18)):  # in other directions, a little aside of the last point
        assert 0 < np.linalg.norm(starts[k] - X) <= path.ASIDE * np.linalg.norm(X)
    balls = [seen.problem.constraints for _, seen in solver.seen]
    assert not any(balls[:9])
    assert all(len(constraints) == 1 for constraints in balls[9:17])  # the second path keeps away from the first's end
    assert balls[17:] == [(), (), ()]  # but not the trained network's problem
    np.testing.assert_array_equal(starts[18], X)
    assert np.linalg.norm(starts[19] - X) > 0  # the end of the walk
    assert (balls[9][0].function(starts[8]) == 0).all()


def test_a_restart_may_succeed() -> None:
    found, solver = scripted(lambda t, call: call < 9, norm=np.inf)
    assert found.success
    assert told(found)[9:] == [(1 / 3, True, "longer step"), (1.0, True, "arrived")]
    assert solver.seen[-1][1].problem.constraints == ()
    assert_recorded(found)
    without, _ = scripted(lambda t, call: call < 11, norm=np.inf, restarts=0)
    assert not without.success
    assert len(without.stages) == 11  # the path, and two direct solves
    rescued, _ = scripted(lambda t, call: call < 9, norm=np.inf, restarts=0)
    assert rescued.success
    assert rescued.stages[-1].decision == "the path failed: a direct solve without it"


def test_a_failed_restart_does_not_give_up_a_boundary_point() -> None:
    @dataclass(frozen=True, kw_only=True)
    class OnlyOnce(Sideways):
        calls: list[float] = field(default_factory=list)

        def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
            self.calls.append(0.0)
            first_path = not oracle.problem.constraints and len(self.calls) < path.REPEATS + 4
            return super()._solve(oracle, u0) if first_path else Answer(np.nan * u0, fo.Status.INFEASIBLE, "no")

    problem = fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=np.inf)
    found = follow(problem, OnlyOnce(), Homotopy())
    assert any(not stage.kept for stage in found.stages)  # the second path went nowhere
    assert found.status is fo.Status.ON_BOUNDARY
    assert_speaks_of_the_trained_network(found, problem)


def test_a_start_aside_leaves_frozen_and_bounded_features_alone() -> None:
    solver = Scripted(fails=lambda t, _: True)
    lower, upper = np.array([-5.0, -5.0, -5.0]), np.array([5.0, -1.0, 5.0])
    problem = fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=1, bounds=(lower, upper), frozen=[2])
    follow(problem, solver, Homotopy(restarts=0))
    start = solver.seen[-1][1].start
    assert start[0] != X[0]
    assert (start[1:] == X[1:]).all()  # at its upper bound, and frozen


def test_without_the_trust_region_solver_a_box_keeps_the_next_point_near() -> None:
    # At 1/3 all is well; what comes next fails twice, and then the stages are boxed in around the point at 1/3.
    found, solver = scripted(lambda t, call: 1 <= call <= 2, norm=np.inf)
    boxed = [seen for t, seen in solver.seen if t < 1 and np.isfinite(seen.problem.lower).any()]
    assert boxed
    radius = path.BOX * np.abs(found.stages[0].x - X).max()
    assert boxed[0].problem.upper - boxed[0].problem.lower == pytest.approx(2 * radius)
    assert boxed[0].problem.upper + boxed[0].problem.lower == pytest.approx(2 * found.stages[0].x)
    assert np.isinf(solver.seen[-1][1].problem.lower).all()  # the trained network's problem is the one that was asked
    assert found.success


def test_a_path_may_step_back_to_take_up_another_branch() -> None:
    found, _ = scripted(lambda t, call: call == 1, norm=np.inf, monotone=False)
    assert told(found)[:3] == [
        (1 / 3, True, "longer step"),
        (1.0, False, "failed: shorter step, trust region from here"),
        (1 / 3 - 0.1, True, "a step back"),
    ]
    assert found.success
    assert found.stages[3].t == pytest.approx(1 / 3 - 0.1 + 0.8 / 3)
    assert found.stages[3].step == pytest.approx(0.8 / 3)
    forward, _ = scripted(lambda t, call: call == 1, norm=np.inf)
    assert "a step back" not in [stage.decision for stage in forward.stages]
    # A step back that fails itself leaves the path where it was.
    found, _ = scripted(lambda t, call: call in (1, 2), norm=np.inf, monotone=False)
    assert told(found)[2] == (1 / 3 - 0.1, False, "a step back")
    assert found.stages[3].t == pytest.approx((1 + 0.8) / 3)
    assert found.success


def test_a_uniform_path_goes_on_from_the_point_before_a_failure() -> None:
    found, solver = scripted(lambda t, call: call == 1, stages=4, adaptive=False)
    assert told(found) == [
        (0.25, True, "next"),
        (0.5, False, "go on from the point before"),
        (0.75, True, "next"),
        (1.0, True, "next"),
    ]
    np.testing.assert_allclose(solver.seen[2][1].start, found.stages[0].x)
    assert found.success


def test_a_far_move_shortens_the_step() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Jumps(Scripted):
        """To the other side of x once: farther from the last point than from x."""

        def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
            answer = super()._solve(oracle, u0)
            sideways = np.array([2.0, 1.0, 0.0]) * (10.0 if len(self.seen) == 2 else 0.0)
            return replace(answer, u=answer.u + sideways)

    solver = Jumps(fails=lambda t, _: False, evaluations_each=40, refine=False)
    found = follow(fo.flip_problem(linear(A, OFFSET), X, (0, 1)), solver, Homotopy())
    assert [stage.decision for stage in found.stages[:2]] == ["hard: shorter step", "moved far: shorter step"]
    assert found.stages[1].moved > path.FAR * found.stages[1].distance
    assert found.stages[2].step == pytest.approx(path.SHRINK * 0.7 / 3)


def test_a_stage_that_raises_is_a_failed_stage() -> None:
    def fails(t: float, call: int) -> bool:
        if call == 0:
            raise ZeroDivisionError("oh dear")
        return False

    found, _ = scripted(fails)
    assert found.stages[0].status is fo.Status.NUMERICAL_ERROR
    assert not found.stages[0].kept
    assert found.success
