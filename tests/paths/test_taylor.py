from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn.linear_model import LogisticRegression

import flipopt as fo
from flipopt.paths.taylor import first_change
from tests.cases import disc, linear, three_classes
from tests.strategies import networks, points, seeds

W = np.array([3.0, -4.0])


def test_of_a_linear_classifier_the_estimate_is_the_closest_flip() -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    net = linear(W, 0.5)
    found, flips = fo.paths.taylor(net, X), fo.closest_flip_points(net, X)
    np.testing.assert_allclose(found.distance, flips.distance, rtol=1e-9)
    np.testing.assert_allclose(X + found.distance[:, None] * found.direction, flips.x, atol=1e-9)
    np.testing.assert_allclose(found.reached, flips.distance, rtol=1e-9)
    np.testing.assert_array_equal(found.classes, flips.classes)
    np.testing.assert_array_equal(found.met, flips.classes[:, 1])
    assert found.feasible.all()
    assert np.isinf(found.exit).all()


def test_of_three_linear_classes_the_nearest_is_chosen() -> None:
    X = np.random.default_rng(1).uniform(-4, 6, (80, 2))
    net = three_classes()
    every = fo.paths.taylor(net, X, targets="all")
    assert every.row.tolist() == np.repeat(np.arange(80), 2).tolist()
    assert (every.classes[:, 0] != every.classes[:, 1]).all()
    one = fo.paths.taylor(net, X)
    np.testing.assert_array_equal(one.distance, every.nearest().distance)
    np.testing.assert_allclose(one.distance, fo.closest_flip_points(net, X).distance, rtol=1e-9)
    chosen = fo.paths.taylor(net, X, targets=one.classes[:, 1])
    np.testing.assert_array_equal(chosen.direction, one.direction)


def test_of_a_disc_the_estimate_is_too_long_inside_and_too_short_outside_and_the_search_exact() -> None:
    # y_0 - y_1 = r^2 - s^2 at s from the centre, slope 2 s: (r - s)(r + s) / (2 s) > r - s inside, less outside.
    X = np.array([[0.5, 0.0], [0.0, 0.9], [3.0, 0.0], [0.0, -10.0]])
    s = np.array([0.5, 0.9, 3.0, 10.0])
    found = fo.paths.taylor(disc(1.0), X)
    np.testing.assert_allclose(found.distance, np.abs(1 - s**2) / (2 * s))
    np.testing.assert_allclose(found.reached, np.abs(1 - s), rtol=1e-10)
    outside = s > 1
    assert (found.distance[outside] < found.reached[outside]).all()
    beta = fo.explain.compare_taylor(found, fo.closest_flip_points(disc(1.0), X), X).beta
    np.testing.assert_allclose(beta, np.abs(1 - s) / found.distance, rtol=1e-6)


@given(networks(smooth=True), seeds)
def test_estimates_are_those_of_the_jacobian(net: fo.DenseNetwork, seed: int) -> None:
    X = points(net, 5, seed)
    for outputs in ("logits", "probabilities"):
        found = fo.paths.taylor(net, X, outputs=outputs)
        values = net.logits(X) if outputs == "logits" else net.probabilities(X)
        J, i = net.jacobian(X, outputs), values.argmax(axis=1)
        for row in range(5):
            others = [k for k in range(net.n_classes) if k != i[row]]
            with np.errstate(divide="ignore"):
                distance = [
                    (values[row, i[row]] - values[row, k]) / np.linalg.norm(J[row, i[row]] - J[row, k]) for k in others
                ]
            np.testing.assert_allclose(found.distance[row], min(distance), rtol=1e-6)
            assert found.classes[row, 0] == i[row]
        np.testing.assert_allclose(np.linalg.norm(found.direction, axis=1), np.isfinite(found.distance))


@given(networks(), seeds)
def test_what_is_reached_is_on_the_boundary(net: fo.DenseNetwork, seed: int) -> None:
    X = points(net, 6, seed)
    found = fo.paths.taylor(net, X)
    met = np.isfinite(found.reached)
    at = X + found.reached[:, None] * found.direction
    rows = np.arange(6)[met]
    Y = net.logits(at[met])
    own, other = Y[np.arange(len(rows)), found.classes[met, 0]], Y[np.arange(len(rows)), found.met[met]]
    np.testing.assert_allclose(own, other, atol=1e-8 * max(1, np.abs(Y).max(initial=0)))
    np.testing.assert_allclose(other, Y.max(axis=1), atol=1e-8 * max(1, np.abs(Y).max(initial=0)))
    assert (found.met[~met] == -1).all()


