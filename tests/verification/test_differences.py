"""Gradients that are not those of the outputs, and outputs of any size: what the check believes."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.problem import flip_batch
from flipopt.solvers import Batch
from flipopt.verification import CONFIRMED, verify, verify_batch
from tests.solvers.batch.nets import random_batch, random_network

DRAWS = 60
FAULTS = ("wrong", "permuted", "scaled", "zero", "nan", "random")


class Faulty(fo.DenseNetwork):
    """A network whose gradients, or for "random" whose logits, are not what they should be."""

    fault, rng = "", np.random.default_rng(0)

    def _vjp(self, X, V, outputs):  # type: ignore[no-untyped-def]
        return self._spoilt(super()._vjp(X, V, outputs))

    def linearize_rows(self, X):  # type: ignore[no-untyped-def]
        Y, pullback = super().linearize_rows(X)
        return self._shaken(Y), lambda V, points: self._spoilt(pullback(V, points))

    def _logits(self, X):  # type: ignore[no-untyped-def]
        return self._shaken(super()._logits(X))

    def _shaken(self, Y: np.ndarray) -> np.ndarray:
        return Y + 1e-6 * self.rng.standard_normal(Y.shape) if self.fault == "random" else Y

    def _spoilt(self, G: np.ndarray) -> np.ndarray:
        n = G.shape[1]
        match self.fault:
            case "wrong":
                return G + 0.3 * np.linalg.norm(G, axis=1, keepdims=True) * np.sin(np.arange(n) + 1) / np.sqrt(n)
            case "permuted":
                return np.roll(G, 1, axis=1)
            case "scaled":
                return 1.01 * G
            case "zero":
                return 0 * G
            case "nan":
                return np.where(np.arange(n) == 1, np.nan, G)
        return G


def faulty(net: fo.DenseNetwork, fault: str, seed: int = 0) -> Faulty:
    copy = Faulty(net.weights, net.biases, net.activations)
    copy.fault, copy.rng = fault, np.random.default_rng(seed)
    return copy


def converged(fault: str, draws: int) -> tuple[int, int]:
    """Of how many solutions, for right gradients and for those of the fault, the check says that they are closest.

    The points are solutions for either gradient, so that the KKT conditions hold with one of the two.
    """
    right = wrong = 0
    for seed in range(draws):
        activation = (fo.Erf(1.0), fo.ReLU(), fo.Tanh(), fo.PReLU(0.2))[seed % 4]
        net = random_network(seed, (6, 9, 7, 4), activation)
        batch = random_batch(net, seed)
        spoilt = flip_batch(faulty(net, fault, seed), batch.X, batch.classes)
        found = Batch(rescue=False, attempts=1).solve_batch(batch)
        right += int(found.solved.sum())
        wrong += int(verify_batch(spoilt, found.x).closest().sum())
        if fault in ("wrong", "permuted", "scaled") and seed % 4 == 0:
            with np.errstate(all="ignore"):
                wrong += int(Batch(rescue=False, attempts=1, max_iter=30).solve_batch(spoilt).solved.sum())
    return right, wrong


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_the_gradient_is_never_believed(fault: str) -> None:
    right, wrong = converged(fault, DRAWS // 6)
    assert right >= DRAWS // 6  # several problems a draw
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_not_in_a_thousand_draws(fault: str) -> None:
    assert converged(fault, 1000)[1] == 0


@pytest.mark.parametrize("activation", [fo.Erf(0.2), fo.ReLU(), fo.ELU(0.5), fo.Tanh()], ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("options", [{}, {"bounds": (-2.0, 2.0)}, {"weights": np.logspace(-3, 3, 6)}], ids=str)
def test_right_gradients_are_confirmed(activation: fo.Activation, options: dict) -> None:
    batch = random_batch(random_network(5, (6, 9, 7, 4), activation), 5, **options)
    found = Batch().solve_batch(batch)
    check = verify_batch(batch.take(found.solved), found.x[found.solved])
    assert found.solved.any()
    assert (check.slope_error <= CONFIRMED).all()


def scaled(net: fo.DenseNetwork, factor: float) -> fo.DenseNetwork:
    W, b = [*net.weights], [*net.biases]
    return fo.DenseNetwork([*W[:-1], factor * W[-1]], [*b[:-1], factor * b[-1]], net.activations)


@pytest.mark.parametrize("factor", [1e-12, 1e-5, 1e5, 1e12])
@pytest.mark.parametrize("activation", [fo.Erf(1.0), fo.ReLU()], ids=lambda a: type(a).__name__)
def test_the_size_of_the_logits_changes_no_flip(activation: fo.Activation, factor: float) -> None:
    net, X = random_network(2, (6, 9, 7, 4), activation), np.random.default_rng(2).standard_normal((12, 6))
    plain, other = (fo.closest_flip_points(each, X) for each in (net, scaled(net, factor)))
    assert plain.success.all()
    np.testing.assert_array_equal(plain.status, other.status)
    np.testing.assert_array_equal(plain.classes, other.classes)
    np.testing.assert_allclose(plain.distance, other.distance, rtol=1e-9)
    twos = fo.closest_flip_points(scaled(net, 2.0**40), X)
    np.testing.assert_array_equal(plain.x, twos.x)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_nor_does_it_for_ipopt(norm: float, factor: float) -> None:
    net, x = random_network(2, (6, 9, 7, 4), fo.Erf(1.0)), np.random.default_rng(2).standard_normal(6)
    plain, other = (fo.closest_flip_point(each, x, norm=norm, solver="ipopt") for each in (net, scaled(net, factor)))
    assert plain.success
    assert (plain.status, plain.classes) == (other.status, other.classes)
    np.testing.assert_allclose(plain.distance, other.distance, rtol=1e-7)


def test_tiny_logits_put_no_point_on_the_boundary() -> None:
    net = scaled(random_network(2, (6, 9, 7, 4), fo.Erf(1.0)), 1e-10)
    X = np.random.default_rng(2).standard_normal((50, 6))
    batch = flip_batch(net, X, [(0, 1)] * 50)
    assert not verify_batch(batch, X + 0.1).on_boundary.any()
    assert not verify_batch(batch, X).on_boundary.any()


@pytest.mark.parametrize("offset", [1e6, 1e10])
def test_what_rounding_hides_is_not_held_against_a_point(offset: float) -> None:
    """Logits that are large beside their differences: the nearest float64 is on the boundary, a farther one is not."""
    a, x = np.array([3.0, -1.0, 2.0]), np.array([0.5, 1.0, 2.0])
    net = fo.DenseNetwork([np.column_stack([a, -a])], [np.full(2, offset)])
    problem = fo.flip_problem(net, x, (0, 1))
    x_hat = x - (a @ x) / (a @ a) * a
    assert verify(problem, x_hat).closest()
    assert not verify(problem, x_hat + 1e-4 * a).on_boundary


def test_where_rounding_hides_everything_there_is_no_boundary() -> None:
    a, x = np.array([3.0, -1.0, 2.0]), np.array([0.5, 1.0, 2.0])
    net = fo.DenseNetwork([1e-10 * np.column_stack([a, -a])], [np.full(2, 1e6)])
    assert not verify(fo.flip_problem(net, x, (0, 1)), x + 0.5 * a).on_boundary


def test_a_flat_network_has_no_closest_flip_but_x_itself() -> None:
    flat = fo.DenseNetwork([np.zeros((2, 3))], [np.zeros(3)])
    problem = fo.flip_problem(flat, np.ones(2), (0, 1))
    assert verify(problem, np.ones(2)).closest()
    assert not verify(problem, np.zeros(2)).closest()
    uneven = fo.DenseNetwork([np.zeros((2, 2))], [np.array([1e-9, 0.0])])
    check = verify(fo.flip_problem(uneven, np.ones(2), (0, 1)), np.zeros(2))
    assert check.boundary_gap == np.inf


def test_the_class_above_counts_as_a_distance_too() -> None:
    """Class 2 is above by 1e-9 of a logit where the tie has a gradient of 1: the same logits times 1e6 say the same."""
    for factor in (1e-6, 1.0, 1e6):
        W = factor * np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
        net = fo.DenseNetwork([W], [factor * np.array([0.0, 0.0, -3.0])])
        problem = fo.flip_problem(net, np.array([1.0, 2.0]), (0, 1))
        for above, there in ((1e-9, True), (1e-6, False)):
            assert verify(problem, np.array([0.0, 3.0 + above])).on_boundary is there
