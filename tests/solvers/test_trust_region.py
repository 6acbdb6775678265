"""The trust-region solver beyond what every solver must do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.solvers import TrustRegion, trust_region
from flipopt.solvers.trust_region import LARGEST_N, _ball_minimiser
from flipopt.solvers.walk import walk
from tests.cases import disc, linear, moons, three_classes
from tests.strategies import seeds

# The quadratic in a ball


def ball_minimiser(H: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    values, Q = np.linalg.eigh(H)
    return Q @ _ball_minimiser(values, Q.T @ b, radius)


def model(H: np.ndarray, b: np.ndarray, y: np.ndarray) -> float:
    return float(b @ y + y @ H @ y / 2)


def assert_minimises(H: np.ndarray, b: np.ndarray, radius: float, y: np.ndarray) -> None:
    """No point of the ball is better, by duality: for every s >= 0 with H + s I > 0 the least value is at least
    -b (H + s I)^-1 b / 2 - s radius^2 / 2, and at the multiplier of a global minimiser it is just that."""
    values, Q = np.linalg.eigh(H)
    size = np.abs(values).max() + np.linalg.norm(b) / radius
    s = max(0.0, -float(y @ (H @ y + b)) / max(float(y @ y), 1e-300), 1e-9 * size - values[0])
    bound = -np.sum((Q.T @ b) ** 2 / (values + s)) / 2 - s * radius**2 / 2
    assert np.linalg.norm(y) <= radius * (1 + 1e-9)
    # The shift is found to 1e-10 of itself, and s is kept 1e-9 away from where H + s I is singular.
    assert model(H, b, y) <= bound + 1e-8 * size * radius**2


@given(st.integers(1, 8), st.sampled_from(["positive", "indefinite", "negative", "singular"]), st.floats(-3, 3), seeds)
def test_a_quadratic_is_minimised_in_a_ball_whatever_its_signature(n: int, kind: str, log: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = {
        "positive": rng.uniform(0.1, 5, n),
        "indefinite": rng.uniform(-5, 5, n),
        "negative": rng.uniform(-5, -0.1, n),
        "singular": np.maximum(rng.uniform(-5, 5, n), 0.0),
    }[kind]
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H, b, radius = (Q * values) @ Q.T, rng.standard_normal(n), 10.0**log
    H = (H + H.T) / 2
    assert_minimises(H, b, radius, ball_minimiser(H, b, radius))


@given(st.floats(-2, 1), seeds)
def test_no_point_of_a_fine_grid_is_better(log: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    H, b, radius = rng.standard_normal((2, 2)), rng.standard_normal(2), 10.0**log
    H = H + H.T
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, radius, 61))
    grid = np.stack([radii * np.cos(angles), radii * np.sin(angles)]).reshape(2, -1)
    best = (b @ grid + np.sum(grid * (H @ grid), axis=0) / 2).min()
    found = model(H, b, ball_minimiser(H, b, radius))
    assert found <= best + 1e-8 * abs(best)  # the radius is found to 1e-8 or so
    # Half a step of the grid, half a degree and a 120th of the radius, changes the model by this much at most.
    slope = np.linalg.norm(b) + np.linalg.norm(H) * radius
    assert found >= best - slope * radius * (np.pi / 720 + 1 / 120)


@pytest.mark.parametrize("radius", [0.5, 1.0, 20.0])
def test_the_hard_case_goes_along_the_lowest_eigenvector(radius: float) -> None:
    # b has nothing along the lowest eigenvector e_0, so the shift is 2 and y_1 = -1 / (1 + 2), if that is in the ball.
    H, b = np.diag([-2.0, 1.0]), np.array([0.0, 1.0])
    y = ball_minimiser(H, b, radius)
    assert y[1] == pytest.approx(-1 / 3, rel=1e-6)
    assert np.linalg.norm(y) == pytest.approx(radius)
    assert_minimises(H, b, radius, y)


@pytest.mark.parametrize("tiny", [1e-15, 1e-13, 1e-11, 1e-9, 1e-6])
def test_nearly_hard_cases_use_the_negative_curvature_too(tiny: float) -> None:
    H, b = np.diag([-2.0, 1.0]), np.array([tiny, 1.0])
    y = ball_minimiser(H, b, 1.0)
    assert y == pytest.approx([-np.sqrt(8) / 3, -1 / 3], abs=1e-5)
    assert_minimises(H, b, 1.0, y)


def test_quadratics_that_are_none() -> None:
    b, zero, one = np.array([3.0, 4.0]), np.zeros(2), np.ones(2)
    assert _ball_minimiser(zero, b, 2.0) == pytest.approx([-1.2, -1.6])  # straight down
    assert _ball_minimiser(zero, 1e-100 * b, 2.0) == pytest.approx([-1.2, -1.6])
    assert np.linalg.norm(_ball_minimiser(-one, zero, 2.0)) == pytest.approx(2.0)
    assert (_ball_minimiser(one, zero, 2.0) == 0).all()
    assert (_ball_minimiser(one, b, 0.0) == 0).all()
    assert len(_ball_minimiser(np.empty(0), np.empty(0), 1.0)) == 0


# Solves


@pytest.fixture(scope="module")
def image() -> fo.FlipProblem:
    shipped = fo.load_shipped("mnist-net1")
    runner_up, first = np.argsort(shipped.network.logits(shipped.X[0]))[-2:]
    return fo.flip_problem(shipped.network, shipped.X[0], (first, runner_up))


def test_a_deep_network_takes_few_iterations_from_a_walk(image: fo.FlipProblem) -> None:
    found = TrustRegion(refine=False).solve(image, walk(image))
    assert found.success, found.message
    assert found.message == "the KKT conditions hold"
    assert found.check.kkt_residual <= 1e-7
    assert found.iterations <= 15  # Newton's method is quadratic; a first-order one would take hundreds
    ipopt = fo.solvers.Ipopt().solve(image, walk(image))
    assert found.distance == pytest.approx(ipopt.distance, rel=1e-6)


def test_probabilities_have_the_same_closest_flip_as_logits() -> None:
    problem = fo.flip_problem(moons(), np.array([-0.5, 0.9]), (0, 1))
    start = walk(problem)
    logits = TrustRegion().solve(problem, start)
    probabilities = TrustRegion().solve(problem.changed(outputs="probabilities"), start)
    assert logits.success, logits.message
    assert probabilities.success, probabilities.message
    assert probabilities.distance == pytest.approx(logits.distance, rel=1e-7)


def test_rows_of_other_classes_and_bounds_are_held_where_they_bind() -> None:
    # On x_0 = 0, class 2 is 0.5 below the others only where x_1 <= 2.5.
    problem = fo.flip_problem(three_classes(), np.array([1.0, 2.9]), (0, 1), margin=0.5)
    found = TrustRegion(refine=False).solve(problem)
    assert found.success, found.message
    assert found.x == pytest.approx([0.0, 2.5], abs=1e-7)
    assert (np.abs(found.multipliers) > 0.1).all()
    # The same with a bound at 2.2 in place of the class.
    problem = fo.flip_problem(three_classes(), np.array([1.0, 2.9]), (0, 1), bounds=(-4.0, np.array([4.0, 2.2])))
    found = TrustRegion(refine=False).solve(problem)
    assert found.success, found.message
    assert found.x == pytest.approx([0.0, 2.2], abs=1e-7)
    assert found.x[1] <= 2.2


def test_rows_and_bounds_that_only_the_start_touches_are_let_go() -> None:
    x, corner = np.array([1.0, 2.0]), np.array([0.0, 3.0])  # where all three classes tie
    found = TrustRegion(refine=False).solve(fo.flip_problem(three_classes(), x, (0, 1)), corner)
    assert found.success, found.message
    assert found.x == pytest.approx([0.0, 2.0], abs=1e-7)
    problem = fo.flip_problem(three_classes(), x, (0, 1), bounds=(-4.0, np.array([4.0, 2.5])))
    found = TrustRegion(refine=False).solve(problem, np.array([0.0, 2.5]))
    assert found.success, found.message
    assert found.x == pytest.approx([0.0, 2.0], abs=1e-7)


@pytest.mark.parametrize(("low", "high", "held"), [(-4.0, 0.5, 0.5), (1.5, 4.0, 1.5)], ids=["upper", "lower"])
def test_a_curved_boundary_with_a_bound_in_the_way(low: float, high: float, held: float) -> None:
    # The circle of radius 2 is closest to (0.3, 0.4) at (1.2, 1.6); x_0 must stay below 0.5, or above 1.5.
    bounds = (np.array([low, -4.0]), np.array([high, 4.0]))
    problem = fo.flip_problem(disc(2.0), np.array([0.3, 0.4]), (0, 1), bounds=bounds)
    found = TrustRegion(refine=False).solve(problem)
    assert found.success, found.message
    assert found.x == pytest.approx([held, np.sqrt(4 - held**2)], abs=1e-7)
    assert found.check.bound_violation == 0


def test_a_saddle_is_left_by_negative_curvature() -> None:
    # From the middle of a circle every way is the same; from the far side of it only short steps lead round.
    problem = fo.flip_problem(disc(2.0), np.array([0.1, 0.0]), (0, 1))
    found = TrustRegion(refine=False).solve(problem, np.array([-1.99, 1e-4]))
    assert found.success, found.message
    assert found.x == pytest.approx([2.0, 0.0], abs=1e-6)


def test_what_cannot_be_satisfied_is_not_called_solved() -> None:
    # The logits never tie: there is no flip point at all, and the network is too flat to go far.
    W = [np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]])]
    net = fo.DenseNetwork(W, [np.zeros(2), np.array([5.0, 0.0])], fo.Erf(1.0))
    found = TrustRegion().solve(fo.flip_problem(net, np.array([0.2, 0.1]), (0, 1)))
    assert found.status in (fo.Status.INFEASIBLE, fo.Status.NUMERICAL_ERROR, fo.Status.LIMIT)
    assert np.isnan(found.distance)
    # A plane that the bounds keep out of reach.
    problem = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), bounds=(0.5, 2.0))
    found = TrustRegion().solve(problem)
    assert found.status in (fo.Status.INFEASIBLE, fo.Status.NUMERICAL_ERROR, fo.Status.LIMIT)
    assert found.check.bound_violation == 0
    # Two constraints that exclude each other.
    above = fo.LinearConstraint(np.array([[1.0, 1.0]]), 1.0, np.inf)
    problem = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), constraints=[above])
    found = TrustRegion().solve(problem)
    assert found.status in (fo.Status.INFEASIBLE, fo.Status.NUMERICAL_ERROR, fo.Status.LIMIT)
    assert found.check.boundary_gap > 0.1 or found.check.constraint_violation > 0.1


def test_limits_are_kept(image: fo.FlipProblem) -> None:
    for limit in (1, 3, 6):
        found = TrustRegion(max_evaluations=limit, refine=False).solve(image)
        assert found.status is fo.Status.LIMIT
        assert found.evaluations.forward <= limit
        assert f"stopped after {limit} evaluations" in found.message
    found = TrustRegion(max_iter=2, refine=False).solve(image)
    assert found.status is fo.Status.LIMIT
    assert found.iterations == 2
    assert "2 iterations" in found.message


def crossing(problem: fo.FlipProblem, there: np.ndarray) -> np.ndarray:
    """Where the line from x to ``there``, a point of the other class, crosses the boundary."""
    net, near, far = problem.network, 0.0, 1.0
    assert net.predict(there) != net.predict(problem.x)
    for _ in range(60):
        middle = (near + far) / 2
        same = net.predict(problem.x + middle * (there - problem.x)) == net.predict(problem.x)
        near, far = (middle, far) if same else (near, middle)
    return problem.x + far * (there - problem.x)


@pytest.mark.parametrize("seed", [8, 26])
def test_a_run_that_ends_at_its_limit_lands_on_the_boundary(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, widths = np.random.default_rng(seed), (6, 12, 12, 12, 2)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    net = fo.DenseNetwork(W, [0.3 * rng.standard_normal(width) for width in widths[1:]], fo.Erf(0.3))
    x = rng.standard_normal(6)
    problem = fo.flip_problem(net, x, (0, 1))
    start = crossing(problem, x + 3 * np.random.default_rng(seed).standard_normal(6))
    solver = TrustRegion(max_iter=12, refine=False)
    landed = solver.solve(problem, start)
    monkeypatch.setattr(trust_region, "LANDING", 0)
    under_way = solver.solve(problem, start)
    assert landed.iterations == under_way.iterations == 12
    assert landed.check.boundary_gap <= 1e-8
    assert under_way.check.boundary_gap >= 1e-4  # in the funnel, as long as steps lower the distance


def test_what_it_does_not_take_is_said() -> None:
    problem = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), norm=1)
    found = TrustRegion().solve(problem)
    assert (found.status, found.message) == (fo.Status.UNAVAILABLE, "trust-region takes only norm=2")
    large = fo.flip_problem(linear(np.ones(LARGEST_N + 1)), np.ones(LARGEST_N + 1), (0, 1))
    found = TrustRegion().solve(large)
    assert found.status is fo.Status.UNAVAILABLE
    assert f"at most {LARGEST_N} free features" in found.message


def test_a_loosened_solver_stops_earlier(image: fo.FlipProblem) -> None:
    start = walk(image)
    loose = TrustRegion().loosened(1e-3, 40)
    assert (loose.tol, loose.max_iter, loose.refine) == (1e-3, 40, False)
    assert TrustRegion(tol=1e-2, max_iter=5).loosened(1e-3, 40).tol == 1e-2
    assert TrustRegion(tol=1e-2, max_iter=5).loosened(1e-3, 40).max_iter == 5
    assert loose.solve(image, start).iterations < TrustRegion(refine=False).solve(image, start).iterations
