"""Series of activations against mpmath, and their slopes in the complex plane."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf

import flipopt as fo
from flipopt.bounds.series import is_kinked, is_linear, known, series, steepness
from flipopt.networks.activations import Activation, Leaky, Softplus
from tests.strategies import seeds

ACTIVATIONS = [
    fo.Erf(0.7),
    fo.Tanh(),
    fo.ELU(1.3),
    fo.Identity(),
    fo.PReLU(0.3),
    fo.ReLU(),
    Softplus(0.6),
    Leaky(fo.Erf(0.5), 0.2),
    Leaky(fo.ELU(0.5), 0.1),
]


def name(activation: Activation) -> str:
    return repr(activation)


def exactly(activation: Activation, c):
    """By mpmath, on the side of 0 that c is on."""
    right = mpmath.re(c) >= 0
    match activation:
        case fo.Erf():
            return mpmath.erf(c / activation.sigma)
        case fo.Tanh():
            return mpmath.tanh(c)
        case fo.ELU():
            return c if right else activation.alpha * (mpmath.exp(c) - 1)
        case fo.PReLU():
            return c if right else activation.alpha * c
        case Softplus():
            return activation.width * mpmath.log(1 + mpmath.exp(c / activation.width))
        case Leaky():
            return (1 - activation.leak) * exactly(activation.inner, c) + activation.leak * c
    return c


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=name)
def test_coefficients_are_those_of_mpmath(activation: Activation) -> None:
    rng = np.random.default_rng(0)
    C = 0.5 * rng.standard_normal((7, 6))
    C[0] = [-2.0, -0.8, -0.3, 0.2, 0.9, 2.5]
    V = series(activation, C)
    for k in range(6):
        terms = [mpmath.mpf(float(c)) for c in C[:, k]]
        wanted = mpmath.taylor(lambda u, terms=terms: exactly(activation, mpmath.polyval(terms[::-1], u)), 0, 6)
        np.testing.assert_allclose(V[:, k], [float(v) for v in wanted], rtol=1e-9, atol=1e-12)


def complex_slope(activation: Activation, z: np.ndarray, right: np.ndarray) -> np.ndarray:
    match activation:
        case fo.Erf():
            return 2 / np.sqrt(np.pi) / activation.sigma * np.exp(-((z / activation.sigma) ** 2))
        case fo.Tanh():
            return 1 / np.cosh(z) ** 2
        case fo.ELU():
            return np.where(right, 1, activation.alpha * np.exp(z))
        case fo.PReLU():
            return np.where(right, 1, activation.alpha) + 0 * z
        case Softplus():
            return 1 / (1 + np.exp(-z / activation.width))
        case Leaky():
            return (1 - activation.leak) * complex_slope(activation.inner, z, right) + activation.leak
    return np.ones_like(z)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=name)
@given(seed=seeds, size=st.floats(1e-3, 1.4))
def test_no_slope_in_a_disc_is_steeper(activation: Activation, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    c, radius = 2 * rng.standard_normal(20), size * rng.uniform(size=20)
    z = c + radius * np.sqrt(rng.uniform(size=(300, 20))) * np.exp(2j * np.pi * rng.uniform(size=(300, 20)))
    rim = c + radius * np.exp(2j * np.pi * np.linspace(0, 1, 65))[:, None]
    slopes = np.abs(complex_slope(activation, np.concatenate([z, rim]), c >= 0)).max(axis=0)
    assert (slopes <= steepness(activation, c, radius) * (1 + 1e-12)).all()


def test_erf_is_nowhere_steeper_than_on_its_rim() -> None:
    """The bound is attained."""
    bound = steepness(fo.Erf(1.0), np.array([0.0, 1.0, 3.0]), np.array([0.5, 1.0, 0.5]))
    rim = np.array([0.0, 1.0, 3.0]) + np.array([0.5, 1.0, 0.5]) * np.exp(1j * np.linspace(0, 2 * np.pi, 20001))[:, None]
    np.testing.assert_allclose(np.abs(2 / np.sqrt(np.pi) * np.exp(-(rim**2))).max(axis=0), bound, rtol=1e-6)
    assert erf(0.5) > 0


def test_a_pole_within_reach_has_no_bound() -> None:
    assert np.isinf(steepness(fo.Tanh(), np.zeros(1), np.array([1.6])))[0]
    assert np.isinf(steepness(Softplus(1.0), np.zeros(1), np.array([1.6])))[0]
    assert np.isfinite(steepness(fo.Tanh(), np.full(1, 5.0), np.array([1.6])))[0]


class Other(Activation):
    def value_and_slope(self, c):
        return c**3, 3 * c**2

    def curvature(self, c):
        return 6 * c

    def slope_range(self, low, high):
        return np.zeros_like(low), np.full_like(high, np.inf)


def test_what_is_known() -> None:
    assert known(Leaky(fo.Tanh(), 0.1))
    assert not known(Other())
    assert not known(Leaky(Other(), 0.1))
    assert is_linear(Leaky(fo.ReLU(), 0.1))
    assert not is_linear(fo.Tanh())
    assert is_kinked(Leaky(fo.ELU(1.0), 0.1))
    assert not is_kinked(fo.Erf())
    for function in (lambda: series(Other(), np.ones((2, 1))), lambda: steepness(Other(), np.ones(1), np.ones(1))):
        with pytest.raises(fo.InputError, match="Other"):
            function()
