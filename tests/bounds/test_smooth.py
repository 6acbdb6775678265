from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.bounds import derivatives, lower, smooth
from flipopt.bounds.balls import lipschitz_lower
from flipopt.bounds.smooth import Expansion, smooth_lower
from tests.bounds.test_lipschitz import sphere
from tests.strategies import examples, points, seeds

ACTIVATIONS = [fo.Erf(0.7), fo.Erf(np.array([0.3, 1.0, 4.0])), fo.Tanh(), fo.Identity()]


@st.composite
def smooth_networks(draw: st.DrawFn) -> fo.DenseNetwork:
    widths = [draw(st.integers(1, 9)) for _ in range(draw(st.integers(2, 5)))] + [draw(st.integers(2, 4))]
    rng, gain = np.random.default_rng(draw(seeds)), draw(st.floats(0.3, 3.0))
    W = [gain * rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [0.5 * rng.standard_normal(width) for width in widths[1:]]
    kinds = [fo.Tanh(), fo.Identity(), fo.Erf(0.4), fo.Erf(1.5)]
    return fo.DenseNetwork(W, b, [draw(st.sampled_from(kinds)) for _ in widths[1:-1]])


def inside(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Points of the unit ball, half of them on the sphere."""
    return np.append(np.ones(count // 2), rng.uniform(0, 1, count - count // 2))[:, None] * sphere(rng, count, n, 2)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_coefficients_are_those_of_mpmath(activation: fo.Activation) -> None:
    c = np.array([[-2.0, 0.1, 0.9]])
    found = np.stack(derivatives.coefficients(activation, c, 6))[:, 0]
    for neuron in range(3):
        sigma = np.broadcast_to(getattr(activation, "sigma", 1.0), 3)[neuron]
        exact = {fo.Erf: lambda u, s=sigma: mpmath.erf(u / s), fo.Tanh: mpmath.tanh, fo.Identity: lambda u: u}
        expected = mpmath.taylor(exact[type(activation)], c[0, neuron], 6)
        np.testing.assert_allclose(found[:, neuron], [float(value) for value in expected], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_the_largest_coefficient_is_no_less_than_any_and_is_attained(activation: fo.Activation, k: int) -> None:
    rng = np.random.default_rng(k)
    ends = np.sort(rng.standard_normal((2, 300, 3)) * 10 ** rng.uniform(-2, 0.5, (300, 1)), axis=0)
    most = derivatives.largest(activation, ends[0], ends[1], k)
    c = np.linspace(ends[0], ends[1], 1001)
    found = np.abs(np.stack([derivatives.coefficients(activation, row, k)[k] for row in c])).max(axis=0)
    scale = derivatives.largest_of_all(activation, k)
    assert (found <= most).all()
    assert (most <= found + 2e-2 * scale + 1e-11).all()
    assert (most <= scale * (1 + 1e-9)).all()


@given(smooth_networks(), seeds, st.floats(0.01, 1.0))
def test_no_sampled_lead_is_below_the_margin_of_its_ball(net, seed: int, share: float) -> None:
    X, rng = points(net, 2, seed), np.random.default_rng(seed)
    expansion = Expansion.at(net, X)
    radius = share * np.minimum(expansion.bent, 10.0)
    margin = expansion.margin(radius)
    i = net.logits(X).argmax(axis=1)
    for row in range(2):
        Y = net.logits(X[row] + radius[row] * inside(rng, 200, net.n_inputs))
        leads = np.delete(Y[:, [i[row]]] - Y, i[row], axis=1)
        assert leads.min() >= margin[row]


@given(smooth_networks(), seeds)
def test_what_is_not_linear_is_dominated(net, seed: int) -> None:
    """For samples of the ball, f f^T is no more than Y: f^T Y^-1 f is at most 1."""
    x, rng = points(net, 1, seed), np.random.default_rng(seed)
    expansion = Expansion.at(net, x)
    radius = np.minimum(expansion.bent, 10.0) / 2
    Y, fails = expansion._beyond_linear(radius)
    if fails[0]:
        return
    D = radius * inside(rng, 100, net.n_inputs)

    def outputs(points: np.ndarray) -> np.ndarray:
        return net.activations[-1].value(net.pre_activations(points)[net.n_layers - 2])

    step = 1e-5
    J = np.stack([(outputs(x + step * e) - outputs(x - step * e))[0] / (2 * step) for e in np.eye(net.n_inputs)])
    f = outputs(x + D) - outputs(x) - D @ J
    size = np.trace(Y[0]) + 1e-16
    allowed = Y[0] + 1e-6 * size * np.eye(len(Y[0])) + 1e-16 * np.eye(len(Y[0]))
    assert (np.einsum("ki,ki->k", f, np.linalg.solve(allowed, f.T).T) <= 1 + 1e-6).all()


@examples(20)
@given(smooth_networks(), seeds)
def test_nothing_flips_within_what_is_proved(net, seed: int) -> None:
    X, rng = points(net, 3, seed), np.random.default_rng(seed)
    low, high = lipschitz_lower(net, X, 2, 10)
    proved = smooth_lower(net, X, low, high)
    assert (proved >= low).all()
    for x, r in zip(X, proved, strict=True):
        Y = net.logits(x + min(r, 1e6) * inside(rng, 300, net.n_inputs))
        assert (Y.argmax(axis=1) == net.logits(x).argmax()).all() or r == 0


@pytest.mark.parametrize("activation", [fo.Erf(0.5), fo.Tanh()], ids=repr)
def test_brute_force_in_two_inputs_agrees(activation: fo.Activation) -> None:
    rng = np.random.default_rng(0)
    W = [rng.standard_normal((2, 12)), rng.standard_normal((12, 8)) / 3, rng.standard_normal((8, 3))]
    net = fo.DenseNetwork(W, [0.3 * rng.standard_normal(k) for k in (12, 8, 3)], activation)
    X, angles = rng.standard_normal((20, 2)), np.linspace(0, 2 * np.pi, 241)
    proved = smooth_lower(net, X, *lipschitz_lower(net, X, 2, 10))
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    radii = np.geomspace(0.01, 5, 200)
    nearest = []
    for x in X:
        classes = net.logits((x + radii[:, None, None] * directions).reshape(-1, 2)).argmax(axis=1)
        flips = (classes != net.logits(x).argmax()).reshape(len(radii), -1).any(axis=1)
        nearest.append(radii[flips.argmax()] if flips.any() else np.inf)
    assert np.isfinite(nearest).sum() > 10
    assert (proved <= nearest).all()
    assert np.median((proved / nearest)[np.isfinite(nearest)]) > 0.1


def test_it_is_exact_for_a_network_that_is_linear() -> None:
    rng = np.random.default_rng(0)
    W, b = [rng.standard_normal(pair) for pair in ((5, 7), (7, 3))], [rng.standard_normal(k) for k in (7, 3)]
    net, X = fo.DenseNetwork(W, b, fo.Identity()), rng.standard_normal((6, 5))
    _, high = lipschitz_lower(net, X, 2, 10)
    assert smooth_lower(net, X, 1e-3 * high, high) == pytest.approx(high, rel=0.05)


def test_a_deep_network_with_many_inputs_is_proved_much_further_than_by_lipschitz_bounds() -> None:
    shipped = fo.load_shipped("mnist-net1")
    x = shipped.X[60]
    assert lower(shipped.network, x) > 50 * lower(shipped.network, x, method="lipschitz")


def test_a_row_does_not_depend_on_the_others() -> None:
    rng, widths = np.random.default_rng(0), (30, 50, 40, 40, 5)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    net, X = fo.DenseNetwork(W, [np.zeros(k) for k in widths[1:]], fo.Tanh()), rng.standard_normal((20, 30))
    np.testing.assert_array_equal(lower(net, X)[[0, 7, 19]], [lower(net, X[k]) for k in (0, 7, 19)])


@pytest.mark.parametrize("power", [-8, 8])
def test_layers_of_very_different_size_change_nothing(power: int) -> None:
    rng, factor = np.random.default_rng(1), 10.0**power
    W, b = [rng.standard_normal(pair) for pair in ((3, 8), (8, 8), (8, 3))], [rng.standard_normal(k) for k in (8, 8, 3)]
    net, X = fo.DenseNetwork(W, b, fo.Erf(1.0)), rng.standard_normal((10, 3))
    other = fo.DenseNetwork([W[0] * factor, W[1] * factor, W[2]], [*(factor * v for v in b[:2]), b[2]], fo.Erf(factor))
    low, high = lipschitz_lower(net, X, 2, 10)
    assert smooth_lower(other, X, low, high) == pytest.approx(smooth_lower(net, X, low, high), rel=1e-6)


def test_only_erf_tanh_and_identity_have_an_expansion() -> None:
    W, b = [np.eye(2)] * 3, [np.zeros(2)] * 3
    assert smooth.is_smooth(fo.DenseNetwork(W, b, [fo.Erf(1.0), fo.Identity()]))
    assert not smooth.is_smooth(fo.DenseNetwork(W, b, [fo.Erf(1.0), fo.ReLU()]))
    assert not smooth.is_smooth(fo.DenseNetwork(W[:1], b[:1]))
