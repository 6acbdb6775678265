from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.bounds import lipschitz
from flipopt.bounds.matrices import spectral_norm
from tests.strategies import networks, points, seeds

norms = st.sampled_from([1, 2, np.inf])


def sphere(rng: np.random.Generator, rows: int, n: int, norm: float) -> np.ndarray:
    """Directions of unit norm, some of them along an axis."""
    D = rng.standard_normal((rows, n))
    D[::3] = np.eye(n)[rng.integers(n, size=len(D[::3]))]
    return D / np.linalg.norm(D, ord=norm, axis=1, keepdims=True)


@given(networks(), seeds, norms, st.sampled_from(["logits", "probabilities"]))
def test_no_sampled_jacobian_exceeds_the_global_bound(net, seed: int, norm: float, outputs: str) -> None:
    X = points(net, 50, seed) * np.random.default_rng(seed).uniform(0.01, 5, size=(50, 1))
    largest = max(np.linalg.norm(J, ord=norm) for J in net.jacobian(X, outputs))
    assert largest <= lipschitz.global_bound(net, norm, outputs)


@given(networks(), seeds, norms, st.floats(0, 3), st.sampled_from(["logits", "probabilities"]))
def test_no_jacobian_in_a_ball_exceeds_its_local_bound(net, seed, norm, radius, outputs: str) -> None:
    x, rng = points(net, None, seed), np.random.default_rng(seed)
    ball = x + radius * rng.uniform(0, 1, size=(60, 1)) * sphere(rng, 60, net.n_inputs, norm)
    bound = lipschitz.local_bound(net, x, radius, norm, outputs)
    assert max(np.linalg.norm(J, ord=norm) for J in net.jacobian(ball, outputs)) <= bound
    if norm != 2:  # in the 2-norm the two bounds use different upper bounds of a matrix norm
        assert bound <= lipschitz.global_bound(net, norm, outputs) * (1 + 1e-6)


@given(networks(), seeds, norms)
def test_no_point_within_the_proved_distance_has_another_class(net, seed: int, norm: float) -> None:
    x, rng = points(net, None, seed), np.random.default_rng(seed)
    proved = lipschitz.distance_lower_bound(net, x, norm)
    assert proved >= 0
    reach = min(proved, 1e6)
    directions = [sphere(rng, 200, net.n_inputs, norm)]
    y, J = net.logits(x), net.jacobian(x)
    downhill = J - J[y.argmax()]  # the directions in which another class gains the most
    steep = np.linalg.norm(downhill, ord=norm, axis=1) > 1e-12
    directions.append(downhill[steep] / np.linalg.norm(downhill[steep], ord=norm, axis=1, keepdims=True))
    ball = x + reach * np.concatenate(directions)
    lead = net.logits(ball)
    assert (lead[:, y.argmax()] >= lead.max(axis=1) - 1e-9 * (1 + np.abs(lead).max())).all()


def test_a_linear_classifier_is_bounded_exactly() -> None:
    W = np.array([[1.0, 4.0], [2.0, 0.0]])
    net = fo.DenseNetwork([W], [np.array([1.0, 0.0])])
    x = np.array([1.0, 2.0])  # logits 6 and 4
    difference = W[:, 0] - W[:, 1]
    for norm, dual in ((2, 2), (1, np.inf), (np.inf, 1)):
        closest = 2 / np.linalg.norm(difference, ord=dual)
        assert lipschitz.distance_lower_bound(net, x, norm) == pytest.approx(closest, rel=1e-8)
        assert lipschitz.distance_lower_bound(net, x, norm) <= closest
        assert lipschitz.global_bound(net, norm) == pytest.approx(np.linalg.norm(W.T, ord=norm), rel=1e-8)


def test_constant_logits_have_no_flip_point() -> None:
    net = fo.DenseNetwork([np.zeros((2, 2))], [np.array([1.0, 0.0])])
    assert lipschitz.distance_lower_bound(net, np.ones(2)) == np.inf


def test_a_tie_proves_nothing() -> None:
    net = fo.DenseNetwork([np.eye(2)], [np.zeros(2)])
    assert lipschitz.distance_lower_bound(net, np.ones(2)) == 0


@given(st.integers(1, 40), st.integers(1, 40), seeds, st.booleans())
def test_the_spectral_norm_is_enclosed(rows: int, columns: int, seed: int, clustered: bool) -> None:
    W = np.random.default_rng(seed).standard_normal((rows, columns))
    if clustered:  # equal singular values, the worst case for power iteration
        W = np.linalg.qr(W)[0]
    norm = spectral_norm(W)
    exact = np.linalg.norm(W, 2)
    assert norm.estimate <= exact * (1 + 1e-14 * max(rows, columns))
    assert exact <= norm.upper <= exact * (1 + 1e-2)
    assert norm.upper >= exact


