"""The multipliers of many small projections, against scipy's one at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, nnls

from flipopt.kernels.projections import multipliers
from tests.strategies import seeds


def gram(A: np.ndarray) -> np.ndarray:
    return np.matmul(A, A.transpose(0, 2, 1))


def by_nnls(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest |b - lam A| with lam_0 free and the others >= 0: a free number is a difference of two others."""
    split = np.concatenate([A, -A[:1]]).T
    return np.asarray(nnls(split, b)[1])


@given(seeds, st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_the_projection_is_the_nearest_point_of_the_cone(seed: int, rows: int, n: int, repeated: bool) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((4, rows, n)), rng.standard_normal((4, n))
    if repeated and rows > 1:
        A[:, -1] = A[:, 0] if seed % 2 else 2 * A[:, -2]
    use = rng.random((4, rows)) < 0.7
    use[:, 0] = True
    lam = multipliers(gram(A), np.matmul(A, b[:, :, None])[:, :, 0], use)
    assert (lam[~use] == 0).all()
    assert (lam[:, 1:] >= 0).all()
    for k in range(4):
        expected = by_nnls(A[k, use[k]], b[k])
        # The ridge of 1e-13 and the squared condition of the Gram matrix cost digits where rows are dependent.
        assert abs(np.linalg.norm(b[k] - lam[k] @ A[k]) - expected) <= 1e-6


@given(seeds, st.integers(1, 5))
def test_independent_rows_have_the_multipliers_of_bounded_least_squares(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    # Rows of condition 3 at most, so that the multipliers are known to 1e-11 or so.
    A = np.linalg.qr(rng.standard_normal((3, 8, rows)))[0].transpose(0, 2, 1) * rng.uniform(1, 3, (3, rows, 1))
    A += 0.3 * A[:, :1]
    b = rng.standard_normal((3, 8))
    lam = multipliers(gram(A), np.matmul(A, b[:, :, None])[:, :, 0], np.ones((3, rows), dtype=bool))
    low = np.where(np.arange(rows) == 0, -np.inf, 0.0)
    for k in range(3):
        expected = lsq_linear(A[k].T, b[k], (low, np.inf), method="bvls", tol=1e-14).x
        np.testing.assert_allclose(lam[k], expected, atol=1e-9)


@given(seeds, st.integers(1, 5))
def test_free_rows_may_have_either_sign(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.standard_normal((3, 8, rows)))[0].transpose(0, 2, 1) * rng.uniform(1, 3, (3, rows, 1))
    A += 0.3 * A[:, :1]
    b, free = rng.standard_normal((3, 8)), rng.random(rows) < 0.5
    lam = multipliers(gram(A), np.matmul(A, b[:, :, None])[:, :, 0], np.ones((3, rows), dtype=bool), free)
    for k in range(3):
        expected = lsq_linear(A[k].T, b[k], (np.where(free, -np.inf, 0.0), np.inf), method="bvls", tol=1e-14).x
        np.testing.assert_allclose(lam[k], expected, atol=1e-9)


@given(seeds, st.integers(1, 5))
def test_the_shortest_step_satisfies_every_row(seed: int, rows: int) -> None:
    """With q = -c the step lam A is the shortest with A d + c = 0 in the first row and >= 0 in the others."""
    rng = np.random.default_rng(seed)
    A, c = rng.standard_normal((2, rows, 8)), rng.standard_normal((2, rows))
    lam = multipliers(gram(A), -c, np.ones((2, rows), dtype=bool))
    after = c + np.matmul(A, np.matmul(lam[:, None], A).transpose(0, 2, 1))[:, :, 0]
    # Five rows in R^8 may have a condition of a few hundred, squared in the Gram matrix.
    np.testing.assert_allclose(after[:, 0], 0, atol=1e-7)
    assert (after >= -1e-7).all()
    np.testing.assert_allclose((lam * after)[:, 1:], 0, atol=1e-6)


def test_the_conditions_hold_in_many_crowded_cones() -> None:
    """Rows that point much the same way make multipliers enter and leave, several at a time."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20000, 6, 7)) + 1.5 * rng.standard_normal((20000, 1, 7))
    K, q = gram(A), np.matmul(A, rng.standard_normal((20000, 7, 1)))[:, :, 0]
    lam = multipliers(K, q, np.ones((20000, 6), dtype=bool))
    pull = (q - np.matmul(K, lam[:, :, None])[:, :, 0]) / np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    assert (lam[:, 1:] >= 0).all()
    # The worst of 20,000 Gram matrices has a condition of 1e7 or so.
    assert np.abs(pull[:, 0]).max() <= 1e-8
    assert pull[:, 1:].max() <= 1e-8
    assert np.abs((lam * pull)[:, 1:]).max() <= 1e-7


def test_a_zero_row_and_no_row_at_all_have_no_multipliers() -> None:
    A = np.array([[[1.0, 0.0], [0.0, 0.0]]] * 2)
    use = np.array([[True, True], [False, False]])
    lam = multipliers(gram(A), np.array([[2.0, 0.0], [2.0, 3.0]]), use)
    # The ridge changes the multiplier by 1e-13 of itself.
    np.testing.assert_allclose(lam, [[2.0, 0.0], [0.0, 0.0]], rtol=1e-12)


def test_no_problems_have_no_multipliers() -> None:
    assert multipliers(np.empty((0, 3, 3)), np.empty((0, 3)), np.empty((0, 3), dtype=bool)).shape == (0, 3)
