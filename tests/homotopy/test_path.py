"""Paths of flip points: the decisions on the way, the limits, and what is claimed at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import flipopt as fo
from flipopt.homotopy import Homotopy, follow, path, transform
from flipopt.problem import Evaluations, Oracle
from flipopt.solvers import Answer, Ipopt, Nlopt, Scipy, Solver, TrustRegion
from tests.cases import disc, linear, moons, three_classes

A, OFFSET, X = np.array([1.0, -2.0, 0.5]), 0.3, np.array([1.0, -1.0, 0.5])
LEAD = float(A @ X + OFFSET)
BOTH = pytest.mark.parametrize("adaptive", [True, False], ids=["adaptive", "uniform"])


def random_network(kind: fo.Activation, seed: int, widths: tuple[int, ...] = (4, 10, 10, 3)) -> fo.FlipProblem:
    """A small network and a point of it, to be flipped to the runner-up."""
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    net = fo.DenseNetwork(W, [0.3 * rng.standard_normal(width) for width in widths[1:]], kind)
    x = rng.standard_normal(widths[0])
    runner_up, first = np.argsort(net.logits(x))[-2:]
    return fo.flip_problem(net, x, (first, runner_up))


def steep_network(seed: int) -> fo.FlipProblem:
    """Six layers of erf that are flat nearly everywhere: at x the gradient says nothing."""
    return random_network(fo.Erf(0.2), seed, (12, *6 * (20,), 3))


def assert_speaks_of_the_trained_network(found: fo.FlipResult, problem: fo.FlipProblem) -> None:
    """Whatever the status, the check and the distance are those of the problem that was asked, not of a stage's."""
    assert found.check is not None
    check = fo.verify(problem, found.x)
    for name in ("boundary_gap", "class_margin", "bound_violation", "constraint_violation", "kkt_residual"):
        assert getattr(found.check, name) == getattr(check, name), name
    assert found.success == (found.status is fo.Status.CONVERGED)
    assert not found.success or check.closest()
    if check.on_boundary:
        assert found.distance == problem.distance(found.x)


def assert_recorded(found: fo.FlipResult) -> None:
    """The cost is that of all stages, and the stages lead from 0 to 1."""
    assert sum((stage.evaluations for stage in found.stages), Evaluations()) == found.evaluations
    kept = [stage.t for stage in found.stages if stage.kept]
    assert kept == sorted(kept)
    assert all(0 < stage.t <= 1 for stage in found.stages)
    assert found.stages[-1].t == 1
    if found.success:
        last = found.stages[-1]
        assert last.kept
        assert last.status is found.status
        assert (last.x == found.x).all()
        assert last.distance == found.distance


# Whole paths


@BOTH
@pytest.mark.parametrize("solver", [Ipopt(), Scipy()], ids=lambda solver: solver.name)
@pytest.mark.parametrize("kind", [fo.Erf(0.5), fo.ReLU(), fo.ELU(1.0)], ids=repr)
def test_one_stage_is_the_direct_solve_from_x(kind: fo.Activation, solver: Solver, adaptive: bool) -> None:
    problem = random_network(kind, 2)
    direct = solver.solve(problem, problem.x, problem.network)
    found = follow(problem, solver, Homotopy(stages=1, adaptive=adaptive), problem.network)
    np.testing.assert_array_equal(found.x, direct.x)
    assert (found.status, found.evaluations, found.message) == (direct.status, direct.evaluations, direct.message)
    assert [(stage.t, stage.step) for stage in found.stages] == [(1.0, 1.0)]


@BOTH
@pytest.mark.parametrize("norm", [2, np.inf, 1])
def test_a_linear_classifier_in_closed_form(norm: float, adaptive: bool) -> None:
    problem = fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=norm)
    found = follow(problem, Ipopt(), Homotopy(stages=4, adaptive=adaptive))
    assert found.success, found.message
    assert found.distance == pytest.approx(LEAD / np.linalg.norm(A, ord={1: np.inf, 2: 2, np.inf: 1}[norm]), rel=1e-7)
    assert_recorded(found)
    for stage in found.stages:  # the boundary of N^t is the plane at t times the distance
        if stage.kept and stage.t < 1:
            assert stage.distance == pytest.approx(stage.t * found.distance, rel=1e-2)


def test_uniform_stages_are_equal() -> None:
    found = follow(random_network(fo.Erf(0.5), 0), Ipopt(), Homotopy(stages=5, adaptive=False))
    assert [stage.t for stage in found.stages] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert [stage.step for stage in found.stages] == pytest.approx([0.2] * 5)


KINDS = {
    "erf": (fo.Erf(0.5), False),
    "relu": (fo.ReLU(), False),
    "relu-by-elu": (fo.ReLU(), True),
    "prelu": (fo.PReLU(0.2), False),
    "prelu-by-elu": (fo.PReLU(0.2), True),
    "elu": (fo.ELU(0.7), False),
    "tanh": (fo.Tanh(), False),
}


