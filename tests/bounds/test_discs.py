"""Enclosures of the logits along lines: what a network does on the complex disc is within them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf

import flipopt as fo
from flipopt.bounds.discs import Discs
from flipopt.networks.activations import Activation
from tests.cases import linear
from tests.strategies import networks, points, seeds


def logits(net: fo.DenseNetwork, X: np.ndarray) -> np.ndarray:
    """Of complex points, (batch, n_classes); of two-sided activations the side of the real part."""
    for k, (W, b) in enumerate(zip(net.weights, net.biases)):
        X = X @ W + b
        X = activated(net.activations[k], X) if k < net.n_layers - 1 else X
    return X


def activated(activation: Activation, c: np.ndarray) -> np.ndarray:
    match activation:
        case fo.Erf():
            return erf(c / activation.sigma)
        case fo.Tanh():
            return np.tanh(c)
        case fo.ELU():
            return np.where(c.real >= 0, c, activation.alpha * (np.exp(c) - 1))
        case fo.PReLU():
            return np.where(c.real >= 0, c, activation.alpha * c)
    return c


def deviations(net: fo.DenseNetwork, centre: np.ndarray, way: np.ndarray, found, u: np.ndarray) -> np.ndarray:
    """How far the logits at the points u get from their polynomials, (discs, n_classes)."""
    discs, order = found.coefficients.shape[:2]
    Y = logits(net, (centre[:, None] + u[:, None] * way[:, None]).reshape(-1, net.n_inputs)).reshape(discs, len(u), -1)
    Y = Y - np.take_along_axis(Y, found.reference[:, None, None], axis=2)
    P = np.einsum("uk,dkc->duc", u[:, None] ** np.arange(order), found.coefficients)
    return np.abs(P - Y).max(axis=1)


REAL = np.linspace(-1, 1, 31)
DISC = np.concatenate([r * np.exp(2j * np.pi * np.arange(24) / 24) for r in (0.5, 1.0)])


@given(networks(), seeds, st.integers(1, 10), st.floats(-4, 0.3))
def test_logits_are_within_their_enclosures(net: fo.DenseNetwork, seed: int, order: int, size: float) -> None:
    centre, way = points(net, 8, seed), 10**size * points(net, 8, seed + 1)
    found = Discs(net, order).enclose(centre, way)
    error = np.where(np.isfinite(found.error), found.error, np.inf)
    assert (deviations(net, centre, way, found, REAL) <= error).all()
    some = found.analytic
    assert (deviations(net, centre, way, found, DISC) <= error)[some].all()
    assert (found.error[np.arange(8), found.reference] == 0).all()


@given(networks(smooth=True), seeds)
def test_smooth_networks_have_narrow_enclosures_on_small_discs(net: fo.DenseNetwork, seed: int) -> None:
    centre, way = points(net, 5, seed), 1e-3 * points(net, 5, seed + 1)
    away = Discs(net, 6).enclose(centre, way)
    assert (away.error[away.analytic] < 1e-8).all()


def test_errors_fall_with_the_power_of_the_order() -> None:
    net = fo.load_shipped("mnist-net1").network
    X = fo.load_shipped("mnist-net1").X[:2]
    way = X[1:] - X[:1]
    discs = Discs(net, 5)
    errors = [discs.enclose(X[:1], radius * way).error.max() for radius in (8e-3, 4e-3)]
    assert errors[1] < errors[0] / 2**5.5


def test_a_linear_network_is_its_own_polynomial() -> None:
    net = linear(np.array([1.0, -2.0]), offset=0.5)
    found = Discs(net, 3).enclose(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]]))
    np.testing.assert_allclose(found.coefficients[0, :, 1], [-1.5, 1.0, 0.0, 0.0])
    assert found.error.max() < 1e-10


def test_a_kink_on_the_way_is_bounded_for_real_points_only() -> None:
    net = fo.DenseNetwork([np.ones((1, 1)), np.array([[1.0, 0.0]])], [np.zeros(1), np.array([0.0, 0.5])], fo.ReLU())
    passing, clear = (Discs(net, 2).enclose(np.array([[x]]), np.array([[0.1]])) for x in (0.05, 0.3))
    assert not passing.analytic[0]
    assert clear.analytic[0]
    assert passing.error.max() == pytest.approx(0.05, rel=1e-6)  # half the jump of the slope, times the reach
    assert clear.error.max() < 1e-10


def test_a_disc_that_is_far_too_large_has_no_bound() -> None:
    net = fo.DenseNetwork([np.ones((1, 1)), np.array([[1.0, 0.0]])], [np.zeros(1), np.zeros(2)], fo.Erf(0.5))
    found = Discs(net, 4).enclose(np.array([[0.2], [0.2]]), np.array([[0.6], [0.3]]))
    assert not np.isfinite(found.error[0]).all()
    assert np.isfinite(found.error[1]).all()
