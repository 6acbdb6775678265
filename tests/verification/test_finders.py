"""The two finders of multipliers, against each other and against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from flipopt.problem.setting import Setting
from flipopt.verification.multipliers import Objective, Rows, compiled, reference, stationarity
from tests.cases import linear
from tests.strategies import seeds


def points(
    seed: int, n: int, m: int, bounded: bool = False, weighted: bool = False, norm: float = 2
) -> tuple[Objective, np.ndarray, np.ndarray]:
    """Three points with m active rows each; with bounds, half of the features touch one."""
    rng = np.random.default_rng(seed)
    bounds = (-0.5, 0.5) if bounded else None
    weights = rng.uniform(0.1, 5.0, n) if weighted else None
    frozen = [0] if n > 2 and seed % 2 else None
    setting = Setting.of(linear(np.ones(n)), bounds=bounds, weights=weights, frozen=frozen, norm=norm)
    X, X_hat = rng.standard_normal((2, 3, n))
    X_hat = np.where(rng.random((3, n)) < 0.5, setting.clip(3 * X_hat, X_hat), setting.clip(0.1 * X_hat, X_hat))
    free = np.arange(m) < rng.integers(1, m + 1)
    N = rng.standard_normal((3, m, len(setting.free)))
    return Objective.at(setting, X, X_hat), N, free


def test_a_multiplier_of_the_wrong_sign_is_none() -> None:
    """g = (2, 2), a free row along x_0 and a one-sided one that would have to pull."""
    setting = Setting.of(linear(np.ones(2)))
    objective = Objective.at(setting, np.zeros((1, 2)), np.ones((1, 2)))
    N, free = np.array([[[1.0, 0.0], [0.0, -1.0]]]), np.array([True, False])
    for finder in (compiled, reference):
        lam, residual = finder(objective, N, free)
        np.testing.assert_allclose(lam, [[2.0, 0.0]], atol=1e-12)
        np.testing.assert_allclose(residual, np.sqrt(0.5), rtol=1e-12)


@pytest.mark.parametrize("length", [0.0, 5e-309, 1e-295])
def test_gradients_that_have_vanished_are_none(length: float) -> None:
    objective = Objective.at(Setting.of(linear(np.ones(2))), np.zeros((1, 2)), np.array([[30.0, -40.0]]))
    lam, residual = reference(objective, np.array([[[length, -length]]]), np.array([True]))
    np.testing.assert_array_equal(lam, 0.0)
    np.testing.assert_allclose(residual, 1.0, rtol=1e-12)


@given(seeds, st.integers(2, 12), st.integers(1, 5), st.booleans(), st.booleans())
def test_the_finders_agree(seed: int, n: int, m: int, bounded: bool, weighted: bool) -> None:
    objective, N, free = points(seed, n, m, bounded, weighted)
    by_gram, by_scipy = compiled(objective, N, free), reference(objective, N, free)
    for lam, _ in (by_gram, by_scipy):
        assert (lam[:, ~free] >= 0).all()
    # Both are the minimum unless Newton's method cycles; then the compiled one is an upper bound.
    assert (by_gram[1] >= by_scipy[1] - 1e-7).all()
    if not bounded:
        np.testing.assert_allclose(by_gram[1], by_scipy[1], atol=1e-7)


@given(seeds, st.integers(2, 12), st.integers(1, 5), st.booleans(), st.booleans())
def test_the_check_takes_the_smaller_residual(seed: int, n: int, m: int, bounded: bool, weighted: bool) -> None:
    objective, N, free = points(seed, n, m, bounded, weighted)
    gradient = np.zeros((3, m, n))
    setting = objective.setting
    gradient[:, :, setting.free] = N * np.sqrt(setting.weights[setting.free])
    rows = Rows(np.repeat(np.arange(3), m), np.tile(free, 3), gradient.reshape(3 * m, n))
    residual, lam = stationarity(objective, rows)
    np.testing.assert_allclose(residual, reference(objective, N, free)[1], atol=1e-7)
    # It is that of the multipliers returned: g - lam N, less what the bounds take up, by hand.
    left = objective.g - np.einsum("pm,pmn->pn", lam.reshape(3, m), N)
    if objective.edges is not None:
        left[(objective.edges[0] & (left > 0)) | (objective.edges[1] & (left < 0))] = 0
    np.testing.assert_allclose(residual, np.linalg.norm(left, axis=1) / np.linalg.norm(objective.g, axis=1), atol=1e-12)


@pytest.mark.parametrize("closeness", [1e-2, 1e-4, 1e-6])
def test_nearly_parallel_rows_are_told_apart(closeness: float) -> None:
    """The Gram matrix has the condition closeness^-2: beyond 1e13 the check turns to the reference."""
    objective, N, _ = points(2, 8, 2)
    N[:, 1] = N[:, 0] + closeness * np.random.default_rng(0).standard_normal(N[:, 0].shape)
    g = np.einsum("m,pmn->pn", np.array([-1.0, 1.0]) / closeness, N)
    at, free = Objective(objective.setting, g / 2, g, np.linalg.norm(g, axis=1), None), np.ones(2, dtype=bool)
    rows = Rows(np.repeat(np.arange(3), 2), np.ones(6, dtype=bool), N.reshape(6, 8))
    assert (stationarity(at, rows)[0] <= 1e-7).all()
    assert (reference(at, N, free)[1] <= 1e-7).all()
    if closeness > 1e-6:
        assert (compiled(at, N, free)[1] <= 1e-7).all()


@given(seeds, st.integers(2, 8), st.integers(1, 4), st.floats(-100, 100))
def test_the_size_of_the_rows_changes_no_residual(seed: int, n: int, m: int, exponent: float) -> None:
    objective, N, free = points(seed, n, m)
    scales = 10.0 ** (exponent * np.random.default_rng(seed).random((m, 1)))
    for finder in (compiled, reference):
        np.testing.assert_allclose(finder(objective, scales * N, free)[1], finder(objective, N, free)[1], atol=1e-7)


@given(seeds, st.integers(2, 8), st.integers(1, 4), st.sampled_from([1, np.inf]))
def test_in_other_norms_the_residual_is_at_most_that_of_no_multipliers(seed: int, n: int, m: int, norm: float) -> None:
    objective, N, free = points(seed, n, m, norm=norm)
    lam, residual = reference(objective, N, free)
    assert (lam[:, ~free] >= 0).all()
    # The smallest subgradient: signs of what has changed, and the mean of the signs of what has changed the most.
    size = np.sqrt(objective.change.shape[1]) if norm == 1 else 1.0
    assert (residual <= size + 1e-9).all()


def test_a_point_s_residual_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(4)
    setting = Setting.of(linear(np.ones(40)), bounds=(-1.0, 1.0))
    X, X_hat = rng.standard_normal((2, 50, 40)).clip(-1, 1)
    point = np.sort(rng.integers(0, 50, 150))
    rows = Rows(point, rng.random(150) < 0.5, rng.standard_normal((150, 40)))
    residual, lam = stationarity(Objective.at(setting, X, X_hat), rows)
    for k in range(50):
        part, kept = rows.among(np.array([k]), 50)
        alone, own = stationarity(Objective.at(setting, X[[k]], X_hat[[k]]), part)
        assert alone[0] == residual[k]  # to the last digit
        assert (own == lam[kept]).all()


def test_gradients_that_are_not_finite_explain_nothing() -> None:
    objective, N, free = points(0, 4, 2)
    N[1, 0, 0] = np.nan
    for finder in (compiled, reference):
        assert finder(objective, N, free)[1][1] == np.inf


def with_all_unknowns(norm: float, change: np.ndarray, edges: tuple, N: np.ndarray, free: np.ndarray) -> float:
    """The least |t G - lam N - nu| over lam, nu and the subgradient t G, each an unknown of its own."""
    n = len(change)
    low, high = np.flatnonzero(edges[0]), np.flatnonzero(edges[1])
    if norm == 1:
        t, fixed = np.flatnonzero(change == 0), np.sign(change)
        G, sides = np.eye(n)[t], (-np.ones(len(t)), np.ones(len(t)))
    else:
        t, fixed = np.flatnonzero(np.abs(change) == np.abs(change).max()), np.zeros(n)
        G, sides = np.diag(np.sign(change))[t], (np.zeros(len(t)), np.ones(len(t)))
    A = np.concatenate([N, -G, np.eye(n)[low], -np.eye(n)[high]]).T
    bounds = [
        np.concatenate([np.where(free, -np.inf, 0.0), sides[0], np.zeros(len(low) + len(high))]),
        np.concatenate([np.full(len(N), np.inf), sides[1], np.full(len(low) + len(high), np.inf)]),
    ]
    heavy = 1e4 * np.concatenate([np.zeros(len(N)), np.ones(len(t)), np.zeros(len(low) + len(high))])
    rows, right = (np.vstack([A, heavy]), np.append(fixed, 1e4)) if norm == np.inf else (A, fixed)
    found = lsq_linear(rows, right, bounds, method="bvls", tol=1e-14, max_iter=1000)
    return float(np.linalg.norm(A @ found.x - fixed))


@given(seeds, st.integers(2, 8), st.integers(1, 4), st.sampled_from([1, np.inf]), st.booleans())
def test_in_other_norms_the_subgradient_is_the_best_one(seed: int, n: int, m: int, norm: float, bounded: bool) -> None:
    objective, N, free = points(seed, n, m, bounded, norm=norm)
    change = objective.change
    chosen = np.random.default_rng(seed).random(change.shape) < 0.5
    chosen[:, 0] = True
    change[:] = np.where(chosen, np.sign(change) + (change == 0), 0.0 if norm == 1 else 0.5 * np.sign(change))
    edges = objective.edges or (np.zeros_like(chosen), np.zeros_like(chosen))
    residual = reference(objective, N, free)[1]
    for k in range(3):
        least = with_all_unknowns(norm, change[k], (edges[0][k], edges[1][k]), N[k], free)
        size = 1.0 if norm == np.inf or (change[k] == 0).any() else np.sqrt(len(change[k]))
        assert residual[k] == pytest.approx(least / size, abs=1e-6)
