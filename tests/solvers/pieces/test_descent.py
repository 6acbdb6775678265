"""The descent over pieces, against linear programs that look for a way down in every piece around its end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import flipopt as fo
from flipopt.problem import Oracle, reach
from flipopt.solvers import Ipopt, Pieces, Solver
from flipopt.solvers import template as base
from flipopt.solvers.pieces.compiled import descend_one as descend
from flipopt.solvers.pieces.compiled import piecewise_linear
from flipopt.solvers.walk import walk
from tests.cases import linear, moons
from tests.solvers.pieces.reference.least_distance import least_distance
from tests.strategies import seeds


def random_problem(seed: int, layers: int = 2, largest: int = 8, **facts: Any) -> tuple[fo.FlipProblem, np.ndarray]:
    """A flip problem of a small ReLU or PReLU network, perhaps with bounds and more, and a point to start from."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    widths = [n, *rng.integers(2, largest + 1, layers), rng.integers(2, 4)]
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [0.5 * rng.standard_normal(width) for width in widths[1:]]
    kinds = (fo.ReLU(), fo.PReLU(0.25), None)
    chosen = [kinds[rng.integers(3)] or fo.PReLU(rng.uniform(-0.5, 2.0, width)) for width in widths[1:-1]]
    net = fo.DenseNetwork(W, b, chosen)
    x = 2 * rng.standard_normal(n)
    options: dict = {
        "bounds": (x - rng.uniform(0, 3, n), x + rng.uniform(0, 3, n)),
        "weights": rng.uniform(0.1, 4, n),
        "frozen": [0],
        "margin": 0.1,
    }
    drawn = {name: value for name, value in options.items() if rng.random() < 0.3}
    i = int(net.predict(x))
    tied = facts.pop("tied", net.n_classes if np.random.default_rng((seed, 1)).random() < 0.15 else 2)
    problem = fo.flip_problem(net, x, [(i + k) % net.n_classes for k in range(tied)], **(drawn | facts))
    return problem, problem.clip(x + 2 * rng.standard_normal(n))


def steepest_way_down(problem: fo.FlipProblem, z: np.ndarray) -> float:
    """The least slope of the objective, relative to its gradient, along feasible directions in all pieces around z.

    At a local minimum it is 0: every piece is convex, so a closer point in it shows as a direction. One linear program
    a piece, each with its own Jacobians by the forward recurrence.
    """
    net, goal = problem.network, problem.goal
    assert isinstance(net, fo.DenseNetwork)
    layers = net.pre_activations(z)
    g = problem.weights * (z - problem.x)
    low = np.where((z <= problem.lower + 1e-10) | problem.frozen, 0.0, -1.0)
    high = np.where((z >= problem.upper - 1e-10) | problem.frozen, 0.0, 1.0)
    sides = [(False, True) if abs(c) <= 1e-8 else (bool(c > 0),) for layer in layers[:-1] for c in layer]
    near = np.array([len(side) == 2 for side in sides])
    least = 0.0
    for pattern in product(*sides):
        positive = np.split(np.array(pattern), np.cumsum(net.widths[1:-1])[:-1])
        touching = np.split(near, np.cumsum(net.widths[1:-1])[:-1])
        J, walls = np.eye(len(z)), []
        for W, activation, side, on in zip(net.weights, net.activations, positive, touching):
            C = W.T @ J
            walls.append((np.where(side, 1, -1)[:, None] * C)[on])
            J = np.where(side, 1.0, activation.alpha)[:, None] * C
        rows = goal.T @ net.weights[-1].T @ J
        active = ~goal.equations & (goal.T @ layers[-1] - goal.lower <= 1e-8)
        down = -np.concatenate([*walls, rows[active]])
        A, ties = rows[goal.equations], np.zeros(int(goal.equations.sum()))
        found = linprog(g, down, np.zeros(len(down)), A, ties, np.column_stack([low, high]))
        assert found.status == 0
        least = min(least, found.fun)
    return least / float(np.linalg.norm(g))


@settings(max_examples=60)
@given(seeds, st.integers(1, 3))
def test_the_descent_ends_at_a_local_minimum_that_the_check_confirms(seed: int, layers: int) -> None:
    problem, start = random_problem(seed, layers)
    z = descend(Oracle(problem), start)
    if z is None:  # no boundary nearby; that these are few is tested below
        return
    check = fo.verify(problem, z)
    assert check.closest()
    assert check.kkt_residual <= 1e-8
    assert steepest_way_down(problem, z) >= -1e-6


