from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.bounds.boxes import leads_on_boxes
from tests.strategies import networks, points, seeds


def deviation(net: fo.DenseNetwork, i: int, centre: np.ndarray, half: np.ndarray, free: np.ndarray, seed: int):
    """How far sampled leads are from the affine part of their enclosure, (boxes, n_classes), and the errors."""
    found = leads_on_boxes(net, i, centre, half, free)
    e = np.random.default_rng(seed).uniform(-1, 1, (len(centre), 60, len(free)))
    e[:, :20] = np.sign(e[:, :20])  # corners
    X = np.repeat(centre[:, None], 60, axis=1)
    X[:, :, free] += half[:, None] * e
    Y = net.logits(X.reshape(-1, net.n_inputs)).reshape(len(centre), 60, -1)
    affine = found.value[:, None] + np.einsum("bpf,bfk->bpk", e, found.slopes)
    return np.abs(Y[:, :, [i]] - Y - affine).max(axis=1), found


@given(networks(), seeds, st.floats(-6, 2))
def test_sampled_leads_are_within_their_enclosure(net, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    centre = points(net, 8, seed)
    free = np.flatnonzero(rng.random(net.n_inputs) < 0.7)
    half = 10.0**size * rng.uniform(0, 1, (8, len(free)))
    far, found = deviation(net, int(rng.integers(net.n_classes)), centre, half, free, seed)
    assert (far <= found.error).all()


@given(networks(smooth=True), seeds)
def test_errors_of_smooth_networks_fall_with_the_square_of_the_size(net, seed: int) -> None:
    centre = points(net, 8, seed)
    free = np.arange(net.n_inputs)
    large, small = (leads_on_boxes(net, 0, centre, np.full(centre.shape, h), free).error for h in (1e-3, 1e-4))
    assert (small <= 0.02 * large + 1e-9).all()


def test_within_a_piece_of_a_relu_network_hardly_any_error_is_left() -> None:
    net = fo.DenseNetwork([np.eye(2), np.eye(2)], [np.zeros(2), np.zeros(2)], fo.ReLU())
    found = leads_on_boxes(net, 0, np.array([[1.0, 2.0]]), np.full((1, 2), 0.5), np.arange(2))
    assert found.error.max() < 1e-8
    np.testing.assert_allclose(found.value, [[0.0, -1.0]], atol=1e-8)
    np.testing.assert_allclose(found.slopes[0], [[0.0, 0.5], [0.0, -0.5]], atol=1e-8)


def test_across_a_kink_the_error_is_that_of_the_best_line() -> None:
    net = fo.DenseNetwork([np.ones((1, 1)), np.array([[0.0, -1.0]])], [np.zeros(1), np.zeros(2)], fo.ReLU())
    found = leads_on_boxes(net, 0, np.zeros((1, 1)), np.ones((1, 1)), np.arange(1))
    np.testing.assert_allclose(found.error[0, 1], 0.25, rtol=1e-6)  # max(c, 0) on [-1, 1] is c / 2 + 1/4 +- 1/4
    np.testing.assert_allclose(found.slopes[0, 0, 1], 0.5, rtol=1e-6)
