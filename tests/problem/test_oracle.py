from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.problem import LimitReached, Oracle
from tests.cases import linear, moons
from tests.derivatives import centred
from tests.strategies import networks, points, seeds


@st.composite
def oracles(draw: st.DrawFn) -> tuple[Oracle, np.random.Generator]:
    """Any norm, either form of the outputs, frozen features, and a linear and a nonlinear constraint."""
    net, seed = draw(networks(smooth=True)), draw(seeds)
    rng, n = np.random.default_rng(seed), net.n_inputs
    frozen = rng.uniform(size=n) < draw(st.sampled_from([0.0, 0.4]))
    frozen[rng.integers(n)] = False
    norm = draw(st.sampled_from([1, 2, np.inf]))
    users: list[fo.LinearConstraint | fo.NonlinearConstraint] = []
    if draw(st.booleans()):
        users.append(
            fo.NonlinearConstraint(
                lambda x: np.array([np.sin(x).sum(), x @ x]),
                lambda x: np.stack([np.cos(x), 2 * x]),
                -1.0,
                np.array([1.0, 5.0]),
                lambda x, v, d: -v[0] * np.sin(x) * d + 2 * v[1] * d,
            )
        )
    if draw(st.booleans()):
        users.append(fo.LinearConstraint(rng.standard_normal((2, n)), -np.ones(2), np.ones(2)))
    problem = fo.flip_problem(
        net,
        points(net, None, seed),
        (0, 1),
        norm=norm,
        frozen=frozen,
        weights=rng.uniform(0.5, 2, n) if norm == 2 else None,
        constraints=users,
        outputs=draw(st.sampled_from(["logits", "probabilities"])),
    )
    return Oracle(problem), rng


def close(found: np.ndarray, expected: np.ndarray, scale: float) -> bool:
    """1e-6 relative to the largest entry, or to what is differenced: a zero derivative of it is rounding only."""
    return np.abs(found - expected).max(initial=0.0) <= 1e-6 * max(np.abs(expected).max(initial=0.0), 1e-3 * scale)


@given(oracles())
def test_first_derivatives_agree_with_differences(drawn: tuple) -> None:
    oracle, rng = drawn
    u, d = rng.standard_normal(oracle.n_variables), rng.standard_normal(oracle.n_variables)
    c = oracle.constraints(u)
    assert c.shape == (oracle.n_constraints,) == oracle.constraint_bounds[1].shape
    assert oracle.jacobian(u).shape == (oracle.n_constraints, oracle.n_variables)
    assert close(oracle.gradient(u) @ d, centred(oracle.objective, u, d), abs(oracle.objective(u)))
    assert close(oracle.jacobian(u) @ d, centred(oracle.constraints, u, d), np.abs(c).max())


@given(oracles(), st.floats(0, 3))
def test_second_derivatives_of_the_lagrangian_agree_with_differences(drawn: tuple, factor: float) -> None:
    oracle, rng = drawn
    u, d = rng.standard_normal(oracle.n_variables), rng.standard_normal(oracle.n_variables)
    lam = rng.standard_normal(oracle.n_constraints)

    def gradient(v: np.ndarray) -> np.ndarray:
        return factor * oracle.gradient(v) + lam @ oracle.jacobian(v)

    expected, scale = centred(gradient, u, d), np.abs(gradient(u)).max()
    assert close(oracle.hessian_product(u, lam, d, factor), expected, scale)
    H = oracle.hessian(u, lam, factor)
    assert (H == H.T).all()
    assert close(H @ d, expected, scale)


@given(oracles(), st.floats(0, 3))
def test_the_hessian_is_made_of_its_products(drawn: tuple, factor: float) -> None:
    oracle, rng = drawn
    u, lam = rng.standard_normal(oracle.n_variables), rng.standard_normal(oracle.n_constraints)
    H = oracle.hessian(u, lam, factor)
    products = np.stack([oracle.hessian_product(u, lam, d, factor) for d in np.eye(oracle.n_variables)])
    # The two are summed in another order: rounding, relative to the largest entry.
    np.testing.assert_allclose(H, products, rtol=0, atol=1e-12 * max(1.0, np.abs(products).max()))


