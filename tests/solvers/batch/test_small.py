"""Problems in few variables: searched in full, and what that proves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import flipopt as fo
from flipopt.solvers import Batch, Small
from tests.cases import linear, three_classes
from tests.solvers.batch.nets import random_network

UNSEARCHED = Batch(small=Small(variables=0))
CELLS = 400
CELL = 8.0 / CELLS * np.sqrt(2)


def steep_network(seed: int, activation: fo.Activation, n: int = 2, classes: int = 3) -> fo.DenseNetwork:
    rng = np.random.default_rng(seed)
    widths = (n, 8, 8, classes)
    W = [3 * rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    return fo.DenseNetwork(W, [rng.standard_normal(width) for width in widths[1:]], activation)


def grid(x: np.ndarray) -> np.ndarray:
    side = 4 * np.linspace(-1, 1, CELLS + 1)
    return x + np.stack(np.meshgrid(side, side), axis=-1)


def nearest_on_a_grid(net: fo.Network, x: np.ndarray, allowed) -> float:
    """The distance to the nearest of many points in another class: too far by a cell at most."""
    X = grid(x)
    other = (net.predict(X.reshape(-1, 2)) != net.predict(x)).reshape(X.shape[:2])
    return float(np.linalg.norm(X[other & allowed(X)] - x, axis=1).min(initial=np.inf))


def nearest_tie_on_a_grid(net: fo.Network, x: np.ndarray, j: int, bound: float) -> float:
    """The same to where y_j - y_i changes its sign between two neighbours, with no other class above."""
    X, i, found = grid(x), int(net.predict(x)), np.inf
    lead = (net.logits(X.reshape(-1, 2)) @ (np.eye(net.n_classes)[i] - np.eye(net.n_classes)[j])).reshape(X.shape[:2])
    for axis in (0, 1):
        a, b = (np.take(lead, k, axis=axis) for k in (range(CELLS), range(1, CELLS + 1)))
        A, B = (np.take(X, k, axis=axis) for k in (range(CELLS), range(1, CELLS + 1)))
        across = (a > 0) != (b > 0)
        share = a[across] / (a[across] - b[across])
        tie = A[across] + share[:, None] * (B - A)[across]
        Y = net.logits(tie)
        held = (np.delete(Y, [i, j], axis=1).max(axis=1) <= Y[:, [i, j]].min(axis=1)) & (np.abs(tie) <= bound).all(
            axis=1
        )
        found = min(found, np.linalg.norm(tie[held] - x, axis=1).min(initial=np.inf))
    return float(found)


def anywhere(X: np.ndarray) -> np.ndarray:
    return np.ones(X.shape[:-1], dtype=bool)


@pytest.mark.parametrize("activation", [fo.Erf(0.7), fo.ReLU(), fo.Tanh()], ids=["erf", "relu", "tanh"])
def test_no_point_of_a_grid_is_nearer_than_what_is_settled(activation: fo.Activation) -> None:
    for seed in (0, 1, 4):
        net, x = steep_network(seed, activation), np.random.default_rng(seed).standard_normal(2)
        flip, known = fo.closest_flip_point(net, x), nearest_on_a_grid(net, x, anywhere)
        assert flip.success
        assert flip.settled
        assert known - CELL <= flip.distance <= known * (1 + 1e-3)


@pytest.mark.parametrize(("activation", "seed"), [(fo.Erf(0.4), 1), (fo.Erf(0.4), 2), (fo.ReLU(), 102)])
def test_what_descents_alone_miss_is_found(activation: fo.Activation, seed: int) -> None:
    net, x = steep_network(seed, activation), np.random.default_rng(seed).standard_normal(2)
    found, before = fo.closest_flip_points(net, x[None]), fo.closest_flip_points(net, x[None], solver=UNSEARCHED)
    assert found.success[0]
    assert found.settled[0]
    assert not before.distance[0] <= 1.001 * found.distance[0]  # a farther minimum, or none


def test_one_input_and_a_table_have_the_same_point_whatever_it_is_solved_with() -> None:
    for activation in (fo.Erf(0.5), fo.ReLU()):
        net, X = steep_network(1, activation), np.random.default_rng(3).standard_normal((5, 2))
        table = fo.closest_flip_points(net, X)
        assert table.settled.all()
        for k in (0, 4):
            flip = fo.closest_flip_point(net, X[k])
            np.testing.assert_array_equal(flip.x, table.x[k])
            assert flip.settled == table.settled[k]
        again = fo.closest_flip_points(net, X[::-1], solver=Batch(chunk=4))
        np.testing.assert_array_equal(again.x, table.x[::-1])
        np.testing.assert_array_equal(again.evaluations, table.evaluations[::-1])


@pytest.mark.parametrize("seed", [5, 7])
def test_bounds_weights_frozen_features_and_linear_constraints_count(seed: int) -> None:
    net, x = steep_network(seed, fo.Erf(0.7)), np.array([0.3, -0.2])
    half_plane = fo.LinearConstraint(np.array([[1.0, 1.0]]), np.array([0.0]), np.array([np.inf]))
    cases = [
        ({"bounds": (-0.8, 0.8)}, lambda X: (np.abs(X) <= 0.8).all(axis=-1)),
        ({"constraints": half_plane}, lambda X: X.sum(axis=-1) >= 0),
        ({"frozen": [1]}, lambda X: np.abs(X[..., 1] - x[1]) < 1e-12),
    ]
    for options, allowed in cases:
        flip, known = fo.closest_flip_point(net, x, **options), nearest_on_a_grid(net, x, allowed)
        assert flip.settled
        assert known - CELL <= flip.distance <= known * (1 + 1e-3)
    stretched = fo.DenseNetwork([net.weights[0] * [[0.1], [1.0]], *net.weights[1:]], net.biases, net.activations)
    weighted = fo.closest_flip_point(stretched, x / [0.1, 1.0], weights=[0.01, 1.0])
    assert weighted.settled
    np.testing.assert_allclose(weighted.distance, fo.closest_flip_point(net, x).distance, rtol=1e-6)


def test_a_class_of_its_own_is_sought_with_the_others_below_it() -> None:
    for seed in (0, 5):
        net, x = steep_network(seed, fo.Erf(0.7), classes=4), np.random.default_rng(seed).uniform(-1, 1, 2)
        table = fo.closest_flip_points(net, x[None], targets="all", bounds=(-3.0, 3.0))
        assert table.success.all()
        assert table.settled.all()
        known = [nearest_tie_on_a_grid(net, x, int(j), 3.0) for j in table.classes[:, 1]]
        assert (table.distance <= np.array(known) * (1 + 1e-3)).all()
        assert (table.distance >= np.array(known) - CELL).all()


def test_that_there_is_no_flip_is_proved_within_bounds_only() -> None:
    inside = fo.closest_flip_point(linear(np.ones(2)), np.ones(2), bounds=(0.5, 2.0))
    assert inside.status is fo.Status.INFEASIBLE
    assert inside.settled
    assert "no flip" in inside.message
    never = fo.DenseNetwork([np.zeros((2, 2))], [np.array([1.0, 0.0])])
    table = fo.closest_flip_points(never, np.ones((2, 2)))
    assert all(status is fo.Status.LIMIT for status in table.status)
    assert all("none is nearer than" in message for message in table.message)
    assert np.isnan(table.distance).all()
    assert not table.settled.any()


def test_an_input_outside_its_bounds_is_searched_within_them() -> None:
    with pytest.warns(UserWarning, match="outside"):
        flip = fo.closest_flip_point(linear(np.array([1.0, 0.0])), np.array([50.0, 9.0]), bounds=(-1.0, 1.0))
    assert flip.settled
    np.testing.assert_allclose(flip.x, [0.0, 1.0], atol=1e-9)


def test_what_the_limit_leaves_open_is_not_settled() -> None:
    net, x = steep_network(3, fo.Erf(0.3), n=3), np.ones(3)
    assert fo.closest_flip_point(net, x).settled
    flip = fo.closest_flip_point(net, x, solver=Batch(small=Small(boxes=4)))
    assert not flip.settled


def test_points_with_a_lead_are_searched_over_all_runners_up() -> None:
    flip = fo.closest_flip_point(three_classes(), np.array([1.0, 0.0]), target=1, valid=1 / (1 + np.exp(-0.5)))
    assert flip.settled
    np.testing.assert_allclose(flip.x[0], -0.25, atol=1e-6)


def test_more_variables_are_not_searched() -> None:
    net = random_network(2, (6, 12, 4))
    X = np.random.default_rng(2).standard_normal((5, 6))
    table, same = fo.closest_flip_points(net, X), fo.closest_flip_points(net, X, solver=UNSEARCHED)
    for name in ("x", "distance", "evaluations", "settled"):
        np.testing.assert_array_equal(getattr(table, name), getattr(same, name))


def test_a_network_that_shows_only_its_values_is_looked_at_on_a_grid() -> None:
    torch = pytest.importorskip("torch")

    class TwoDiscs(torch.nn.Module):  # type: ignore[name-defined,misc]
        """Class 1 in a small disc near the origin and in a large one farther off, which descents see first."""

        def forward(self, X):
            near = 0.04 - ((X - torch.tensor([-1.0, 0.0], dtype=X.dtype)) ** 2).sum(dim=1)
            far = 4.0 - ((X - torch.tensor([4.0, 0.0], dtype=X.dtype)) ** 2).sum(dim=1)
            return torch.stack([torch.zeros(len(X), dtype=X.dtype), torch.maximum(near, far)], dim=1)

    net = fo.TorchNetwork(TwoDiscs(), input_shape=(2,))
    flip = fo.closest_flip_point(net, np.array([0.3, 0.0]))
    np.testing.assert_allclose(flip.distance, 1.1, rtol=1e-6)


def test_options_do_not_change_what_is_found() -> None:
    net, x = steep_network(4, fo.Erf(0.7)), np.zeros(2)
    first = fo.closest_flip_point(net, x)
    finer = fo.closest_flip_point(net, x, solver=replace(Batch(), small=Small(gap=1e-5, starts=3)))
    np.testing.assert_allclose(finer.distance, first.distance, rtol=1e-3)
    assert finer.settled
