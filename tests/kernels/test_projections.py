"""Many small projections at once, against scipy's one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize, nnls

from flipopt.kernels import projections
from tests.strategies import examples, seeds

NONE = np.empty(0)


def multipliers(K: np.ndarray, q: np.ndarray, use: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
    lam = np.empty_like(q)
    projections.multipliers(K, q, use, np.arange(q.shape[1]) == 0 if free is None else free, lam)
    return lam


def gram(A: np.ndarray) -> np.ndarray:
    return np.matmul(A, A.transpose(0, 2, 1))


def products(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(A, b[:, :, None])[:, :, 0]


def well_conditioned(rng: np.random.Generator, problems: int, rows: int) -> np.ndarray:
    """Rows in R^8 of condition 5 at most, so that multipliers are known to 1e-11 or so."""
    A = np.linalg.qr(rng.standard_normal((problems, 8, rows)))[0].transpose(0, 2, 1)
    A = A * rng.uniform(1, 3, (problems, rows, 1))
    return np.asarray(A + 0.3 * A[:, :1])


def cone_residual(columns: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What is left of b (n,) after its projection onto the cone of the rows of ``columns``."""
    return np.asarray(b - columns.T @ nnls(columns.T, b)[0])


def shortest(A: np.ndarray, c: np.ndarray, bounds: list[tuple[float, float]] | None = None) -> np.ndarray | None:
    """The shortest d with A d + c = 0 in the first row and >= 0 in the others, by SLSQP; None if it finds none."""
    return least(np.eye(A.shape[1]), np.zeros(A.shape[1]), A, c, bounds)