def test_the_hessian_of_a_network_that_has_only_products_is_the_same() -> None:
    @dataclass(frozen=True)
    class ProductsOnly:
        """A network without a hessian of its own."""

        net: fo.DenseNetwork

        def __getattr__(self, name: str) -> object:
            if name in ("hessian", "in_float64"):
                raise AttributeError(name)
            return getattr(self.net, name)

        def astype(self, dtype: object) -> ProductsOnly:
            return self

    problem = fo.flip_problem(moons(), np.array([-0.5, 0.9]), (0, 1), frozen=[1], outputs="probabilities")
    plain = Oracle(problem.changed(network=ProductsOnly(moons())))
    assert not hasattr(plain.problem.network, "hessian")
    whole, u, lam = Oracle(problem), np.array([0.3]), np.array([2.0])
    np.testing.assert_allclose(whole.hessian(u, lam), plain.hessian(u, lam), rtol=1e-12)
    assert whole.evaluations.hessian == plain.evaluations.hessian == 1


@given(oracles())
def test_variables_and_points_are_inverse_and_frozen_features_stay(drawn: tuple) -> None:
    oracle, rng = drawn
    problem = oracle.problem
    x_hat = np.where(problem.frozen, problem.x, rng.standard_normal(len(problem.x)))
    u = oracle.variables(x_hat)
    assert oracle.point(u) == pytest.approx(x_hat, abs=1e-14)
    assert (oracle.point(u)[problem.frozen] == problem.x[problem.frozen]).all()
    power = 2 if problem.norm == 2 else 1
    assert oracle.objective(u) == pytest.approx(problem.distance(oracle.point(u)) ** power, rel=1e-12)


def test_a_repeated_point_costs_nothing() -> None:
    oracle = Oracle(fo.flip_problem(linear(np.ones(3)), np.ones(3), (0, 1)))
    u = np.zeros(3)
    oracle.constraints(u)
    oracle.constraints(u.copy())
    oracle.jacobian(u)
    oracle.jacobian(u)
    oracle.objective(u)
    assert (oracle.evaluations.forward, oracle.evaluations.backward) == (1, 1)
    u[0] = 1.0  # the same array, another point
    assert oracle.constraints(u) == pytest.approx([oracle.goal_scale])
    oracle.hessian(u, np.ones(1))
    assert oracle.evaluations.forward == 2
    assert oracle.evaluations.hessian == 3
    assert oracle.evaluations.total == 6


def test_limits_stop_every_further_evaluation() -> None:
    problem = fo.flip_problem(linear(np.ones(3)), np.ones(3), (0, 1))
    oracle = Oracle(problem, max_evaluations=2)
    for value in (0.0, 1.0, 1.0):
        oracle.constraints(np.full(3, value))
    with pytest.raises(LimitReached, match="^2 evaluations$"):
        oracle.jacobian(np.full(3, 2.0))
    assert (oracle.last == 1).all()
    oracle = Oracle(problem, max_seconds=0.01)
    oracle.constraints(np.zeros(3))
    time.sleep(0.02)
    with pytest.raises(LimitReached, match="^0.01 seconds$"):
        oracle.constraints(np.zeros(3))


def test_a_missing_hessian_is_named_only_when_it_is_needed() -> None:
    one = fo.NonlinearConstraint(lambda x: x[:1] ** 2, lambda x: 2 * x[:1] * np.eye(2)[:1], 0.0, 1.0)
    oracle = Oracle(fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), constraints=[one]))
    oracle.jacobian(np.ones(2))
    with pytest.raises(fo.DerivativeError, match="hessian_product"):
        oracle.hessian(np.ones(2), np.ones(2))