@BOTH
@pytest.mark.parametrize("name", KINDS)
def test_small_networks_are_solved_and_the_claim_is_of_the_trained_network(name: str, adaptive: bool) -> None:
    kind, smooth = KINDS[name]
    for seed in (2, 3):
        problem = random_network(kind, seed)
        found = follow(problem, Ipopt(), Homotopy(adaptive=adaptive, smooth=smooth), problem.network)
        assert found.success, found.message
        assert_speaks_of_the_trained_network(found, problem)
        assert_recorded(found)
        direct = Ipopt().solve(problem, problem.x, problem.network)
        if direct.success and found.distance != pytest.approx(direct.distance, rel=1e-6):
            # Then both are closest flip points of their own valleys.
            assert np.linalg.norm(found.x - direct.x) > 1e-3 * found.distance


@pytest.mark.parametrize("solver", [Ipopt(), Scipy(), TrustRegion(), Nlopt()], ids=lambda solver: solver.name)
def test_any_solver_can_follow_a_path(solver: Solver) -> None:
    if solver.missing() is not None:
        pytest.skip(str(solver.missing()))
    problem = random_network(fo.Erf(0.5), 0)
    found = follow(problem, solver, Homotopy(), problem.network)
    assert found.success, found.message
    assert_speaks_of_the_trained_network(found, problem)
    assert_recorded(found)
    assert found.stages[0].solver == solver.name


@cache
def steep() -> fo.FlipResult:
    problem = steep_network(1)
    return follow(problem, Ipopt(), Homotopy(), problem.network)


def test_where_the_direct_solve_fails_the_adaptive_path_arrives() -> None:
    problem = steep_network(1)
    assert not Ipopt().solve(problem, problem.x, problem.network).success
    found = steep()
    assert found.success, found.message
    assert_speaks_of_the_trained_network(found, problem)
    assert_recorded(found)
    assert found.stages[0].t < 0.5  # the network's steepness grows by e^10 or so: one step is not enough
    # Nor does any easier point count: none of the points on the way is a flip point of the trained network.
    assert not any(fo.verify(problem, stage.x).on_boundary for stage in found.stages[:-1])


@BOTH
def test_probabilities_margins_and_three_tied_classes(adaptive: bool) -> None:
    options = Homotopy(adaptive=adaptive)
    problem = fo.flip_problem(three_classes(), np.array([1.0, 2.9]), (0, 1), margin=0.5)
    found = follow(problem, Ipopt(), options)
    assert found.success, found.message
    assert found.distance == pytest.approx(np.hypot(1.0, 0.4), rel=1e-7)
    problem = fo.flip_problem(three_classes(), np.array([1.0, 2.0]), (0, 1, 2))
    found = follow(problem, Ipopt(), options)
    assert found.success, found.message
    assert found.x == pytest.approx([0, 3], abs=1e-7)
    problem = replace(random_network(fo.Erf(0.5), 0), outputs="probabilities")
    found = follow(problem, Ipopt(), options)
    assert found.success, found.message
    assert_speaks_of_the_trained_network(found, problem)


@BOTH
def test_a_path_at_the_limits_of_its_domain_goes_on_within_them(adaptive: bool) -> None:
    problem = random_network(fo.Erf(0.5), 0)
    free = follow(problem, Ipopt(), Homotopy(adaptive=adaptive))
    # Every feature is stopped at half of what it would like to change, except the first, and one is frozen.
    change = free.x - problem.x
    lower, upper = problem.x - 0.5 * np.abs(change), problem.x + 0.5 * np.abs(change)
    lower[0], upper[0], frozen = -10.0, 10.0, np.array([False, True, False, False])
    bounded = replace(problem, lower=lower, upper=upper, frozen=frozen)
    found = follow(bounded, Ipopt(), Homotopy(adaptive=adaptive))
    assert found.success, found.message
    assert_speaks_of_the_trained_network(found, bounded)
    assert found.distance > free.distance
    assert (np.isclose(found.x, lower, atol=1e-6) | np.isclose(found.x, upper, atol=1e-6))[2:].any()
    for stage in found.stages:
        assert ((stage.x >= lower) & (stage.x <= upper)).all()
        assert stage.x[1] == problem.x[1]


def test_a_start_outside_the_bounds_is_brought_inside() -> None:
    problem = fo.flip_problem(linear(np.array([1.0, 1.0])), np.array([3.0, 1.0]), (0, 1), bounds=(-2.0, 2.0))
    found = follow(problem, Ipopt(), Homotopy())
    assert found.success, found.message
    assert found.x == pytest.approx([1.0, -1.0], abs=1e-7)


# Limits


@BOTH
@pytest.mark.parametrize("solver", [Ipopt(), TrustRegion()], ids=lambda solver: solver.name)
@pytest.mark.parametrize("limit", [1, 7, 40])
def test_evaluations_are_limited_over_all_stages(limit: int, solver: Solver, adaptive: bool) -> None:
    problem = steep_network(1)
    found = follow(problem, solver, Homotopy(adaptive=adaptive, max_evaluations=limit), problem.network)
    assert found.status is fo.Status.LIMIT
    assert "the homotopy's limit was reached at t = " in found.message
    # One more, at most, to say what the trained network makes of the point where the path had to stop.
    assert found.evaluations.forward <= limit + 1
    assert_speaks_of_the_trained_network(found, problem)
    assert_recorded(found)


