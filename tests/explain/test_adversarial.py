from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import flipopt as fo
from tests.cases import linear, three_classes
from tests.explain.tables import plane, table
from tests.solvers.batch.nets import random_network

W = np.array([3.0, 4.0])


def test_of_a_plane_the_attack_goes_straight_to_the_end_of_the_ball() -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    net, flips = plane(W, X)
    found = fo.explain.adversarial(net, X, radius=0.5)
    near = flips.distance <= 0.5
    np.testing.assert_allclose(found.distance, 0.5)
    np.testing.assert_array_equal(found.feasible, near)
    np.testing.assert_array_equal(found.success, near)
    np.testing.assert_allclose(found.crossing[near], flips.distance[near])
    assert np.isnan(found.crossing[~near]).all()
    np.testing.assert_allclose(found.angle, 0, atol=1e-5)
    np.testing.assert_allclose(found.best_radius, flips.distance)
    np.testing.assert_allclose(found.radii((0.5,)), np.median(flips.distance))
    twice = (flips.distance < 0.25).mean()
    assert f"A radius of 0.5 is infeasible for {100 * (~near).mean():.0f}% of 60 inputs" in str(found)
    assert f"more than twice too large for {100 * twice:.0f}%" in str(found)


def test_of_a_curved_network_the_closest_flip_is_nearer() -> None:
    net = random_network(4, widths=(6, 20, 3))
    X = np.random.default_rng(1).standard_normal((40, 6))
    flips = fo.closest_flip_points(net, X)
    found = fo.explain.adversarial(net, X, radius=1.5, flips=flips)
    assert (found.distance <= 1.5 * (1 + 1e-12)).all()
    assert found.success.any()
    some = found.success
    assert (found.crossing[some] <= found.distance[some]).all()
    assert (found.crossing[some] >= found.flip_distance[some] * (1 - 1e-6)).all()
    np.testing.assert_array_equal(found.success, net.predict(found.x) != net.predict(X))
    loss = -np.log(net.probabilities(found.x))[np.arange(40), found.classes[:, 1]]
    rng = np.random.default_rng(2)
    for _ in range(50):  # no point of the ball that is drawn has less loss
        D = rng.standard_normal(X.shape)
        other = X + 1.5 * D / np.linalg.norm(D, axis=1, keepdims=True)
        assert (-np.log(net.probabilities(other))[np.arange(40), found.classes[:, 1]] >= loss - 1e-6).all()


def test_targets_radii_and_bounds_are_kept_to() -> None:
    net = three_classes()
    X = np.array([[0.5, 0.0], [1.0, 0.0], [0.5, 3.0]])
    every = fo.closest_flip_points(net, X, targets="all")
    found = fo.explain.adversarial(net, X, radius=[1.0, 0.5, 1.0], targets=[1, 1, 2], flips=every)
    assert found.classes[:, 1].tolist() == [1, 1, 2]
    assert found.radius.tolist() == [1.0, 0.5, 1.0]
    assert found.feasible.tolist() == [True, False, True]
    assert "The radii given are infeasible" in str(found)
    alone = fo.explain.adversarial(net, X, radius=[1.0, 0.5, 1.0], targets=[1, 1, 2])
    np.testing.assert_allclose(alone.x, found.x)
    boxed = fo.explain.adversarial(net, X, radius=2.0, bounds=(0.0, 3.0))
    assert boxed.x.min() >= 0
    assert boxed.x.max() <= 3
    assert (boxed.distance <= 2 * (1 + 1e-12)).all()


def test_a_radius_of_nothing_and_rows_without_a_flip() -> None:
    X = np.array([[1.0, 0.0], [np.nan, 0.0], [2.0, 1.0]])
    net = linear(W)
    found = fo.explain.adversarial(net, X, radius=0)
    assert found.row.tolist() == [0, 2]
    assert found.without_flip == 1
    assert not found.distance.any()
    assert not found.success.any()
    assert np.isnan(found.crossing).all()
    assert "Not one of the points of least loss flips. 1 input without a flip point is left out." in str(found)
    nothing = table([], [], np.empty((0, 2)), [])
    assert "cannot be said" in str(fo.explain.adversarial(net, X, flips=nothing))
    assert np.isnan(fo.explain.adversarial(net, X, flips=nothing).radii()).all()


def test_every_kind_of_network_is_taken() -> None:
    rng = np.random.default_rng(3)
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, 3)
    )
    images = rng.standard_normal((5, 1, 6, 6))
    assert fo.explain.adversarial(module, images, radius=5.0).success.any()
    X = rng.standard_normal((50, 2))
    estimator = LogisticRegression().fit(X, (X[:, 0] > 0).astype(int))
    found = fo.explain.adversarial(estimator, X, radius=0.3)
    np.testing.assert_array_equal(found.success, found.feasible)


def test_bad_arguments_are_named() -> None:
    X = np.ones((2, 2))
    net, flips = plane(W, X)
    with pytest.raises(fo.InputError, match="radius: expected a number >= 0, found -1"):
        fo.explain.adversarial(net, X, radius=-1)
    with pytest.raises(fo.InputError, match="radius: expected a number >= 0 or 2 of them, found shape .3"):
        fo.explain.adversarial(net, X, radius=[1.0, 2.0, 3.0])
    with pytest.raises(fo.InputError, match="steps: expected a whole number >= 1, found 0"):
        fo.explain.adversarial(net, X, steps=0)
    with pytest.raises(fo.InputError, match="targets: expected 'nearest' or 2 classes, one a row, found shape .1"):
        fo.explain.adversarial(net, X, targets=[1], flips=flips)
    with pytest.raises(fo.InputError, match="X: expected all 2 rows or more that the flips are of, found 1"):
        fo.explain.adversarial(net, X[:1], flips=flips)
