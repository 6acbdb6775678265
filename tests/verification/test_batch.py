"""The check of many points is the check of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings

import flipopt as fo
from flipopt.problem import FlipBatch, flip_batch
from flipopt.solvers import Batch
from flipopt.verification import verify, verify_batch
from tests.cases import linear, three_classes
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import seeds

OPTIONS: dict = {"weights": np.array([1.0, 4.0, 0.25, 2.0, 0.5, 3.0]), "frozen": [2], "margin": 0.1}


def compare(batch: FlipBatch, X_hat: np.ndarray) -> None:
    """A batch of one is the same to the last digit; in a larger one the network's matrix products round differently."""
    found = verify_batch(batch, X_hat)
    for k in range(len(batch)):
        alone, one = verify(batch.problem(k), X_hat[k]), verify_batch(batch.take(np.array([k])), X_hat[[k]])
        for name in found.names():
            np.testing.assert_array_equal(getattr(one, name)[0], getattr(alone, name), name)
        assert found.boundary_gap[k] == pytest.approx(alone.boundary_gap, abs=1e-13)
        assert found.class_margin[k] == pytest.approx(alone.class_margin, abs=1e-13)
        assert found.bound_violation[k] == alone.bound_violation
        assert found.on_boundary[k] == alone.on_boundary
        assert found.kkt_residual[k] == pytest.approx(alone.kkt_residual, abs=1e-9)


@given(seeds)
@settings(max_examples=25)
def test_random_points_are_judged_alike(seed: int) -> None:
    batch = random_batch(random_network(seed), seed, **OPTIONS)
    X_hat = batch.X + ~batch.setting.frozen * np.random.default_rng(seed).standard_normal(batch.X.shape)
    compare(batch, X_hat)


@given(seeds)
@settings(max_examples=8)
def test_solutions_are_judged_alike(seed: int) -> None:
    net = random_network(seed)
    for options in (OPTIONS, {"bounds": (-0.8, 0.8)}):  # many problems have no solution within the bounds
        batch = random_batch(net, seed, **options)
        result = Batch(rescue=False, attempts=1, max_iter=50).solve_batch(batch)
        compare(batch.take(result.solved), result.x[result.solved])


@given(seeds)
@settings(max_examples=15)
def test_points_at_active_bounds_are_judged_alike(seed: int) -> None:
    batch = random_batch(random_network(seed), seed, bounds=(-0.8, 0.8))
    X_hat = batch.clip(batch.X + 2 * np.random.default_rng(seed).standard_normal(batch.X.shape))
    assert ((np.abs(X_hat) == 0.8).sum(axis=1) > 0).any()
    compare(batch, X_hat)


@given(seeds)
@example(533)  # two active rows nearly parallel, with multipliers of 1e3
@settings(max_examples=15)
def test_minima_at_kinks_are_judged_alike(seed: int) -> None:
    net = random_network(seed, (6, 9, 7, 4), fo.ReLU() if seed % 2 else fo.PReLU(0.2))
    for options in ({"weights": OPTIONS["weights"], "margin": 0.1}, {"bounds": (-3.0, 3.0)}):
        batch = random_batch(net, seed, **options)
        result = Batch().solve_batch(batch)
        solved = batch.take(result.solved)
        compare(solved, result.x[result.solved])
        assert (verify_batch(solved, result.x[result.solved]).kkt_residual <= 1e-6).all()


def test_a_point_at_a_kink_that_is_no_minimum_is_not_taken_for_one() -> None:
    """y_0 - y_1 = relu(a) + relu(b) - 1 with a and b the inputs."""
    net = fo.DenseNetwork(
        [np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])], [np.zeros(2), np.array([-1.0, 0.0])], fo.ReLU()
    )
    X_hat = np.array([[0.0, 1.0], [0.5, 0.5], [-1.0, 1.0]])
    batch = flip_batch(net, np.array([[2.0, 2.0], [2.0, 2.0], [-1.0, 2.0]]), [(0, 1)] * 3)
    found = verify_batch(batch, X_hat)
    assert found.on_boundary.all()
    # (0.5, 0.5) and (-1, 1) are the closest; from (0, 1) the distance falls towards (0.5, 0.5).
    np.testing.assert_allclose(found.kkt_residual[1:], 0.0, atol=1e-9)
    assert found.kkt_residual[0] > 0.1
    compare(batch, X_hat)


def test_what_is_wrong_is_seen() -> None:
    batch = flip_batch(three_classes(), np.array([[1.0, 2.0]] * 5), [(0, 1)] * 5, bounds=(0.0, 4.0), frozen=[])
    X_hat = np.array([[0.0, 2.0], [0.5, 2.0], [0.0, 3.5], [-1e-9, 2.0], [0.0, 1.0]])
    found = verify_batch(batch, X_hat)
    # Closest; off the boundary; class 2 above; out of bounds; on the boundary but 45 degrees off.
    assert found.on_boundary.tolist() == [True, False, False, False, True]
    np.testing.assert_allclose(found.kkt_residual[[0, 4]], [0.0, np.sqrt(0.5)], atol=1e-12)  # the ridge is 1e-13
    # y_0 - y_2 = -0.5, its gradient (1, -1), the distance from (1, 2) to (0, 3.5).
    assert found.class_margin[2] == pytest.approx(-0.5 / np.sqrt(2) / np.sqrt(3.25), rel=1e-5)
    assert found.bound_violation[3] == 1e-9


def test_a_changed_frozen_feature_is_a_violation() -> None:
    batch = flip_batch(linear(np.ones(2)), np.ones((1, 2)), [(0, 1)], frozen=[1])
    found = verify_batch(batch, np.array([[-1.5, 1.5]]))
    assert found.bound_violation[0] == 0.5
    assert not found.on_boundary[0]


def test_the_multiplier_of_another_class_and_of_a_bound_must_have_the_right_sign() -> None:
    # On x_0 = 0 class 2 binds at x_1 = 3: it pushes down, which helps from above only.
    batch = flip_batch(three_classes(), np.array([[1.0, 4.0], [1.0, 2.0]]), [(0, 1)] * 2)
    found = verify_batch(batch, np.array([[0.0, 3.0]] * 2))
    np.testing.assert_allclose(found.kkt_residual, [0.0, np.sqrt(0.5)], atol=1e-12)
    # The bound x_1 >= 3 holds the point up from below, x_1 <= 3 does not.
    for bounds, residual in (((np.array([-9.0, 2.5]), 9.0), 0.0), ((-9.0, np.array([9.0, 2.5])), np.sqrt(0.2))):
        batch = flip_batch(three_classes(), np.array([[1.0, 2.0]]), [(0, 1)], bounds=bounds)
        found = verify_batch(batch, np.array([[0.0, 2.5]]))
        np.testing.assert_allclose(found.kkt_residual, residual, atol=1e-12)


def test_nothing_is_closer_than_no_change() -> None:
    batch = flip_batch(linear(np.ones(2)), np.zeros((1, 2)), [(0, 1)])
    assert verify_batch(batch, np.zeros((1, 2))).kkt_residual[0] == 0


def test_no_points_have_no_verdicts() -> None:
    batch = flip_batch(linear(np.ones(2)), np.empty((0, 2)), np.empty((0, 2)))
    assert verify_batch(batch, np.empty((0, 2))).on_boundary.shape == (0,)