def test_the_linear_programs_see_a_way_down() -> None:
    """Half way between the start and the end of a descent the point is no local minimum."""
    seen = 0
    for seed in range(20):
        problem, start = random_problem(seed, bounds=None, frozen=None)
        z = descend(Oracle(problem), start)
        far = None if z is None else descend(Oracle(fo.flip_problem(problem.network, start, problem.classes)), z)
        if z is not None and far is not None and np.linalg.norm(far - z) > 0.1 and fo.verify(problem, far).on_boundary:
            seen += 1
            assert steepest_way_down(problem, far) < -1e-3
            assert not fo.verify(problem, far).closest()
    assert seen >= 3


def test_most_starts_reach_the_boundary_where_there_is_one() -> None:
    reached = tried = 0
    for seed in range(150):
        problem, start = random_problem(seed, bounds=None, frozen=None)
        net = problem.network
        around = 5 * np.random.default_rng(seed).standard_normal((200, net.n_inputs))
        lead = net.logits(problem.x + around) @ problem.goal.T[0]
        if net.n_classes == 2 and (lead > 0).any() and (lead < 0).any():
            tried += 1
            reached += descend(Oracle(problem), start) is not None
    assert tried >= 40
    assert reached >= 0.8 * tried


@given(seeds)
def test_the_distance_only_falls_and_the_budget_is_kept(seed: int) -> None:
    problem, start = random_problem(seed)
    whole = Oracle(problem)
    z = descend(whole, start)
    cost = whole.evaluations.forward
    for budget in (0, 1, 5, 10, cost // 2, cost):
        limited = Oracle(problem, max_evaluations=budget)
        found = descend(limited, start)
        assert limited.evaluations.forward <= budget
        if found is not None:
            assert z is not None
            assert fo.verify(problem, found).on_boundary
            assert problem.distance(found) >= problem.distance(z) * (1 - 1e-9)
    if z is not None:
        np.testing.assert_array_equal(found, z)


@pytest.mark.parametrize("evaluations", [1, 3, 10])
def test_the_limit_of_evaluations_stops_the_solver(evaluations: int) -> None:
    problem, start = random_problem(9, bounds=None, frozen=None)
    whole = Pieces(refine=False).solve(problem, start)
    assert whole.success, whole.message
    found = Pieces(refine=False, max_evaluations=evaluations).solve(problem, start)
    assert found.evaluations.forward == evaluations < whole.evaluations.forward
    assert f"stopped after {evaluations} evaluations" in found.message
    assert found.status in (fo.Status.LIMIT, fo.Status.ON_BOUNDARY)
    assert not found.success


@pytest.mark.parametrize("solver", [Pieces(), Ipopt()], ids=lambda solver: solver.name)
def test_the_clock_stops_the_refinement_too(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, start = random_problem(9, bounds=None, frozen=None)
    assert solver.solve(problem, start).success  # compiles, which takes longer than the limit below
    late = replace(solver, max_seconds=1e-9)
    monkeypatch.setattr(base, "FINISH", 1e6)
    assert late.solve(problem, start).success
    monkeypatch.setattr(base, "FINISH", 0.0)
    found = late.solve(problem, start)
    assert found.status is fo.Status.LIMIT
    assert found.evaluations.forward == 0


def test_a_solution_is_left_alone() -> None:
    problem, start = random_problem(0, bounds=None, frozen=None)
    z = descend(Oracle(problem), start)
    assert z is not None
    again = descend(Oracle(problem), z)
    np.testing.assert_allclose(z if again is None else again, z, atol=1e-11)


def test_what_the_descent_can_take() -> None:
    relu, x = random_problem(0)[0].network, np.ones(random_problem(0)[0].network.n_inputs)
    assert piecewise_linear(fo.flip_problem(relu, x, (0, 1)).setting)
    assert not piecewise_linear(fo.flip_problem(relu, x, (0, 1), norm=1).setting)
    assert not piecewise_linear(fo.flip_problem(relu, x, (0, 1), outputs="probabilities").setting)
    one = fo.LinearConstraint(np.eye(len(x))[:1], 0.0, 1.0)
    assert not piecewise_linear(fo.flip_problem(relu, x, (0, 1), constraints=one).setting)
    assert not piecewise_linear(fo.flip_problem(relu.with_activations(fo.PReLU(1.0)), x, (0, 1)).setting)
    assert not piecewise_linear(fo.flip_problem(relu.with_activations(fo.ELU(0.5)), x, (0, 1)).setting)
    assert not piecewise_linear(fo.flip_problem(moons(), np.ones(2), (0, 1)).setting)
    assert not piecewise_linear(fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1)).setting)


