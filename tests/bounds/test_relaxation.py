from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.bounds import lower
from flipopt.bounds.lines import lines_of
from flipopt.bounds.relaxation import Hidden, nearest_zero
from flipopt.networks.activations import Leaky, Softplus
from tests.bounds.test_lipschitz import norms, sphere
from tests.strategies import examples, networks, points, seeds

ACTIVATIONS = [
    fo.Erf(0.7),
    fo.Tanh(),
    fo.ReLU(),
    fo.PReLU(0.3),
    fo.PReLU(1.7),
    fo.PReLU(-0.5),
    fo.ELU(0.6),
    fo.ELU(1.0),
    fo.ELU(2.0),
    fo.Identity(),
    Softplus(0.5),
    Leaky(fo.Erf(0.5), 0.2),
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("size", [1e-6, 0.1, 1.0, 30.0])
def test_lines_are_below_and_above_on_the_whole_interval(activation: fo.Activation, size: float) -> None:
    rng = np.random.default_rng(0)
    ends = size * np.sort(rng.standard_normal((400, 2)) * 10 ** rng.uniform(-3, 1, (400, 1)), axis=1)
    ends[:20, 1] = ends[:20, 0]
    low, high = ends[:, [0]], ends[:, [1]]
    lines = lines_of(activation, low, high)
    for c in np.linspace(low, high, 101):
        y = activation.value(c)
        assert (lines.s_low * c + lines.t_low <= y).all()
        assert (y <= lines.s_high * c + lines.t_high).all()


@pytest.mark.parametrize("activation", [fo.Erf(0.7), fo.Tanh(), fo.ReLU(), fo.PReLU(1.7), fo.ELU(0.6)], ids=repr)
def test_lines_touch_where_they_can(activation: fo.Activation) -> None:
    low, high = np.array([[-0.3, 0.2, -2.0, -1.0]]), np.array([[0.4, 1.5, -0.1, 0.9]])
    lines = lines_of(activation, low, high)
    c = np.linspace(low, high, 2001)
    y = activation.value(c)
    for s, t in ((lines.s_low, lines.t_low), (lines.s_high, lines.t_high)):
        assert (np.abs(s * c + t - y).min(axis=0) < 1e-3).all()


@given(networks(), seeds, norms, st.floats(0.01, 3))
def test_pre_activations_and_leads_stay_within_their_bounds(net, seed: int, norm: float, radius: float) -> None:
    X, rng = points(net, 2, seed), np.random.default_rng(seed)
    i = net.logits(X).argmax(axis=1)
    hidden = Hidden.on(net, X, np.array([radius, radius / 2]), norm)
    proved = np.minimum(nearest_zero(net, X, i, np.array([radius, radius / 2]), norm), [radius, radius / 2])
    for row, r in enumerate((radius, radius / 2)):
        D = rng.uniform(0, 1, size=(100, 1)) * sphere(rng, 100, net.n_inputs, norm)
        for (low, high), c in zip(hidden.ranges, net.pre_activations(X[row] + r * D)):
            assert (low[row] <= c).all()
            assert (c <= high[row]).all()
        Y = net.logits(X[row] + proved[row] * D)
        assert (Y[:, i[row]] >= Y.max(axis=1) - 1e-9 * (1 + np.abs(Y).max())).all()


@examples(15)
@given(networks(), seeds, norms)
def test_the_best_is_no_less_than_lipschitz_bounds_and_free_of_flips(net, seed: int, norm: float) -> None:
    x, rng = points(net, None, seed), np.random.default_rng(seed)
    proved = float(lower(net, x, norm))
    assert proved >= lower(net, x, norm, method="lipschitz")
    y, J = net.logits(x), net.jacobian(x)
    downhill = J - J[y.argmax()]
    steep = np.linalg.norm(downhill, ord=norm, axis=1) > 1e-12
    downhill = downhill[steep] / np.linalg.norm(downhill[steep], ord=norm, axis=1, keepdims=True)
    D = np.concatenate([sphere(rng, 200, net.n_inputs, norm), downhill])
    Y = net.logits(x + min(proved, 1e6) * D)
    assert (Y[:, y.argmax()] >= Y.max(axis=1) - 1e-9 * (1 + np.abs(Y).max())).all()


@pytest.mark.parametrize("power", [-8, 8])
def test_layers_of_very_different_size_change_nothing(power: int) -> None:
    rng = np.random.default_rng(1)
    W, b = [rng.standard_normal(pair) for pair in ((3, 8), (8, 8), (8, 3))], [rng.standard_normal(k) for k in (8, 8, 3)]
    net, factor = fo.DenseNetwork(W, b, fo.ReLU()), 10.0**power
    other = fo.DenseNetwork([W[0] * factor, W[1], W[2] / factor], [b[0] * factor, b[1] * factor, b[2]], fo.ReLU())
    X = rng.standard_normal((20, 3))
    assert lower(other, X) == pytest.approx(lower(net, X), rel=1e-3)


def test_what_is_not_a_method_is_an_error() -> None:
    with pytest.raises(fo.InputError, match="method: expected one of best, lipschitz"):
        lower(fo.DenseNetwork([np.eye(2)], [np.zeros(2)]), np.ones(2), method="guess")