@pytest.mark.parametrize("limit", [1, 20, 60])
def test_evaluations_are_limited_over_linear_pieces_too(limit: int) -> None:
    problem = random_network(fo.ReLU(), 0)
    found = follow(problem, Ipopt(), Homotopy(max_evaluations=limit), problem.network)
    assert found.status is fo.Status.LIMIT
    assert found.evaluations.forward <= limit + 1
    assert_speaks_of_the_trained_network(found, problem)


@BOTH
def test_seconds_are_limited_over_all_stages(adaptive: bool) -> None:
    problem = steep_network(1)
    found = follow(problem, Ipopt(), Homotopy(adaptive=adaptive, max_seconds=0.01), problem.network)
    assert found.status is fo.Status.LIMIT
    assert_speaks_of_the_trained_network(found, problem)
    assert_recorded(found)


def test_stages_are_limited() -> None:
    problem = steep_network(1)
    assert len(steep().stages) > 4
    found = follow(problem, Ipopt(), Homotopy(max_stages=2, restarts=0), problem.network)
    assert len(found.stages) == 3  # the two, and what the trained network makes of the point
    assert [stage.t == 1 for stage in found.stages] == [False, False, True]
    assert found.stages[-1].decision == "the path ended early: a direct attempt from its last point"
    assert found.status is fo.Status.LIMIT
    assert "the homotopy's limit was reached at t = " in found.message
    assert_speaks_of_the_trained_network(found, problem)
    again = follow(problem, Ipopt(), Homotopy(max_stages=2, restarts=1), problem.network)
    assert len(again.stages) == 6  # of one path, not of both
    assert again.status is fo.Status.LIMIT


def test_a_solver_s_own_limit_holds_in_every_stage() -> None:
    problem = steep_network(1)
    found = follow(problem, Ipopt(max_evaluations=5), Homotopy(max_evaluations=30, stages=4, adaptive=False))
    assert max(stage.evaluations.forward for stage in found.stages) <= 5


# Decisions. A linear classifier has no activations, so that l(t) = 3 t: the first step goes to 1/3, the next to 1.


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
    hopeless = follow(replace(problem, norm=np.inf), Sideways(refine=False), Homotopy(restarts=0))
    assert hopeless.status is fo.Status.ON_BOUNDARY
    last = [stage.decision for stage in hopeless.stages if stage.t == 1]
    assert last[:-2] == ["not stationary: trust region from here"] * (path.REPEATS + 1)
    assert last[-2:] == ["the path failed: a direct solve without it"] * 2  # from x, and from the end of the walk


def test_when_nothing_helps_every_way_is_tried_and_no_success_is_claimed() -> None:
    found, solver = scripted(lambda t, _: True, norm=np.inf)
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


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": 0}, "stages: expected a whole number >= 1, found 0"),
        ({"stages": 2.0}, "stages: expected a whole number >= 1, found 2.0"),
        ({"stages": True}, "stages: expected a whole number >= 1, found True"),
        ({"max_stages": 0}, "max_stages: expected a whole number >= 1, found 0"),
        ({"restarts": -1}, "restarts: expected a whole number >= 0, found -1"),
        ({"restarts": 0.5}, "restarts: expected a whole number >= 0, found 0.5"),
        ({"tau": 0.0}, r"tau: expected a number in \(0, 1\], found 0.0"),
        ({"tau": 1.5}, r"tau: expected a number in \(0, 1\], found 1.5"),
        ({"tau": np.nan}, r"tau: expected a number in \(0, 1\], found nan"),
        ({"margin": -0.1}, "margin: expected a number >= 0, found -0.1"),
        ({"margin": np.nan}, "margin: expected a number >= 0, found nan"),
        ({"when": "sometimes"}, "when: expected"),
        ({"max_evaluations": 0}, "max_evaluations: expected a positive number, found 0"),
        ({"max_seconds": -1.0}, "max_seconds: expected a positive number, found -1.0"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        Homotopy(**options)


def test_a_network_without_activations_to_relax_is_refused() -> None:
    problem = fo.flip_problem(disc(1.0), np.array([0.3, 0.1]), (0, 1))
    with pytest.raises(fo.InputError, match="homotopy: expected a DenseNetwork.*found TorchNetwork"):
        follow(problem, Ipopt())


def test_a_float32_network_is_followed_in_float64_and_bracketed_in_its_own_precision() -> None:
    single = moons().astype(np.float32)
    problem = fo.flip_problem(single, np.array([-0.5, 0.9]), (0, 1))
    assert transform(problem, 1e-5, 0.1).at(0).dtype == np.float64
    found = follow(problem, Ipopt(), network=single)
    assert found.success, found.message
    assert found.check.bracket.inside.dtype == np.float32