def test_bounds_are_left_where_the_direction_leaves_them() -> None:
    net = linear(np.array([1.0, 0.0]), -1.0)  # flips at x_0 = 1
    X = np.array([[0.0, 0.5], [0.5, 0.5], [3.0, 0.5], [-1.0, 0.5]])
    found = fo.paths.taylor(net, X, bounds=(0.0, [0.75, 1.0]))
    np.testing.assert_allclose(found.exit, [0.75, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(found.reached, [1.0, 0.5, 2.0, 2.0])
    assert not found.feasible.any()
    assert fo.paths.taylor(net, X[:2], bounds=(None, 1.0)).feasible.all()


def test_without_a_gradient_the_estimate_is_infinite_and_nothing_warns() -> None:
    flat = fo.DenseNetwork([np.zeros((2, 2)), np.eye(2)], [np.array([1.0, 0.0]), np.zeros(2)], fo.ReLU())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for outputs in ("logits", "probabilities"):
            found = fo.paths.taylor(flat, np.ones((2, 2)), outputs=outputs)
            assert np.isinf(found.distance).all()
            assert not found.direction.any()
            assert np.isnan(found.reached).all()
            assert not found.feasible.any()
            assert found.classes.tolist() == [[0, 1], [0, 1]]


def test_rows_that_are_not_finite_cost_the_others_nothing() -> None:
    X = np.array([[1.0, 0.0], [np.nan, 0.0], [2.0, 0.0]])
    found, alone = fo.paths.taylor(linear(W), X), fo.paths.taylor(linear(W), X[[0, 2]])
    np.testing.assert_array_equal(found.distance[[0, 2]], alone.distance)
    assert np.isnan(found.distance[1])
    assert found.classes[1].tolist() == [-1, -1]
    assert not found.feasible[1]
    assert len(fo.paths.taylor(linear(W), X[:0])) == 0


def test_a_saturated_network_is_searched_from_near_the_input() -> None:
    # At x = 4 the slope of erf is 1e-7: the estimate is millions of times too long, the boundary is at 0.
    net = fo.DenseNetwork([np.array([[1.0, 0.0]]), np.eye(2)], [np.zeros(2), np.zeros(2)], fo.Erf(1.0))
    found = fo.paths.taylor(net, np.array([[4.0]]))
    assert found.distance[0] > 1e6
    assert found.reached[0] == pytest.approx(4.0)


def test_one_row_more_than_are_looked_at_together_and_every_kind_of_network() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1500, 2))
    found = fo.paths.taylor(linear(W), X)
    assert found.row.tolist() == list(range(1500))
    np.testing.assert_allclose(found.distance, np.abs(X @ W) / 5)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 3))
    assert np.isfinite(fo.paths.taylor(module, rng.standard_normal((4, 1, 4, 4))).distance).all()
    estimator = LogisticRegression().fit(X[:99], (X[:99, 0] > 0).astype(int))
    np.testing.assert_allclose(
        fo.paths.taylor(estimator, X[:9]).reached, fo.closest_flip_points(estimator, X[:9]).distance
    )


def test_a_direction_in_which_only_a_third_class_gains_is_searched_too() -> None:
    # z_0 - z_1 falls fastest where class 2 takes from both, and there y_0 - y_1 grows.
    W, b = np.array([[0.26, -0.31, 8.75], [1.96, 1.8, 7.89]]), np.array([0.36, -1.21, 0.0])
    X = np.array([[0.66, -1.29]])
    found = fo.paths.taylor(fo.DenseNetwork([W], [b]), X, targets=[1], outputs="probabilities")
    assert (W[:, 0] - W[:, 1]) @ found.direction[0] > 0
    assert found.met.tolist() == [2]
    lead = (W[:, 0] - W[:, 2]) @ X[0] + b[0]
    assert found.reached[0] == pytest.approx(-lead / ((W[:, 0] - W[:, 2]) @ found.direction[0]))


def test_a_search_along_a_ray_ends_where_it_is_told() -> None:
    net, X, D = linear(np.array([-1.0, 0.0]), 1.0), np.zeros((3, 2)), np.array([[1.0, 0.0]] * 3)
    distance, met = first_change(net, X, D, np.array([0.1, 0.1, 2.0]), np.array([0.9, 1.1, 5.0]))
    np.testing.assert_allclose(distance, [np.nan, 1.0, 1.0])
    assert met.tolist() == [-1, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": "runner-up"}, "targets: expected 'nearest', 'all' or a class for each row, found 'runner-up'"),
        ({"targets": [0, 1, 1]}, "targets: expected 2 classes, one a row, found int64 .3"),
        ({"targets": [0, 2]}, "targets: expected classes from 0 to 1, found 0..2"),
        ({"outputs": "scores"}, "outputs: expected one of logits, probabilities, found 'scores'"),
        ({"bounds": 3}, "bounds: expected a pair"),
    ],
)
def test_bad_arguments_are_named(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.paths.taylor(linear(W), np.ones((2, 2)), **options)


def test_a_target_that_is_the_class_itself_has_no_estimate() -> None:
    found = fo.paths.taylor(linear(W), np.array([[1.0, 0.0], [1.0, 0.0]]), targets=[0, 1])
    assert np.isnan(found.distance[0])
    assert found.distance[1] == pytest.approx(0.6)
