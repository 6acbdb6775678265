"""Each measure at one point, where its value is known by hand or in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from tests.cases import linear, moons, three_classes
from tests.strategies import seeds


def plane(seed: int, n: int, norm: float) -> tuple[fo.FlipProblem, np.ndarray]:
    """A linear classifier and the closed-form closest flip of a point."""
    rng = np.random.default_rng(seed)
    a, x = rng.standard_normal(n), rng.standard_normal(n)
    lead = float(a @ x) + 0.3
    problem = fo.flip_problem(linear(a, 0.3), x, (0, 1), norm=norm)
    if norm == 2:
        return problem, x - lead * a / (a @ a)
    if norm == np.inf:  # every feature moves by the same amount
        return problem, x - lead / np.abs(a).sum() * np.sign(a)
    k = np.argmax(np.abs(a))  # only the feature with the largest weight moves
    return problem, x - lead / a[k] * np.eye(n)[k]


@given(seeds, st.integers(2, 8), st.sampled_from([1, 2, np.inf]))
def test_the_closed_form_passes(seed: int, n: int, norm: float) -> None:
    problem, x_hat = plane(seed, n, norm)
    check = fo.verify(problem, x_hat)
    assert check.on_boundary
    assert check.closest()
    assert check.kkt_residual <= 1e-7
    assert check.class_margin == np.inf
    if norm == 2:
        assert check.angle <= 1e-5  # degrees


@given(seeds, st.integers(2, 8), st.sampled_from([1, 2, np.inf]))
def test_a_point_moved_along_the_boundary_is_not_closest(seed: int, n: int, norm: float) -> None:
    problem, x_hat = plane(seed, n, norm)
    a = problem.network.jacobian(x_hat)[0]
    d = np.random.default_rng(seed + 1).standard_normal(n)
    d -= (d @ a) / (a @ a) * a
    moved = x_hat + d / np.linalg.norm(d) * (0.1 * np.linalg.norm(x_hat - problem.x))
    check = fo.verify(problem, moved)
    assert check.on_boundary
    assert not check.closest()
    if norm == 2:  # moved by a tenth: the sine of the angle is that of arctan 0.1
        assert check.kkt_residual == pytest.approx(np.sin(np.arctan(0.1)), rel=1e-6)
        assert check.angle == pytest.approx(np.degrees(np.arctan(0.1)), rel=1e-6)


@given(seeds)
def test_a_point_off_the_boundary_fails_the_gap_alone(seed: int) -> None:
    problem, x_hat = plane(seed, 3, 2)
    a = problem.network.jacobian(x_hat)[0]
    moved = x_hat + 1e-6 * problem.distance(x_hat) * a / np.linalg.norm(a)
    check = fo.verify(problem, moved)
    assert check.boundary_gap == pytest.approx(1e-6, rel=1e-4)  # rounding counts a little
    assert not check.on_boundary
    assert check.kkt_residual <= 1e-7
    assert check.bound_violation == check.constraint_violation == 0


def test_another_class_above_is_seen() -> None:
    problem = fo.flip_problem(three_classes(), np.array([1.0, 4.0]), (0, 1))
    check = fo.verify(problem, np.array([0.0, 4.0]))
    assert check.boundary_gap == 0
    # Class 2 leads by 1 with a gradient of sqrt(2), at the distance 1.
    assert check.class_margin == pytest.approx(-np.sqrt(0.5), rel=1e-5)
    assert not check.on_boundary
    assert fo.verify(problem, np.array([0.0, 3.0])).closest()


def test_bounds_frozen_features_and_constraints_are_seen() -> None:
    problem = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1))
    x_hat = np.zeros(2)
    check = fo.verify(problem.changed(lower=np.array([0.25, -9.0])), x_hat)
    assert (check.bound_violation, check.on_boundary) == (0.25, False)
    check = fo.verify(problem.changed(frozen=np.array([True, False])), x_hat)
    assert (check.bound_violation, check.on_boundary) == (1.0, False)
    sum_of_one = fo.LinearConstraint(np.array([[1.0, 0.0]]), 0.5, np.inf)
    check = fo.verify(problem.changed(constraints=(sum_of_one,)), x_hat)
    assert (check.constraint_violation, check.on_boundary) == (0.5, False)
    check = fo.verify(problem.changed(constraints=(sum_of_one,)), np.array([0.5, -0.5]))
    assert check.closest()  # with the constraint active


def test_an_active_bound_may_only_push_inwards() -> None:
    problem = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), bounds=(np.array([0.5, -9.0]), 9.0))
    assert fo.verify(problem, np.array([0.5, -0.5])).closest()
    # At an upper bound of -0.5 the multiplier would have to pull: the free solution 0, 0 is outside the other way.
    other = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), bounds=(np.array([-0.5, -9.0]), 9.0))
    check = fo.verify(other, np.array([-0.5, 0.5]))
    assert check.on_boundary
    assert not check.closest()


def test_multipliers_have_the_sign_and_size_of_the_objective_s_slope() -> None:
    # The gradient of |x_hat - x|^2 is (-2, 0) = lam (2, 0). Where class 2 pushes, its lam is positive.
    check = fo.verify(fo.flip_problem(three_classes(), np.array([1.0, 2.0]), (0, 1)), np.array([0.0, 2.0]))
    assert check.multipliers == pytest.approx([-1.0, 0.0])
    pushed = fo.flip_problem(three_classes(), np.array([1.0, 4.0]), (0, 1))
    check = fo.verify(pushed, np.array([0.0, 3.0]))
    assert check.closest()
    assert check.multipliers[1] == pytest.approx(2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bracket_s_points_have_different_classes(dtype: type) -> None:
    net = moons().astype(dtype)
    problem = fo.flip_problem(net, np.array([-0.5, 0.9]), (0, 1))
    found = fo.solvers.Ipopt().solve(problem, None, net)
    assert found.success
    bracket = fo.verify(problem, found.x, net).bracket
    assert bracket is not None
    assert bracket.inside.dtype == dtype
    assert {int(net.predict(bracket.inside)), int(net.predict(bracket.outside))} == {0, 1}
    assert bracket.classes == (int(net.predict(bracket.inside)), int(net.predict(bracket.outside)))
    assert bracket.step <= 1e4 * np.finfo(dtype).eps


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_a_point_on_the_boundary_is_its_own_closest_flip(norm: float) -> None:
    problem = fo.flip_problem(linear(np.ones(2)), np.zeros(2), (0, 1), norm=norm)
    check = fo.verify(problem, np.zeros(2))
    assert check.on_boundary
    assert check.closest()


def test_rescaled_weights_change_the_multipliers_alone() -> None:
    x, x_hat = np.array([1.0, 4.0]), np.array([0.0, 3.0])
    plain = fo.verify(fo.flip_problem(three_classes(), x, (0, 1)), x_hat)
    heavy = fo.verify(fo.flip_problem(three_classes(), x, (0, 1), weights=np.full(2, 100.0)), x_hat)
    assert heavy.closest()
    assert heavy.kkt_residual == pytest.approx(plain.kkt_residual, abs=1e-14)
    np.testing.assert_allclose(heavy.multipliers, 100 * plain.multipliers)