def test_the_spectral_norm_of_nothing_is_zero() -> None:
    assert spectral_norm(np.zeros((3, 2))).upper == 0


@given(networks(), seeds, st.floats(1e-7, 1))
def test_bound_16_holds_for_every_sigma_in_its_range(net, seed: int, tau: float) -> None:
    low, high = lipschitz.sigma_range(tau)
    rng = np.random.default_rng(seed)
    erfs = [fo.Erf(np.exp(rng.uniform(np.log(low), np.log(high)))) for _ in net.activations]
    assert fo.Erf(low).lipschitz == pytest.approx(1)
    assert fo.Erf(high).lipschitz == pytest.approx(tau)
    bottom, top = lipschitz.homotopy_bounds(net, tau)
    bound = lipschitz.global_bound(net.with_activations(erfs), np.inf)
    assert bottom * (1 - 1e-9) <= bound <= top * (1 + 1e-9)


def test_equation_15_by_hand() -> None:
    W = [np.array([[1.0, -2.0], [3.0, 1.0]]), np.array([[1.0, 0.0], [1.0, -1.0]])]
    net = fo.DenseNetwork(W, [np.zeros(2), np.zeros(2)], fo.Erf(0.5))
    # Largest absolute column sums 4 and 2, slope 2 / (0.5 sqrt(pi)).
    assert lipschitz.global_bound(net, np.inf) == pytest.approx(4 * 2 * 4 / np.sqrt(np.pi))
    assert lipschitz.global_bound(net, np.inf, "probabilities") == pytest.approx(4 * 4 / np.sqrt(np.pi))


def test_bad_arguments_are_named() -> None:
    net = fo.DenseNetwork([np.eye(2)], [np.zeros(2)])
    with pytest.raises(fo.InputError, match="norm: expected 1, 2 or inf, found 3"):
        lipschitz.global_bound(net, 3)
    with pytest.raises(fo.InputError, match="radius: expected a number >= 0"):
        lipschitz.local_bound(net, np.zeros(2), -1.0)
    with pytest.raises(fo.InputError, match="x: expected one point"):
        lipschitz.distance_lower_bound(net, np.zeros((2, 2)))
    with pytest.raises(fo.InputError, match="tau: expected a number in"):
        lipschitz.homotopy_bounds(net, 0.0)
    with pytest.raises(fo.InputError, match="tau: expected a number in"):
        lipschitz.path_bounds(net, 2.0)


@given(networks(), st.floats(1e-7, 1))
def test_the_trained_network_is_within_the_bounds_of_its_path(net, tau: float) -> None:
    """The paths themselves are tested in tests/homotopy."""
    low, high = lipschitz.path_bounds(net, tau)
    assert low * (1 - 1e-9) <= lipschitz.global_bound(net, np.inf) <= high * (1 + 1e-9)
    start = lipschitz.homotopy_bounds(net, tau)
    assert low <= start[0]
    assert start[1] <= high


def test_path_bounds_by_hand() -> None:
    W = [np.array([[1.0, -2.0], [3.0, 1.0]]), np.array([[1.0, 0.0], [1.0, -1.0]])]  # largest column sums 4 and 2
    slope = 2 / np.sqrt(np.pi)

    def bounds(activation: fo.Activation) -> tuple[float, float]:
        return lipschitz.path_bounds(fo.DenseNetwork(W, [np.zeros(2), np.zeros(2)], activation), 0.01)

    assert bounds(fo.Erf(0.5)) == pytest.approx((0.08, 8 * 2 * slope))  # steeper than 1
    assert bounds(fo.Erf(1e4)) == pytest.approx((8 * 1e-4 * slope, 8))  # flatter than tau
    assert bounds(fo.Erf(np.array([0.5, 1e4]))) == pytest.approx((8 * 1e-4 * slope, 8 * 2 * slope))
    assert bounds(fo.PReLU(-3.0)) == pytest.approx((0.08, 24))
    assert bounds(fo.ReLU()) == pytest.approx((0.08, 8))
    assert lipschitz.homotopy_bounds(fo.DenseNetwork(W, [np.zeros(2), np.zeros(2)], fo.Erf(0.5)), 0.01) == (
        pytest.approx((0.08, 8))
    )
    single = fo.DenseNetwork(W[:1], [np.zeros(2)])
    assert lipschitz.path_bounds(single, 0.01) == pytest.approx((4, 4))
