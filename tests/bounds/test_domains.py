from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import flipopt as fo
from flipopt.bounds import lower
from flipopt.bounds.domains import Domain
from tests.bounds.test_lipschitz import norms, sphere
from tests.strategies import networks, points, seeds


def domain(rng: np.random.Generator, rows: int, n: int, norm: float) -> Domain:
    down, up = -rng.uniform(0, 1, (rows, n)), rng.uniform(0, 1, (rows, n))
    down[rng.uniform(size=(rows, n)) < 0.4] = 0.0
    up[rng.uniform(size=(rows, n)) < 0.2] = np.inf
    return Domain(rng.uniform(0.1, 2, rows), norm, down, up)


@given(st.integers(1, 8), norms, seeds)
def test_no_point_of_the_domain_falls_farther(n: int, norm: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    here, A = domain(rng, 3, n, norm), rng.standard_normal((3, 4, n))
    fall = here.fall(A)
    for row in range(3):
        D = here.radius[row] * rng.uniform(0, 1, (300, 1)) * sphere(rng, 300, n, norm)
        D = np.clip(D, here.down[row], here.up[row])
        D = np.concatenate([D, np.clip(-here.radius[row] / n * np.sign(A[row]), here.down[row], here.up[row])])
        assert (-A[row] @ D.T <= fall[row][:, None]).all()
    assert (fall <= Domain(here.radius, norm).fall(A) + 1e-12).all()


def test_in_the_2_norm_it_is_nearly_the_exact_value() -> None:
    rng = np.random.default_rng(0)
    here, A = domain(rng, 6, 5, 2), rng.standard_normal((6, 1, 5))
    fall = here.fall(A)
    for row in range(6):
        r, a = here.radius[row], A[row, 0]
        inside = {"type": "ineq", "fun": lambda d, r=r: r * r - d @ d, "jac": lambda d: -2 * d}
        box = list(zip(here.down[row], np.minimum(here.up[row], 10.0), strict=True))
        exact = minimize(
            lambda d, a=a: a @ d, np.zeros(5), jac=lambda d, a=a: a, bounds=box, constraints=inside, tol=1e-12
        )
        assert -exact.fun <= fall[row, 0] + 1e-9
        assert fall[row, 0] <= -exact.fun * 1.05 + 1e-9


def test_a_zero_with_a_box_is_where_a_lead_may_be_used_up() -> None:
    rng = np.random.default_rng(1)
    here, A, value = domain(rng, 20, 6, 2), rng.standard_normal((20, 3, 6)), rng.uniform(0.01, 2, (20, 3))
    zero = here.zero(value, A)
    without = Domain(here.radius, 2).zero(value, A)
    assert (np.isfinite(zero) | (value > here.fall(A)).all(axis=1)).all()
    assert (zero >= 0.98 * np.minimum(without, here.radius) - 0.01).all()
    within = np.minimum(zero, here.radius)
    assert (value >= Domain(within, 2, here.down, here.up).fall(A) - 1e-9).all()


@given(networks(), seeds, norms)
def test_with_bounds_nothing_flips_within_what_is_proved(net, seed: int, norm: float) -> None:
    x, rng = points(net, None, seed), np.random.default_rng(seed)
    box = x - rng.uniform(0, 1, net.n_inputs), x + rng.integers(0, 2, net.n_inputs)
    proved = float(lower(net, x, norm, bounds=box))
    D = rng.uniform(0, 1, (200, 1)) * sphere(rng, 200, net.n_inputs, norm)
    Y = net.logits(np.clip(x + min(proved, 1e6) * D, *box))
    assert (Y[:, net.logits(x).argmax()] >= Y.max(axis=1) - 1e-9 * (1 + np.abs(Y).max())).all()


def test_bounds_put_flips_of_images_farther_away_and_so_what_is_proved() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    X = shipped.X[40:46]
    plain, boxed = lower(shipped.network, X), lower(shipped.network, X, bounds=(0, 1))
    flips = fo.closest_flip_points(shipped.network, X, bounds=(0, 1))
    assert (boxed >= 0.95 * plain).all()
    assert np.median(boxed / plain) > 1.05
    assert (boxed <= flips.distance).all()


def test_bounds_are_checked() -> None:
    net = fo.DenseNetwork([np.eye(2), np.eye(2)], [np.zeros(2)] * 2, fo.ReLU())
    with pytest.raises(fo.InputError, match=r"bounds \(lower\): expected at most bounds \(upper\)"):
        lower(net, np.ones(2), bounds=(1, 0))
