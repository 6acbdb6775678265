from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

from flipopt.kernels.erf import erf_and_slope


def sweep(dtype: str) -> np.ndarray:
    """Both branches, the switch points, the tails, and tiny arguments."""
    u = np.concatenate([np.linspace(-30, 30, 200_001), np.logspace(-30, 1.5, 50_000), [0.0, 1.0, -1.0, 4.0, 6.0]])
    return u[None].astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_are_within_four_units_in_the_last_place(dtype: str) -> None:
    u = sweep(dtype)
    value, _ = erf_and_slope(u, np.ones(u.shape[1]))
    exact = erf(u.astype(np.float64))
    assert value.dtype == dtype
    assert np.abs(value - exact).max() <= 4 * np.finfo(dtype).eps
    away = np.abs(exact) > np.finfo(dtype).tiny
    assert np.abs(value[away] / exact[away] - 1).max() <= 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_are_accurate_relative_to_themselves(dtype: str) -> None:
    u = sweep(dtype)
    _, slope = erf_and_slope(u, np.ones(u.shape[1]))
    wide = u.astype(np.float64)
    exact = 2 / np.sqrt(np.pi) * np.exp(-wide * wide)
    normal = exact > 4 * np.finfo(dtype).tiny
    # Rounding u^2 alone moves exp(-u^2) by u^2 eps, whoever computes it.
    allowed = 4 * np.finfo(dtype).eps * (1 + wide**2)
    assert (np.abs(slope[normal] / exact[normal] - 1) <= allowed[normal]).all()
    assert (slope[~normal] <= 8 * np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_infinity_saturates_and_nan_is_not_hidden(dtype: str) -> None:
    u = np.array([[np.inf, -np.inf, np.nan, -0.0]], dtype=dtype)
    value, slope = erf_and_slope(u, np.ones(4))
    np.testing.assert_array_equal(value, [[1, -1, np.nan, -0.0]])
    assert np.signbit(value[0, 3])
    np.testing.assert_array_equal(slope[0, :3], [0, 0, np.nan])


def test_sigma_per_neuron_scales_value_and_slope() -> None:
    c, sigma = np.array([[0.3, 0.3], [-2.0, 5.0]]), np.array([0.5, 2.0])
    value, slope = erf_and_slope(c, sigma)
    np.testing.assert_allclose(value, erf(c / sigma), rtol=1e-15)
    np.testing.assert_allclose(slope, 2 / np.sqrt(np.pi) / sigma * np.exp(-((c / sigma) ** 2)), rtol=1e-14)
