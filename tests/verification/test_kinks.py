"""Stationarity at kinks, where the slopes are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo


def valley(activation: fo.Activation) -> fo.DenseNetwork:
    """y_0 - y_1 = x_1 + 1 - |x_0|, the boundary a V with its tip at (0, -1): |c| is a PReLU with alpha = -1."""
    W = [np.eye(2), np.array([[-1.0, 0.0], [1.0, 0.0]])]
    return fo.DenseNetwork(W, [np.zeros(2), np.array([1.0, 0.0])], [activation])


V = valley(fo.PReLU(np.array([-1.0, 1.0])))
TIP = np.array([0.0, -1.0])


@pytest.mark.parametrize("x", [(0.0, -3.0), (0.5, -3.0), (-1.9, -3.0)])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_the_tip_of_a_valley_is_closest_from_below(x: tuple, norm: float, outputs: str) -> None:
    # At (a, |a| - 1) the 1-norm is |a - x_0| + |a| + 2 and the inf-norm max(|a - x_0|, |a| + 2): least at a = 0 too.
    check = fo.verify(fo.flip_problem(V, x, (0, 1), norm=norm, outputs=outputs), TIP)
    assert check.closest()


def test_the_slope_of_a_kink_is_its_own() -> None:
    # The gradient 2 (x_hat - x) = (-1, 4) = lam (-s, 1) with lam = 4 and s = 1/4, between -1 and 1.
    check = fo.verify(fo.flip_problem(V, (0.5, -3.0), (0, 1)), TIP)
    assert check.kkt_residual <= 1e-15
    assert check.kinks == 1
    assert check.multipliers == pytest.approx([4.0])


def test_a_kink_beyond_which_the_boundary_comes_closer_is_not_closest() -> None:
    # From (3, -3) the closest point is (0.5, -0.5), on the right-hand side: at the tip s would have to be 1.5.
    problem = fo.flip_problem(V, (3.0, -3.0), (0, 1))
    check = fo.verify(problem, TIP)
    assert check.on_boundary
    assert check.kkt_residual == pytest.approx(np.sin(np.arctan2(3, 2) - np.pi / 4))  # what is left with s = 1
    end = fo.verify(problem, np.array([0.5, -0.5]))
    assert end.closest()
    assert end.kinks == 0


def test_a_kink_that_points_away_is_not_closest_although_clarke_stationary() -> None:
    # From above, both sides of the V are closer than its tip; yet (0, -1) is between their normals.
    problem = fo.flip_problem(V, (0.0, 0.0), (0, 1))
    check = fo.verify(problem, TIP)
    assert check.on_boundary
    assert not check.closest()
    assert fo.verify(problem, np.array([0.5, -0.5])).closest()


def test_a_kink_of_an_elu_counts_and_a_smooth_one_does_not() -> None:
    # ELU with alpha = -1 has the slopes of |c| at 0; the second neuron is moved to where it is the identity.
    def with_elu(alpha: float) -> fo.DenseNetwork:
        b = [np.array([0.0, 9.0]), np.array([-8.0, 0.0])]
        return fo.DenseNetwork(V.weights, b, fo.ELU(alpha))

    check = fo.verify(fo.flip_problem(with_elu(-1.0), (0.5, -3.0), (0, 1)), TIP)
    assert check.closest()
    assert check.kinks == 1
    smooth = fo.verify(fo.flip_problem(with_elu(1.0), (0.5, -3.0), (0, 1)), TIP)
    assert smooth.on_boundary
    assert not smooth.closest()
    assert smooth.kinks == 0


def test_kinks_in_two_layers_are_untangled() -> None:
    """y_0 - y_1 = x_2 + 2 - | |x_0| + x_1 | - |x_0|: the second kink's normal depends on the first's slope."""
    W = [np.eye(3), np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.zeros((3, 2))]
    W[2][:, 0] = [-1.0, -1.0, 1.0]
    alphas = [fo.PReLU(np.array([-1.0, 1.0, 1.0])), fo.PReLU(np.array([1.0, -1.0, 1.0]))]
    net = fo.DenseNetwork(W, [np.zeros(3), np.zeros(3), np.array([2.0, 0.0])], alphas)
    tip = np.array([0.0, 0.0, -2.0])
    # lam = 2, the second layer's slope is r, the first's s: gradient (-lam (1 + r) s, -lam r, lam), with |r|, |s| <= 1.
    for r, s in ((0.5, 0.25), (-0.5, -0.9), (0.9, 1.0)):
        gradient = np.array([-(1 + r) * s, -r, 1.0])
        check = fo.verify(fo.flip_problem(net, tip - gradient, (0, 1)), tip)
        assert check.closest()
        assert check.multipliers == pytest.approx([2.0])
    outside = fo.verify(fo.flip_problem(net, tip - np.array([-(1 + 0.5) * 1.2, -0.5, 1.0]), (0, 1)), tip)
    assert outside.on_boundary
    assert not outside.closest()


def test_a_bound_and_a_kink_share_the_gradient() -> None:
    # With x_0 >= 0 the tip is closest from (-3, -3) as well, where s alone would have to be -1.5; not from (3, -3).
    for x, closest in (((0.5, -3.0), True), ((-3.0, -3.0), True), ((3.0, -3.0), False)):
        problem = fo.flip_problem(V, x, (0, 1), bounds=(np.array([0.0, -9.0]), 9.0))
        assert fo.verify(problem, TIP).closest() is closest
