"""The descent over linear pieces of many problems, against the reference, linear programs and exhaustive search."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flipopt as fo
from flipopt.networks.linear_pieces import Piece
from flipopt.problem import FlipBatch, Oracle, flip_batch
from flipopt.solvers import Pieces
from flipopt.solvers.pieces.compiled import descend, descend_one, neighbouring_minima
from flipopt.verification import verify
from tests.solvers.batch.nets import random_batch, random_network
from tests.solvers.pieces.reference.descent import descend as reference
from tests.solvers.pieces.reference.least_distance import least_distance
from tests.solvers.pieces.test_descent import random_problem, steepest_way_down
from tests.strategies import seeds


def as_batch(problem: fo.FlipProblem) -> FlipBatch:
    margin = float(problem.goal.lower.max())
    return FlipBatch(problem.setting, problem.x[None], np.array([problem.classes]), margin)


def alone(batch: FlipBatch, starts: np.ndarray):
    """Every problem as a group of its own."""
    return descend(batch, starts, np.arange(len(batch)), np.full(len(batch), np.inf), 0.0)


@given(seeds, st.integers(1, 3))
@settings(max_examples=60)
def test_a_descent_ends_at_a_local_minimum(seed: int, layers: int) -> None:
    problem, start = random_problem(seed, layers, bounds=None, frozen=None, tied=2)
    end = alone(as_batch(problem), start[None])
    assume(end.ended[0])
    check = verify(problem, end.x[0])
    assert check.boundary_gap <= 1e-12
    assert check.class_margin >= -1e-12
    # Every piece around the end is convex, so a nearer point would show as a direction in one of them.
    assert steepest_way_down(problem, end.x[0]) >= -1e-7


@given(seeds)
@settings(max_examples=40)
def test_neither_the_descent_nor_the_reference_can_go_on_where_the_other_ends(seed: int) -> None:
    """With bounds, frozen features, weights, a margin and ties of three classes, as they are drawn."""
    problem, start = random_problem(seed, 2)
    for one, other in ((descend_one, reference), (reference, descend_one)):
        z = one(Oracle(problem), start)
        again = None if z is None else other(Oracle(problem), z)
        if z is not None:
            assert again is not None
            assert problem.distance(again) == pytest.approx(problem.distance(z), rel=1e-7)
            assert fo.verify(problem, again).closest()


def test_the_boundary_is_reached_as_often_as_by_the_reference() -> None:
    problems = [random_problem(seed) for seed in range(200)]
    mine, theirs = ([find(Oracle(p), start) is not None for p, start in problems] for find in (descend_one, reference))
    assert sum(theirs) >= 100
    assert sum(mine) >= sum(theirs)


@pytest.mark.parametrize("facts", [{}, {"frozen": [0, 3]}, {"weights": np.linspace(0.5, 2, 6), "margin": 0.1}], ids=str)
def test_bounds_hold_for_every_problem_of_a_batch_and_none_depends_on_the_others(facts: dict) -> None:
    net = random_network(1, (6, 14, 10, 4), fo.ReLU())
    free = random_batch(net, 1, problems=40)
    X = np.clip(free.X, -2.0, 1.5)
    batch = flip_batch(net, X, free.classes, bounds=(-2.0, 1.5), **facts)
    end = alone(batch, X)
    assert end.ended.sum() >= 10
    np.testing.assert_array_equal(end.x, batch.clip(end.x))
    bounded = 0
    for k in np.flatnonzero(end.ended):
        problem = batch.problem(int(k))
        assert verify(problem, end.x[k]).closest()
        bounded += bool(((end.x[k] == -2.0) | (end.x[k] == 1.5)).any())
        np.testing.assert_array_equal(alone(batch.take([k]), X[[k]]).x[0], end.x[k])
    assert bounded >= 3


def test_most_descents_end_and_those_that_do_are_verified() -> None:
    net = random_network(1, (6, 14, 10, 4), fo.ReLU())
    batch = random_batch(net, 1, problems=60)
    end = alone(batch, batch.X + 0.5 * np.random.default_rng(0).standard_normal(batch.X.shape))
    assert end.ended.mean() >= 0.7  # some classes are nowhere on top
    assert all(verify(batch.problem(k), end.x[k]).closest() for k in np.flatnonzero(end.ended))
    assert (end.forward > 0).all()


def nearest_of_all_pieces(problem: fo.FlipProblem) -> float:
    """The least distance over every pattern of signs, by the other quadratic program: for a handful of neurons."""
    net = problem.network
    assert isinstance(net, fo.DenseNetwork)
    widths, best, x = net.widths[1:-1], np.inf, problem.x
    T, n = problem.goal.T, len(x)
    for signs in product((False, True), repeat=sum(widths)):
        sides = np.split(np.array(signs), np.cumsum(widths)[:-1])
        slopes = (np.where(s, right, left) for s, (left, right) in zip(sides, net.one_sided_slopes))
        piece = Piece(net, tuple(slopes))
        layers = piece.layers(x)
        rows = [piece.gradients(net.n_layers, T)]
        values = [T @ layers[-1] - problem.goal.lower]
        for k, side in enumerate(sides):
            sign = np.where(side, 1.0, -1.0)
            rows.append(sign[:, None] * piece.gradients(k + 1, np.eye(widths[k])))
            values.append(sign * layers[k])
        A, c = np.concatenate(rows), np.concatenate(values)
        equations = np.arange(len(c)) < 1
        free = np.full(n, np.inf)
        found = least_distance(x, A, A @ x - c, equations, -free, free, np.zeros(len(c)), 1e6)
        if found is not None:
            best = min(best, float(np.linalg.norm(found[0] - x)))
    return best


def test_looking_around_finds_the_nearest_of_all_pieces_of_small_networks() -> None:
    """Every pattern of eight neurons is tried; looks behind single walls find nearly all of what is missing."""
    before, after, best = [], [], []
    for seed in range(25):
        problem, start = random_problem(seed, 2, 4, tied=2, bounds=None, frozen=None, weights=None, margin=0.0)
        batch = as_batch(problem)
        end = alone(batch, start[None])
        if not end.ended[0]:
            continue
        around = neighbouring_minima(batch, end.x)
        before.append(float(batch.distances(end.x)[0]))
        after.append(float(batch.distances(around.x)[0]))
        best.append(nearest_of_all_pieces(problem))
        assert around.ended[0] == (after[-1] < before[-1] * (1 - 1e-7))
        assert verify(problem, around.x[0]).closest()
    ratio = np.array(after) / np.array(best)
    assert len(best) >= 15
    assert (ratio >= 1 - 1e-9).all()  # nothing is nearer than the nearest
    assert (ratio <= 1 + 1e-9).sum() > (np.array(before) <= np.array(best) * (1 + 1e-9)).sum()
    assert (ratio <= 1 + 1e-9).mean() >= 0.8


def test_groups_drop_what_is_too_far() -> None:
    net = random_network(1, (6, 14, 10, 4), fo.ReLU())
    batch = random_batch(net, 1, problems=30)
    start = alone(batch, batch.X)
    batch, minima = batch.take(start.ended), start.x[start.ended]
    distance, one = batch.distances(minima), np.zeros(int(start.ended.sum()), dtype=np.int64)
    assert len(one) >= 3
    best = np.full(1, distance.min() / 10)
    nothing = descend(batch, minima, one, best, 0.85)
    assert nothing.dropped.all()
    assert best[0] == distance.min() / 10
    best = np.full(1, np.inf)
    nearest = descend(batch, minima, one, best, 1.0)
    assert best[0] == pytest.approx(distance.min(), rel=1e-9)
    assert (~nearest.dropped).tolist() == (distance == distance.min()).tolist()


def test_weights_are_those_of_the_distance() -> None:
    net = random_network(2, (5, 10, 8, 3), fo.PReLU(0.1))
    weights = np.array([1.0, 4.0, 0.25, 2.0, 0.5])
    batch = random_batch(net, 2, problems=20, weights=weights)
    root = np.sqrt(weights)
    scaled = fo.DenseNetwork([net.weights[0] / root[:, None], *net.weights[1:]], net.biases, net.activations)
    same = flip_batch(scaled, batch.X * root, batch.classes)
    one, other = alone(batch, batch.X), alone(same, same.X)
    np.testing.assert_array_equal(one.ended, other.ended)
    np.testing.assert_allclose(one.x[one.ended] * root, other.x[one.ended], atol=1e-10)


def test_a_batch_of_relu_problems_without_bounds_needs_no_solver_for_single_problems(monkeypatch) -> None:
    shipped = fo.load_shipped("mnist-fcn")
    monkeypatch.setattr(Pieces, "_solve", None)
    table = fo.closest_flip_points(shipped.network, shipped.X[:10])
    assert table.success.all()
    assert (table.solver == "pieces").all()


def test_one_relu_problem_is_solved_as_in_a_batch() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    flip = fo.closest_flip_point(shipped.network, shipped.X[3], target=1, solver="batch", starts=[shipped.X[3]])
    table = fo.closest_flip_points(shipped.network, shipped.X[3:4], [1])
    assert flip.success
    assert table.distance[0] <= flip.distance * (1 + 1e-9)  # the table has also looked around


def test_no_problems_have_no_descent() -> None:
    batch = random_batch(random_network(0, (5, 6, 3), fo.ReLU()), 0).take(slice(0, 0))
    assert alone(batch, batch.X).x.shape == (0, 5)
    assert neighbouring_minima(batch, batch.X).x.shape == (0, 5)


def test_a_network_that_is_not_finite_ends_nothing() -> None:
    net = random_network(0, (5, 6, 3), fo.ReLU())
    batch = random_batch(net, 0)
    huge = fo.DenseNetwork([1e200 * W for W in net.weights], net.biases, net.activations)
    end = alone(replace(batch, setting=replace(batch.setting, network=huge)), batch.X)
    assert not end.ended.any()


def test_the_deadline_stops_what_has_begun() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    net = shipped.network.in_float64
    i = net.predict(shipped.X)
    batch = flip_batch(net, shipped.X, np.column_stack([i, (i + 1) % 10]), bounds=(0, 1))
    each, best = np.arange(len(batch)), np.full(len(batch), np.inf)
    whole = descend(batch, batch.X, each, best.copy(), 0.0)
    late = descend(batch, batch.X, each, best.copy(), 0.0, deadline=time.perf_counter() + 0.02)
    assert late.forward.sum() < whole.forward.sum()
    assert late.ended.sum() < whole.ended.sum()


def test_nothing_begins_after_the_deadline() -> None:
    batch = random_batch(random_network(1, (6, 14, 10, 4), fo.ReLU()), 1)
    late = descend(batch, batch.X, np.arange(len(batch)), np.full(len(batch), np.inf), 0.0, deadline=0.0)
    assert not late.ended.any()
    np.testing.assert_array_equal(late.x, batch.X)
    assert (late.forward == 0).all()
