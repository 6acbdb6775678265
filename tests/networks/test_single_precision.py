"""Networks in float32: what they are good for, and that their rows do not depend on each other."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from flipopt.features.shipped import load_shipped
from flipopt.networks import DenseNetwork
from flipopt.networks.single_precision import AT_ONCE, FEWEST, SinglePrecision

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def exact() -> DenseNetwork:
    return load_shipped("mnist-net1").network.in_float64


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return load_shipped("mnist-net1").X.astype(np.float64)


def seeds(rows: int, classes: int) -> np.ndarray:
    return np.eye(classes)[np.arange(rows) % classes]


def test_logits_and_gradients_agree_to_single_precision(exact: DenseNetwork, X: np.ndarray) -> None:
    # 13 layers with steep erfs amplify 6e-8 to about 1e-5; ten times that is the margin
    points = np.arange(len(X))
    Y, pullback = exact.linearize_rows(X)
    Y_32, pullback_32 = exact.in_float32.linearize_rows(X)
    G, G_32 = (pull(seeds(len(X), 10), points) for pull in (pullback, pullback_32))
    assert isinstance(exact.in_float32, SinglePrecision)
    assert Y_32.dtype == G_32.dtype == np.float64
    np.testing.assert_allclose(Y_32, Y, atol=1e-4 * np.abs(Y).max())
    sizes = np.linalg.norm(G, axis=1)
    assert np.median(np.linalg.norm(G_32 - G, axis=1) / sizes) < 1e-4
    assert (np.linalg.norm(G_32 - G, axis=1) < 1e-2 * sizes).all()


@pytest.mark.parametrize("rows", [1, 2, FEWEST - 1, FEWEST, FEWEST + 1, 61, 150])
def test_a_row_does_not_depend_on_the_others(exact: DenseNetwork, X: np.ndarray, rows: int) -> None:
    # bit by bit: an iteration can turn a last bit into another local minimum
    single = exact.in_float32
    chosen = np.random.default_rng(rows).permutation(len(X))[:rows]
    Y, pullback = single.linearize_rows(X)
    Y_part, pullback_part = single.linearize_rows(X[chosen])
    V = seeds(len(X), 10)
    assert np.array_equal(Y_part, Y[chosen])
    G = pullback(V, np.arange(len(X)))
    assert np.array_equal(pullback_part(V[chosen], np.arange(rows)), G[chosen])


def test_more_rows_than_fit_one_block_give_what_they_give_alone(exact: DenseNetwork, X: np.ndarray) -> None:
    many = np.concatenate([X] * (AT_ONCE // len(X) + 2))
    points = np.random.default_rng(0).integers(0, len(many), 300)
    V = seeds(300, 10)
    Y, pullback = exact.in_float32.linearize_rows(X)
    Y_many, pullback_many = exact.in_float32.linearize_rows(many)
    assert np.array_equal(Y_many, np.resize(Y, Y_many.shape))
    assert np.array_equal(pullback_many(V, points), pullback(V, points % len(X)))


def test_no_rows_are_no_trouble(exact: DenseNetwork) -> None:
    Y, pullback = exact.in_float32.linearize_rows(np.zeros((0, exact.n_inputs)))
    assert Y.shape == (0, 10)
    assert pullback(np.zeros((0, 10)), np.zeros(0, dtype=int)).shape == (0, exact.n_inputs)


def test_a_point_may_have_several_gradients(exact: DenseNetwork, X: np.ndarray) -> None:
    _, pullback = exact.in_float32.linearize_rows(X[:3])
    G = pullback(seeds(4, 10), np.array([0, 2, 2, 1]))
    assert G.shape == (4, exact.n_inputs)
    assert not np.array_equal(G[1], G[2])


def test_small_networks_stay_as_they_are() -> None:
    small = load_shipped("mnist-fcn").network
    assert small.in_float32 is small


def test_without_torch_the_network_stays_as_it_is(exact: DenseNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    fresh = exact.with_activations(exact.activations)
    assert fresh.in_float32 is fresh


def test_the_threads_of_torch_are_left_as_they_were(exact: DenseNetwork, X: np.ndarray) -> None:
    import torch

    before = torch.get_num_threads()
    exact.in_float32.linearize_rows(X[:2])
    assert torch.get_num_threads() == before
