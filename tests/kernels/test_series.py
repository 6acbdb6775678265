from __future__ import annotations

import numpy as np
from scipy.special import erf

from flipopt.kernels.series import erf_series


def test_the_series_is_that_of_a_fit_through_many_points() -> None:
    """Cauchy's integral by the trapezoidal rule on a circle, which is exact to rounding."""
    rng = np.random.default_rng(0)
    C = 0.3 * rng.standard_normal((4, 6, 5))
    C[:, 0] = rng.uniform(-3, 3, size=(4, 5))
    sigma = rng.uniform(0.5, 2.0, size=5)
    u = 0.5 * np.exp(2j * np.pi * np.arange(128) / 128)
    values = erf(np.einsum("uk,rkn->urn", u[:, None] ** np.arange(6), C) / sigma)
    wanted = [(values * u[:, None, None] ** -k).mean(axis=0).real for k in range(6)]
    np.testing.assert_allclose(erf_series(C, sigma), np.stack(wanted, axis=1), rtol=1e-10, atol=1e-12)


def test_rows_do_not_depend_on_each_other() -> None:
    C = np.random.default_rng(0).standard_normal((9, 4, 7))
    np.testing.assert_array_equal(erf_series(C, 0.7)[3:5], erf_series(C[3:5], 0.7))
