"""Paths of flip points on small networks: the limits, and what is claimed at the end."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import flipopt as fo
from flipopt.homotopy import Homotopy, follow, transform
from flipopt.solvers import Ipopt, Nlopt, Scipy, Solver, TrustRegion
from tests.cases import disc, linear, moons, three_classes
from tests.homotopy.paths import (
    LEAD,
    OFFSET,
    A,
    X,
    assert_recorded,
    assert_speaks_of_the_trained_network,
    random_network,
)

BOTH = pytest.mark.parametrize("adaptive", [True, False], ids=["adaptive", "uniform"])


def steep_network(seed: int) -> fo.FlipProblem:
    """Six layers of erf that are flat nearly everywhere: at x the gradient says nothing."""
    return random_network(fo.Erf(0.2), seed, (12, *6 * (20,), 3))


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
            assert stage.distance == pytest.approx(stage.t * found.distance, rel=2e-2)


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


@pytest.mark.parametrize("seed", [10, 14, 22])
def test_a_path_may_end_at_a_curved_kink(seed: int) -> None:
    problem = random_network(fo.ELU(0.7), seed, (6, 12, 12, 3))
    found = follow(problem, Ipopt(), Homotopy(), problem.network)
    assert found.success, found.message
    assert found.check.kinks == 1
    assert_speaks_of_the_trained_network(found, problem)


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
def steep(seed: int = 1) -> fo.FlipResult:
    problem = steep_network(seed)
    return follow(problem, Ipopt(), Homotopy(), problem.network)


def test_where_the_direct_solve_fails_the_adaptive_path_arrives() -> None:
    # Far from a solution IPOPT's way depends on the rounding of this machine's matrix products, so on one machine or
    # another it may arrive at some of these, after hundreds of iterations; but not at all of them.
    problems = [steep_network(seed) for seed in (1, 2)]
    assert not all(Ipopt().solve(problem, problem.x, problem.network).success for problem in problems)
    for problem, found in zip(problems, (steep(), steep(2)), strict=True):
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
    problem = random_network(fo.Erf(0.5), 0).changed(outputs="probabilities")
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
    bounded = problem.changed(lower=lower, upper=upper, frozen=frozen)
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
@pytest.mark.parametrize("limit", [1, 7, 20])
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
