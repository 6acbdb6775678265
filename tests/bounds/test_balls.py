from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given

import flipopt as fo
from flipopt.bounds import lower
from tests.bounds.test_lipschitz import norms
from tests.strategies import examples, networks, points, seeds


@examples(15)
@given(networks(), seeds, norms)
def test_a_row_of_many_is_what_it_is_alone(net, seed: int, norm: float) -> None:
    X = points(net, 7, seed)
    assert lower(net, X, norm) == pytest.approx(np.array([lower(net, x, norm) for x in X]), rel=1e-9)


@pytest.mark.parametrize(("name", "method"), [("mnist-fcn", "best"), ("mnist-net1", "lipschitz")])
def test_verified_flips_are_beyond_what_is_proved(name: str, method: str) -> None:
    shipped = fo.load_shipped(name)
    flips = fo.closest_flip_points(shipped.network, shipped.X[:20])
    proved = lower(shipped.network, shipped.X[:20], method=method)
    assert flips.success.sum() >= 18
    assert (proved > 0).all()
    assert (proved <= flips.distance).all()


def test_relaxations_prove_more_than_half_of_the_distance_of_images() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    flips = fo.closest_flip_points(shipped.network, shipped.X[:50])
    proved, before = (lower(shipped.network, shipped.X[:50], method=method) for method in ("best", "lipschitz"))
    assert np.median(proved / flips.distance) > 0.5
    assert (proved >= before).all()


def test_a_linear_classifier_is_bounded_exactly() -> None:
    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((4, 3)), rng.standard_normal((50, 4))
    Y = X @ W
    i, rows = Y.argmax(axis=1), np.arange(50)
    with np.errstate(divide="ignore", invalid="ignore"):
        leads = (Y[rows, i][:, None] - Y) / np.linalg.norm(W[:, i, None] - W[:, None], axis=0)
    leads[rows, i] = np.inf
    assert lower(fo.DenseNetwork([W], [np.zeros(3)]), X) == pytest.approx(leads.min(axis=1), rel=1e-8)


def test_a_row_that_is_no_number_costs_no_other() -> None:
    net = fo.DenseNetwork([np.eye(2)], [np.zeros(2)])
    X = np.array([[1.0, 0.0], [np.nan, 0.0], [3.0, 3.0]])
    assert lower(net, X) == pytest.approx([np.sqrt(0.5), np.nan, 0.0], nan_ok=True)
    assert np.isnan(lower(net, X[1]))
    assert lower(net, X[:0]).shape == (0,)


def test_of_a_network_that_is_no_chain_of_known_layers_nothing_is_said() -> None:
    module = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 4, 4)), torch.nn.MaxPool2d(2), torch.nn.Flatten())
    with pytest.raises(fo.InputError, match="network: expected a chain of linear layers.* found MaxPool2d"):
        lower(fo.TorchNetwork(module, (16,)), np.zeros((1, 16)))
