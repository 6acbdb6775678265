"""Units change nothing: features may be rescaled together with their weights, bounds and constraints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.problem import Oracle
from flipopt.solvers.full_space import FullSpace
from tests.strategies import examples, networks, points, seeds

Units = Callable[[int, np.random.Generator], np.ndarray]


def powers_of_two(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.exp2(rng.integers(-20, 21, n).astype(float))


def any_units(n: int, rng: np.random.Generator) -> np.ndarray:
    return 10 ** rng.uniform(-6, 6, n)


def problem(net: fo.DenseNetwork, seed: int, units: np.ndarray) -> fo.FlipProblem:
    """A flip problem in given units, the same problem whatever these are."""
    rng = np.random.default_rng(seed)
    x, w = points(net, None, seed), rng.uniform(0.2, 5, net.n_inputs)
    A = rng.standard_normal((1, net.n_inputs))
    other = fo.DenseNetwork([net.weights[0] / units[:, None], *net.weights[1:]], net.biases, net.activations)
    i = int(net.predict(x))
    return fo.flip_problem(
        other,
        x * units,
        (i, (i + 1) % net.n_classes),
        weights=w / units**2,
        bounds=((x - 1) * units, (x + 2) * units),
        constraints=[fo.LinearConstraint(A / units, A @ x - 0.1, A @ x + np.inf)],
    )


@examples(25)
@given(networks(), seeds, st.sampled_from([powers_of_two, any_units]))
def test_units_change_no_verdict(net: fo.DenseNetwork, seed: int, make: Units) -> None:
    rng = np.random.default_rng(seed)
    units, ones = make(net.n_inputs, rng), np.ones(net.n_inputs)
    plain, other = problem(net, seed, ones), problem(net, seed, units)
    x_hat = plain.clip(plain.x + rng.standard_normal(net.n_inputs))
    at_edges = other.clip(x_hat * units)  # what is at a bound is there in both
    before, after = fo.verify(plain, x_hat), fo.verify(other, at_edges)
    assert after.kkt_residual == pytest.approx(before.kkt_residual, rel=1e-6, abs=1e-9)
    assert after.angle == pytest.approx(before.angle, rel=1e-6, abs=1e-6)
    assert after.constraint_violation == pytest.approx(before.constraint_violation, rel=1e-9, abs=1e-12)
    assert other.distance(at_edges) == pytest.approx(plain.distance(x_hat))


@pytest.mark.parametrize("solver", ["batch", "ipopt", "ipopt-exact", "nlopt", "scipy", "trust-region", FullSpace()])
def test_every_solver_finds_the_same_flip_in_all_units(solver: str | fo.solvers.Solver) -> None:
    rng = np.random.default_rng(1)
    W = [rng.standard_normal((6, 10)) / 2, rng.standard_normal((10, 2))]
    x, units = rng.standard_normal(6), np.array([6e4, 40.0, 1.0, 1e-3, 2e6, 1.0])
    distances = []
    for s in (np.ones(6), units):
        net = fo.DenseNetwork([W[0] / s[:, None], W[1]], [np.zeros(10), np.zeros(2)], fo.Tanh())
        bounds = ((x - 1.5) * s, (x + 1.5) * s)
        found = fo.closest_flip_point(net, x * s, weights=1 / s**2, bounds=bounds, frozen=[2], solver=solver)
        assert found.success, found.message
        distances.append(found.distance)
    assert distances[0] == pytest.approx(distances[1], rel=1e-6)


@examples(15)
@given(networks(smooth=True), seeds)
def test_the_variables_are_the_point_to_the_last_digit(net: fo.DenseNetwork, seed: int) -> None:
    oracle = Oracle(problem(net, seed, any_units(net.n_inputs, np.random.default_rng(seed))))
    x_hat = oracle.problem.clip(oracle.problem.x * 1.01)
    assert np.array_equal(oracle.point(oracle.variables(x_hat)), x_hat)


@examples(15)
@given(networks(smooth=True), seeds)
def test_derivatives_are_those_by_the_variables(net: fo.DenseNetwork, seed: int) -> None:
    rng = np.random.default_rng(seed)
    oracle = Oracle(problem(net, seed, any_units(net.n_inputs, rng)))
    u, d = oracle.variables(oracle.problem.x) + 0.1, rng.standard_normal(net.n_inputs)
    lam, h = rng.standard_normal(oracle.n_constraints), 1e-5

    def lagrangian_gradient(v: np.ndarray) -> np.ndarray:
        return oracle.gradient(v) + lam @ oracle.jacobian(v)

    slope = (oracle.objective(u + h * d) - oracle.objective(u - h * d)) / (2 * h)
    assert oracle.gradient(u) @ d == pytest.approx(slope, rel=1e-5, abs=1e-6)
    second = (lagrangian_gradient(u + h * d) - lagrangian_gradient(u - h * d)) / (2 * h)
    assert oracle.hessian_product(u, lam, d) == pytest.approx(second, rel=1e-4, abs=1e-4 * (1 + np.abs(second).max()))
    assert oracle.hessian(u, lam) @ d == pytest.approx(second, rel=1e-4, abs=1e-4 * (1 + np.abs(second).max()))


def test_weights_of_data_are_in_its_units() -> None:
    X = np.random.default_rng(0).lognormal(size=(500, 3)) * [1.0, 1e4, 1e-3]
    assert fo.scale_of(X * [10.0, 0.1, 5.0]) == pytest.approx(fo.scale_of(X) / np.square([10.0, 0.1, 5.0]))
    assert fo.scale_of(np.random.default_rng(0).normal(3, 2, (100_000, 1))) == pytest.approx([0.25], rel=0.02)


@pytest.mark.parametrize(
    ("column", "weight"),
    [
        ([0, 0, 0, 1], 1.0),  # one of a group, however rare
        ([3, 3, 3, 3], 1 / 9),
        ([0, 0, 0, 0], 1.0),
        ([0, 0, 0, 0, 0, 0, 0, 0, 1, 2], 1 / np.var([0] * 8 + [1, 2])),  # equal quartiles
    ],
)
def test_columns_without_a_spread_have_a_weight(column: list[float], weight: float) -> None:
    assert fo.scale_of(np.array(column, dtype=float)[:, None]) == pytest.approx([weight])


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((0, 3)), [[np.nan]]])
def test_weights_of_no_data_are_an_error(X: np.ndarray) -> None:
    with pytest.raises(fo.InputError, match="X: expected"):
        fo.scale_of(X)