def test_a_range_of_logits_is_reached() -> None:
    """Two-sided rows: the descent's own form of the goal has one row a side."""
    problem, start = random_problem(3, bounds=None, frozen=None)
    net = problem.network
    Y = net.logits(start)
    lower, upper = Y - 0.1, np.append(Y[:-1] + 0.1, np.inf)
    ranged = fo.FlipProblem(problem.setting, problem.x, reach(net.n_classes, lower, upper))
    z = descend(Oracle(ranged), start)
    assert z is not None
    assert fo.verify(ranged, z).closest()
    assert ranged.distance(z) < ranged.distance(start)


# The quadratic program of the reference


@given(seeds, st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_least_distance_satisfies_its_optimality_conditions(seed: int, n: int, rows: int, boxed: bool) -> None:
    rng = np.random.default_rng(seed)
    x, inside = rng.standard_normal(n), rng.standard_normal(n)
    A = rng.standard_normal((rows, n)) * 10.0 ** rng.integers(-3, 4, (rows, 1))
    if rows > 1:
        A[-1] = A[0]  # linearly dependent rows are common at a vertex
    equations = rng.random(rows) < 0.3
    b = A @ inside - np.where(equations, 0.0, np.abs(A) @ np.ones(n) * rng.uniform(0, 1, rows))
    reach = rng.uniform(0, 1, n) if boxed else np.full(n, np.inf)
    lower, upper = inside - reach, inside + reach
    found = least_distance(x, A, b, equations, lower, upper, np.zeros(rows))
    assert found is not None
    z, lam = found
    sizes = np.linalg.norm(A, axis=1)
    slack = (A @ z - b) / sizes
    np.testing.assert_allclose(slack[equations], 0, atol=1e-9)
    assert (slack >= -1e-9).all()
    assert (lam[~equations] >= 0).all()
    np.testing.assert_allclose((lam * sizes * slack), 0, atol=1e-6)
    np.testing.assert_allclose(z, np.clip(x + lam @ A, lower, upper), atol=1e-9)


@pytest.mark.parametrize("boxed", [True, False])
def test_least_distance_says_if_there_is_no_point_or_none_near(boxed: bool) -> None:
    n = 3
    A = np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]])
    reach = np.full(n, 5.0 if boxed else np.inf)
    inequalities, start = np.zeros(2, dtype=bool), np.zeros(2)
    assert least_distance(np.zeros(n), A, np.array([1.0, 1.0]), inequalities, -reach, reach, start, 1e6) is None
    b = np.array([1.0, -2.0])  # the closest is (0.5, 0.5, 0), at half a squared distance of 0.25
    assert least_distance(np.zeros(n), A, b, inequalities, -reach, reach, start, 0.2) is None
    found = least_distance(np.zeros(n), A, b, inequalities, -reach, reach, start, 0.25)
    assert found is not None
    np.testing.assert_allclose(found[0], [0.5, 0.5, 0.0], atol=1e-14)


# The shipped ReLU network


def shipped_problem(row: int, target: int, **facts: object) -> fo.FlipProblem:
    shipped = fo.load_shipped("mnist-fcn")
    x = shipped.X[row]
    i = int(shipped.network.in_float64.predict(x))
    return fo.flip_problem(shipped.network, x, (i, (i + target) % 10), **facts)


@pytest.mark.parametrize(("row", "target"), [(0, 1), (1, 4), (2, 7)])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)], ids=["free", "pixels"])
def test_a_solver_s_point_on_a_relu_network_is_finished(row: int, target: int, bounds: tuple | None) -> None:
    problem = shipped_problem(row, target, bounds=bounds)
    found = Ipopt(max_iter=15).solve(problem, walk(problem))
    assert found.status is fo.Status.CONVERGED, found.message
    assert found.check is not None
    assert found.check.kkt_residual <= 1e-9
    unrefined = Ipopt(max_iter=15, refine=False).solve(problem, walk(problem))
    assert not unrefined.success


def test_ends_of_walks_are_finished_too() -> None:
    closest = in_both_layers = 0
    for row in range(20):
        problem = shipped_problem(row, 1 + row % 9)
        z = descend(Oracle(problem), walk(problem))
        check = None if z is None else fo.verify(problem, z)
        closest += check is not None and check.closest()
        if z is not None and check is not None and check.closest():
            net = problem.network
            assert isinstance(net, fo.DenseNetwork)
            on = [int((np.abs(c) <= 1e-9).sum()) for c in net.pre_activations(z)[:-1]]
            assert check.kinks == sum(on)
            in_both_layers += all(on)
    assert closest >= 18
    assert in_both_layers >= 5
