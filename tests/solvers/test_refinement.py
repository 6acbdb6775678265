"""Newton steps that hold neurons at their kinks: a corner by hand, random networks by samples around their ends."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import flipopt as fo
from flipopt.networks.linear_pieces import Held, at_kinks
from flipopt.problem import Oracle
from flipopt.solvers import Ipopt, TrustRegion
from flipopt.solvers.refinement import refine
from flipopt.solvers.walk import walk
from flipopt.verification import ACTIVE
from tests.derivatives import centred
from tests.homotopy.paths import random_network
from tests.strategies import points, seeds

STEEP, FLAT = 1.0, 0.5
CORNER = np.zeros(2)


def corner() -> fo.DenseNetwork:
    """y_0 - y_1 = x_1 - FLAT ELU(x_0): a boundary with slope STEEP left of its corner at 0, and FLAT right of it."""
    W = [np.eye(2), np.array([[-FLAT, 0.0], [1.0, 0.0]])]
    return fo.DenseNetwork(W, [np.array([0.0, 10.0]), np.array([-10.0, 0.0])], fo.ELU(STEEP / FLAT))


def refined(problem: fo.FlipProblem, x_hat: np.ndarray, limit: int | None = None) -> tuple[np.ndarray | None, Oracle]:
    oracle = Oracle(problem, max_evaluations=limit)
    return refine(oracle, x_hat, fo.verify(problem, x_hat)), oracle


def assert_nothing_closer_nearby(problem: fo.FlipProblem, x_hat: np.ndarray, radius: float) -> None:
    """No point around x_hat that is closer to x, by more than rounding, is on the other side of the boundary."""
    rng = np.random.default_rng(0)
    around = rng.standard_normal((20000, len(x_hat)))
    change = x_hat + radius * around / np.linalg.norm(around, axis=1, keepdims=True) - problem.x
    size, most = np.linalg.norm(change, axis=1, keepdims=True), (1 - 1e-9) * problem.distance(x_hat)
    lead = problem.network.logits(problem.x + change * np.minimum(1.0, most / size)) @ problem.goal.T[0]
    assert (np.sign(lead) == np.sign(problem.network.logits(problem.x) @ problem.goal.T[0])).all()


def assert_on_kinks(problem: fo.FlipProblem, found: np.ndarray | None) -> None:
    """It is a closest flip point, to many digits, and some neurons are at their kinks there."""
    assert found is not None
    check = fo.verify(problem, found)
    assert check.closest(1e-9)
    assert check.kinks >= 1


@pytest.mark.parametrize("slope", [0.51, 0.75, 0.99])
@pytest.mark.parametrize("start", [(0.0, 0.0), (0.05, 0.02), (-0.03, -0.025), (0.0, -0.009)], ids=str)
def test_a_corner_is_the_closest_point_between_its_two_normals(slope: float, start: tuple[float, float]) -> None:
    problem = fo.flip_problem(corner(), np.array([-slope, 1.0]), (0, 1))
    found, _ = refined(problem, np.array(start))
    end = np.array(start) if found is None else found  # the corner itself leaves nothing to do
    assert end == pytest.approx(CORNER, abs=1e-9)
    assert_on_kinks(problem, end)


@pytest.mark.parametrize("slope", [0.3, 0.45])
def test_a_corner_that_is_not_the_closest_point_is_let_go(slope: float) -> None:
    problem = fo.flip_problem(corner(), np.array([-slope, 1.0]), (0, 1))
    found, _ = refined(problem, CORNER)
    assert found is not None
    check = fo.verify(problem, found)
    assert check.closest(1e-9)
    assert check.kinks == 0
    # The projection onto the line right of the corner.
    assert found == pytest.approx((FLAT - slope) / (1 + FLAT**2) * np.array([1.0, FLAT]), abs=1e-9)


def test_the_limit_of_evaluations_holds() -> None:
    problem = fo.flip_problem(corner(), np.array([-0.75, 1.0]), (0, 1))
    _, whole = refined(problem, np.array([0.05, 0.02]))
    for limit in range(whole.evaluations.forward + 2):  # at the limit not even a Hessian is computed
        found, oracle = refined(problem, np.array([0.05, 0.02]), limit)
        assert oracle.evaluations.forward <= limit
    assert found == pytest.approx(CORNER, abs=1e-9)


# Random networks: points that solvers leave


LEFT = [(fo.ELU(0.7), seed) for seed in (10, 14, 15, 22, 36)] + [(fo.ELU(1.6), seed) for seed in (5, 17, 23, 27, 31)]


@pytest.mark.parametrize(("kind", "seed"), LEFT, ids=str)
def test_what_is_left_at_a_curved_kink_is_finished(kind: fo.Activation, seed: int) -> None:
    problem = random_network(kind, seed, (6, 12, 12, 3))
    left = TrustRegion(refine=False, max_iter=100).solve(problem, walk(problem))
    assert left.status is fo.Status.ON_BOUNDARY  # on the kink, but it cannot go on along it
    found, _ = refined(problem, left.x)
    assert_on_kinks(problem, found)
    assert problem.distance(found) <= left.distance
    assert_nothing_closer_nearby(problem, found, 1e-3 * left.distance)


@pytest.mark.parametrize("seed", [10, 14, 22, 36])
def test_a_kink_that_the_solver_jumps_around_is_found(seed: int) -> None:
    problem = random_network(fo.ELU(0.7), seed, (6, 12, 12, 3))
    left = Ipopt(max_iter=60, refine=False).solve(problem, walk(problem))
    near = at_kinks(problem.network, problem.network.pre_activations(left.x), ACTIVE)
    assert not any(mask.any() for mask in near)
    assert_on_kinks(problem, refined(problem, left.x)[0])


@pytest.mark.parametrize("seed", [1, 8])
def test_kinks_of_probabilities(seed: int) -> None:
    """In probabilities even a ReLU network is curved."""
    problem = random_network(fo.ReLU(), seed, (6, 12, 12, 3)).changed(outputs="probabilities")
    left = Ipopt(max_iter=100, refine=False).solve(problem, walk(problem))
    assert not left.success
    assert_on_kinks(problem, refined(problem, left.x)[0])


@pytest.mark.parametrize("seed", [10, 14])
def test_bounds_weights_and_frozen_features_count(seed: int) -> None:
    problem = random_network(fo.ELU(0.7), seed, (6, 12, 12, 3))
    change = walk(problem) - problem.x
    stop = problem.x + np.where(np.arange(6) < 2, 0.7 * change, np.copysign(10.0, change))  # the first two are stopped
    lower, upper = np.minimum(stop, problem.x), np.maximum(stop, problem.x)
    weights, frozen = np.random.default_rng(seed).uniform(0.5, 2, 6), np.arange(6) == 5
    problem = problem.changed(lower=lower, upper=upper, weights=weights, frozen=frozen)
    left = TrustRegion(refine=False, max_iter=100).solve(problem, walk(problem))
    assert not left.success
    found, _ = refined(problem, left.x)
    assert_on_kinks(problem, found)
    assert (found[:2] == stop[:2]).all()
    assert found[5] == problem.x[5]


# Derivatives


@given(seeds)
def test_derivatives_of_the_neurons_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    widths = (3, 5, 4, 6, 2)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    net = fo.DenseNetwork(W, [rng.standard_normal(width) for width in widths[1:]], fo.Tanh())
    x, d = points(net, None, seed), rng.standard_normal(3)
    layers = net.pre_activations(x)
    masks = [rng.random(len(c)) < 0.5 for c in layers[:-1]]
    held = Held(net, layers, masks)
    mu = rng.standard_normal(len(held.c))

    def c(x: np.ndarray) -> np.ndarray:
        return Held(net, net.pre_activations(x), masks).c

    def gradient(x: np.ndarray) -> np.ndarray:
        return mu @ Held(net, net.pre_activations(x), masks).gradients

    np.testing.assert_array_equal(held.c, np.concatenate([c[mask] for c, mask in zip(layers, masks)]))
    np.testing.assert_allclose(held.gradients @ d, centred(c, x, d), atol=1e-7)
    np.testing.assert_allclose(held.hessian(x, mu) @ d, centred(gradient, x, d), atol=1e-7)