def least(
    B: np.ndarray, r: np.ndarray, A: np.ndarray, c: np.ndarray, bounds: list[tuple[float, float]] | None = None
) -> np.ndarray | None:
    """The minimiser of d . B d / 2 + r . d under the same constraints."""
    rows = [{"type": "eq", "fun": lambda d: A[:1] @ d + c[:1], "jac": lambda d: A[:1]}]
    if len(A) > 1:
        rows.append({"type": "ineq", "fun": lambda d: A[1:] @ d + c[1:], "jac": lambda d: A[1:]})
    found = minimize(
        lambda d: d @ B @ d / 2 + r @ d,
        np.zeros(len(r)),
        jac=lambda d: B @ d + r,
        bounds=bounds,
        constraints=rows,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x if found.success else None


# Multipliers


@given(seeds, st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_the_projection_is_the_nearest_point_of_the_cone(seed: int, rows: int, n: int, repeated: bool) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((4, rows, n)), rng.standard_normal((4, n))
    if repeated and rows > 1:
        A[:, -1] = A[:, 0] if seed % 2 else 2 * A[:, -2]
    use = rng.random((4, rows)) < 0.7
    use[:, 0] = True
    lam = multipliers(gram(A), products(A, b), use)
    assert (lam[~use] == 0).all()
    assert (lam[:, 1:] >= 0).all()
    for k in range(4):
        mine = A[k, use[k]]
        left = cone_residual(np.concatenate([mine, -mine[:1]]), b[k])
        # The ridge of 1e-13 and the squared condition of the Gram matrix cost digits where rows are dependent.
        assert abs(np.linalg.norm(b[k] - lam[k] @ A[k]) - np.linalg.norm(left)) <= 1e-6


@given(seeds, st.integers(1, 5), st.booleans())
def test_independent_rows_have_the_multipliers_of_bounded_least_squares(seed: int, rows: int, first: bool) -> None:
    rng = np.random.default_rng(seed)
    A, b = well_conditioned(rng, 3, rows), rng.standard_normal((3, 8))
    free = np.arange(rows) == 0 if first else rng.random(rows) < 0.5
    lam = multipliers(gram(A), products(A, b), np.ones((3, rows), dtype=bool), free)
    for k in range(3):
        expected = lsq_linear(A[k].T, b[k], (np.where(free, -np.inf, 0.0), np.inf), method="bvls", tol=1e-14).x
        np.testing.assert_allclose(lam[k], expected, atol=1e-9)


def test_the_conditions_hold_in_many_crowded_cones() -> None:
    """Rows that point much the same way make multipliers enter and leave, several at a time."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20000, 6, 7)) + 1.5 * rng.standard_normal((20000, 1, 7))
    K, q = gram(A), products(A, rng.standard_normal((20000, 7)))
    lam = multipliers(K, q, np.ones((20000, 6), dtype=bool))
    pull = (q - products(K, lam)) / np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    assert (lam[:, 1:] >= 0).all()
    # The worst of 20,000 Gram matrices has a condition of 1e7 or so.
    assert np.abs(pull[:, 0]).max() <= 1e-8
    assert pull[:, 1:].max() <= 1e-8
    assert np.abs((lam * pull)[:, 1:]).max() <= 1e-7


def test_multipliers_known_by_hand() -> None:
    K = np.broadcast_to(np.array([[4.0, 0.0], [0.0, 1.0]]), (3, 2, 2)).copy()
    q = np.array([[-2.0, 3.0], [2.0, -3.0], [2.0, 3.0]])
    use = np.array([[True, True], [True, True], [False, True]])
    # The first is free, the second one-sided, and what is not in use is 0; the ridge changes 1e-13 of them.
    np.testing.assert_allclose(multipliers(K, q, use), [[-0.5, 3.0], [0.5, 0.0], [0.0, 3.0]], rtol=1e-11)


def test_a_zero_row_and_no_row_at_all_have_no_multipliers() -> None:
    A = np.array([[[1.0, 0.0], [0.0, 0.0]]] * 2)
    use = np.array([[True, True], [False, False]])
    lam = multipliers(gram(A), np.array([[2.0, 0.0], [2.0, 3.0]]), use)
    np.testing.assert_allclose(lam, [[2.0, 0.0], [0.0, 0.0]], rtol=1e-12)
    assert multipliers(np.empty((0, 3, 3)), np.empty((0, 3)), np.empty((0, 3), dtype=bool)).shape == (0, 3)


@given(seeds)
def test_a_problem_does_not_depend_on_the_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b, use = rng.standard_normal((7, 4, 6)), rng.standard_normal((7, 6)), rng.random((7, 4)) < 0.8
    K, q = gram(A), products(A, b)
    lam = multipliers(K, q, use)
    some = rng.permutation(7)[:3]
    np.testing.assert_array_equal(multipliers(K[some], q[some], use[some]), lam[some])


# Minimisers of quadratic models


@given(seeds, st.integers(1, 4))
@examples(20)
def test_model_multipliers_are_those_of_the_quadratic_program(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    A, c, r = well_conditioned(rng, 3, rows), rng.standard_normal((3, rows)), rng.standard_normal((3, 8))
    root = np.eye(8) + 0.2 * rng.standard_normal((3, 8, 8))
    B = np.matmul(root, root.transpose(0, 2, 1))
    H, use = np.linalg.inv(B), rng.random((3, rows)) < 0.8
    use[:, 0] = True
    HA, Hr = np.matmul(A, H), products(H, r)
    HA[~use] = np.nan  # what is not used may be anything
    lam, step = np.empty((3, rows)), np.empty((3, 8))
    projections.model_multipliers(A, HA, Hr, c, use, np.arange(rows) == 0, lam, step)
    assert (lam[:, 1:] >= 0).all()
    assert (lam[~use] == 0).all()
    for k in range(3):
        # B d + r = lam A, the rows hold, and multipliers belong to rows that hold with equality.
        size = 1 + np.abs(lam[k]).max() * np.linalg.cond(B[k])
        np.testing.assert_allclose(B[k] @ step[k] + r[k], lam[k] @ A[k], atol=1e-10 * size)
        after = A[k, use[k]] @ step[k] + c[k, use[k]]
        assert abs(after[0]) <= 1e-9 * size
        assert (after >= -1e-9 * size).all()
        best = least(B[k], r[k], A[k, use[k]], c[k, use[k]])
        assert best is not None
        value, expected = (d @ B[k] @ d / 2 + r[k] @ d for d in (step[k], best))
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-7)


# What is left of a gradient


def left_of(
    A: np.ndarray, r: np.ndarray, use: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lam, left, moving = np.empty(use.shape), np.empty_like(r), np.ones(r.shape, dtype=bool)
    projections.cone_distances(A, r, use, np.arange(use.shape[1]) == 0, low, high, lam, moving, left)
    return lam, moving, left


@given(seeds, st.integers(1, 5))
def test_cone_distances_without_bounds_are_those_of_nnls(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    A, r, use = well_conditioned(rng, 4, rows), rng.standard_normal((4, 8)), rng.random((4, rows)) < 0.7
    use[:, 0] = True
    none = np.ones((0, 8), dtype=bool)
    lam, moving, left = left_of(A, r, use, none, none)
    assert moving.all()
    for k in range(4):
        mine = A[k, use[k]]
        np.testing.assert_allclose(left[k], cone_residual(np.concatenate([mine, -mine[:1]]), r[k]), atol=1e-10)
        np.testing.assert_allclose(left[k], r[k] - lam[k] @ A[k], atol=1e-12)


def test_cone_distances_with_bounds_are_those_of_nnls_where_they_are_settled() -> None:
    """A bound's own row is +e or -e. Rounds of holding features are few: a case in fifty may be left unsettled."""
    rng = np.random.default_rng(0)
    A, r, use = well_conditioned(rng, 500, 3), rng.standard_normal((500, 8)), rng.random((500, 3)) < 0.7
    use[:, 0] = True
    side = rng.integers(0, 3, (500, 8))
    low, high = side == 1, side == 2
    lam, moving, left = left_of(A, r, use, low, high)
    assert (left[~moving] == 0).all()
    assert ((low | high) | moving).all()
    through = r - np.einsum("bk,bkn->bn", lam, A)
    pushed_out = (low & (through > 0)) | (high & (through < 0))
    settled = (pushed_out == ~moving).all(axis=1)
    assert settled.mean() >= 0.98
    unit = np.eye(8)
    for k in np.flatnonzero(settled):
        mine = A[k, use[k]]
        columns = np.concatenate([mine, -mine[:1], unit[low[k]], -unit[high[k]]])
        np.testing.assert_allclose(left[k], cone_residual(columns, r[k]), atol=1e-9)


def test_a_feature_at_its_bound_is_held_only_if_it_would_leave() -> None:
    # The row is e_0: what is left of r is its other parts, but for those that point out of the box.
    A, r = np.array([[[1.0, 0.0, 0.0]]] * 2), np.array([[5.0, 2.0, 3.0], [5.0, -2.0, 3.0]])
    low, high = np.array([[False, True, False]] * 2), np.array([[False, False, True]] * 2)
    lam, moving, left = left_of(A, r, np.ones((2, 1), dtype=bool), low, high)
    np.testing.assert_allclose(lam, [[5.0], [5.0]], rtol=1e-12)
    np.testing.assert_array_equal(moving, [[True, False, True], [True, True, True]])
    np.testing.assert_allclose(left, [[0.0, 0.0, 3.0], [0.0, -2.0, 3.0]], atol=1e-12)


# Shortest steps


def step_to(
    A: np.ndarray, c: np.ndarray, u: np.ndarray, lower: np.ndarray = NONE, upper: np.ndarray = NONE
) -> np.ndarray:
    step = np.empty_like(u)
    use, moving = np.ones(c.shape, dtype=bool), np.ones(u.shape, dtype=bool)
    projections.shortest_steps(A, c, use, np.arange(use.shape[1]) == 0, moving, u, lower, upper, step)
    return step


@given(seeds, st.integers(1, 5))
@examples(20)
def test_shortest_steps_are_those_of_slsqp(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    A, c = well_conditioned(rng, 3, rows), rng.standard_normal((3, rows))
    step = step_to(A, c, np.zeros((3, 8)))
    for k in range(3):
        after = A[k] @ step[k] + c[k]
        assert abs(after[0]) <= 1e-10
        assert (after >= -1e-10).all()
        best = shortest(A[k], c[k])
        assert best is not None
        np.testing.assert_allclose(step[k], best, atol=1e-5)


@given(seeds)
@examples(20)
def test_one_row_within_bounds_is_reached_by_the_shortest_way(seed: int) -> None:
    """Three features: rounds enough for all of them to stop."""
    rng = np.random.default_rng(seed)
    lower, upper = np.full(3, -1.0), np.full(3, 1.0)
    u, a, target = rng.uniform(-1, 1, (4, 3)), rng.standard_normal((4, 1, 3)), rng.uniform(-1, 1, (4, 3))
    c = products(a, u - target)  # the row holds where u is at the target, within the box
    step = step_to(a, c, u, lower, upper)
    assert (np.abs(u + step) <= 1 + 1e-15).all()
    np.testing.assert_allclose(products(a, step) + c, 0, atol=1e-10)
    for k in range(4):
        best = shortest(a[k], c[k], [(-1 - x, 1 - x) for x in u[k]])
        assert best is not None
        assert np.linalg.norm(step[k]) <= np.linalg.norm(best) * (1 + 1e-6) + 1e-7


@given(seeds, st.integers(2, 4))
def test_no_step_leaves_the_bounds_or_moves_what_is_held(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    A, c, u = well_conditioned(rng, 3, rows), rng.standard_normal((3, rows)), rng.uniform(-0.5, 0.5, (3, 8))
    step, moving = np.empty((3, 8)), rng.random((3, 8)) < 0.7
    bounds = (np.full(8, -0.5), np.full(8, 0.5))
    projections.shortest_steps(A, c, np.ones((3, rows), dtype=bool), np.arange(rows) == 0, moving, u, *bounds, step)
    assert (step[~moving] == 0).all()
    # The step is a difference: to add it again may be wrong in the last place.
    assert (np.abs(u + step) <= 0.5 + 1e-15).all()


def test_where_a_feature_stops_the_others_make_up_for_it() -> None:
    # x_0 + x_1 falls from 2 to 0 although x_0 must stay above 0.5: the step is (-0.5, -1.5).
    A, c, u = np.ones((1, 1, 2)), np.array([[2.0]]), np.ones((1, 2))
    np.testing.assert_allclose(step_to(A, c, u), [[-1.0, -1.0]], rtol=1e-12)
    bounds = (np.array([0.5, -4.0]), np.array([4.0, 4.0]))
    np.testing.assert_allclose(step_to(A, c, u, *bounds), [[-0.5, -1.5]], rtol=1e-12)


# Sums


@given(seeds, st.integers(1, 4))
def test_sums_over_slots_are_those_of_numpy(seed: int, slots: int) -> None:
    rng = np.random.default_rng(seed)
    A, lam, d = rng.standard_normal((3, slots, 5)), rng.standard_normal((3, slots)), rng.standard_normal((3, 5))
    use = rng.random((3, slots)) < 0.6
    lam[~use] = 0.0
    combined, multiplied = np.empty((3, 5)), np.empty((3, slots))
    projections.combine(lam, A, combined)
    projections.products(A, use, d, multiplied)
    np.testing.assert_allclose(combined, np.einsum("bk,bkn->bn", lam, A), atol=1e-14)
    np.testing.assert_allclose(multiplied, np.where(use, products(A, d), 0.0), atol=1e-14)
