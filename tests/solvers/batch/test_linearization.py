"""What the batch solver knows at a point: gradients by the Jacobian, the normal step by scipy's quadratic program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize

from flipopt.problem import FlipBatch
from flipopt.solvers import Steps
from flipopt.solvers.batch.linearization import SLOTS, Linearization, Linearizer
from tests.flips.test_one import four_classes
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import examples, seeds

WEIGHTS = np.array([1.0, 4.0, 0.25, 2.0, 0.5, 3.0])


def linearized(batch: FlipBatch, seed: int) -> tuple[Linearizer, Linearization]:
    """At points a little away from the inputs, frozen features and bounds respected."""
    here = Linearizer(batch, Steps().watched)
    X_hat = batch.clip(batch.X + 0.5 * np.random.default_rng(seed).standard_normal(batch.X.shape))
    return here, here.at(batch, here.scale * X_hat)


@given(seeds)
def test_rows_are_gradients_of_the_leads_in_the_scaled_variables(seed: int) -> None:
    net = random_network(seed)
    batch = random_batch(net, seed, weights=WEIGHTS, frozen=[1], margin=0.2)
    here, at = linearized(batch, seed)
    X_hat = at.u / here.scale
    Y, J = net.logits(X_hat), net.jacobian(X_hat)
    assert at.use[:, 0].all()
    assert (at.row[:, 0] == batch.classes[:, 1]).all()
    for k, slot in zip(*np.nonzero(at.use)):
        i, other = batch.classes[k, 0], at.row[k, slot]
        assert other != i
        gradient = (J[k, i] - J[k, other]) / np.sqrt(WEIGHTS)
        gradient[1] = 0
        # One pass against another: rounding only.
        np.testing.assert_allclose(at.A[k, slot], gradient, atol=1e-12)
        margin = 0.0 if slot == 0 else 0.2
        assert at.c[k, slot] == pytest.approx(Y[k, i] - Y[k, other] - margin, abs=1e-12)
    np.testing.assert_allclose(at.r, np.sqrt(WEIGHTS) * (X_hat - batch.X), atol=1e-12)
    assert (at.A[~at.use] == 0).all()


@given(seeds)
def test_every_violated_class_is_watched_and_counted(seed: int) -> None:
    net = random_network(seed)
    batch = random_batch(net, seed)
    here, at = linearized(batch, seed)
    Y = net.logits(at.u / here.scale)
    for k in range(len(batch)):
        i, j = batch.classes[k]
        below = {m: Y[k, i] - Y[k, m] for m in range(4) if m not in (i, j) and Y[k, m] > Y[k, i]}
        assert set(below) <= set(at.row[k][at.use[k]])
        gaps = [Y[k, i] - Y[k, j], *below.values()]
        assert at.violation[k] == pytest.approx(np.linalg.norm(gaps), abs=1e-12)
        J = net.jacobian(at.u[k] / here.scale) / here.scale
        away = [abs(Y[k, i] - Y[k, m]) / np.linalg.norm(J[i] - J[m]) for m in (j, *below)]
        assert at.worst[k] == pytest.approx(max(away) / np.linalg.norm(at.r[k]), rel=1e-4)


@given(seeds)
@examples(15)
def test_the_normal_step_is_the_shortest_that_satisfies_the_linearised_rows(seed: int) -> None:
    batch = random_batch(random_network(seed), seed, weights=WEIGHTS, frozen=[3])
    _, at = linearized(batch, seed)
    for k in range(len(batch)):
        A, c, normal = at.A[k, at.use[k]], at.c[k, at.use[k]], at.normal[k]
        after = A @ normal + c
        # The Gram matrix of rows with a condition of up to 1e3 leaves ten digits less six.
        assert after[0] == pytest.approx(0, abs=1e-7)
        assert (after >= -1e-7).all()
        assert normal[3] == 0
        limits = [{"type": "eq", "fun": lambda d, A=A, c=c: A[:1] @ d + c[:1], "jac": lambda d, A=A: A[:1]}]
        if len(A) > 1:
            limits.append({"type": "ineq", "fun": lambda d, A=A, c=c: A[1:] @ d + c[1:], "jac": lambda d, A=A: A[1:]})
        best = minimize(
            lambda d: d @ d / 2, np.zeros(6), jac=lambda d: d, constraints=limits, method="SLSQP", tol=1e-12
        )
        # SLSQP stops where the objective changes by 1e-12: the length is known to the square root of that.
        assert np.linalg.norm(normal) == pytest.approx(np.linalg.norm(best.x), rel=1e-5, abs=1e-6)


@given(seeds)
def test_no_step_leaves_the_bounds_and_held_features_stay(seed: int) -> None:
    batch = random_batch(random_network(seed), seed, bounds=(-0.6, 0.6))
    here, at = linearized(batch, seed)
    assert here.bounded
    landed = at.u + at.normal
    # The step is a difference: to add it again may be wrong in the last place.
    assert (landed >= here.lower - 1e-15).all()
    assert (landed <= here.upper + 1e-15).all()
    held = ~at.moving
    assert (at.normal[held] == 0).all()
    assert ((at.u[held] == -0.6) | (at.u[held] == 0.6)).all()
    assert (at.A.transpose(0, 2, 1)[held] == 0).all()


def test_the_residual_is_the_sine_of_the_angle_to_the_boundary_s_normal() -> None:
    net = four_classes()
    batch = random_batch(net, 1, problems=20)
    _, at = linearized(batch, 1)
    alone = at.use.sum(axis=1) == 1
    assert alone.any()
    a, r = at.A[alone, 0], at.r[alone]
    cosine = (a * r).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(r, axis=1)
    np.testing.assert_allclose(at.residual[alone], np.sqrt(1 - cosine**2), rtol=1e-7)


def test_what_is_asked_for_is_watched_and_slots_are_few() -> None:
    net = random_network(0, (5, 12, 10))
    batch = random_batch(net, 0)
    wanted = np.zeros((len(batch), 10), dtype=bool)
    third = np.array([next(m for m in range(9, -1, -1) if m not in pair) for pair in batch.classes])
    wanted[np.arange(len(batch)), third] = True
    here = Linearizer(batch, watched=-np.inf)  # nothing of its own accord
    at = here.at(batch, here.scale * batch.X, wanted)
    assert at.row.shape == (len(batch), SLOTS)
    np.testing.assert_array_equal(at.row[:, :2], np.column_stack([batch.classes[:, 1], third]))
    np.testing.assert_array_equal(at.use, np.arange(SLOTS) < 2 + np.zeros((len(batch), 1)))
    every = Linearizer(batch, watched=np.inf).at(batch, here.scale * batch.X)
    assert (every.row != batch.classes[:, :1]).all()
    assert every.use.all()
    # Without the other classes there is one row.
    ties = replace(batch, others=False)
    assert Linearizer(ties, watched=np.inf).at(ties, here.scale * batch.X).row.shape == (len(batch), 1)


@given(seeds)
def test_problems_at_the_same_point_may_share_its_forward_pass(seed: int) -> None:
    net = random_network(seed)
    batch = random_batch(net, seed).take(np.array([0, 0, 1, 2, 2, 2]))
    here = Linearizer(batch, Steps().watched)
    u = here.scale * batch.X
    shared = here.at(batch, u, None, np.array([True, False, True, True, False, False]))
    plain = here.at(batch, u)
    for name in shared.names():
        np.testing.assert_array_equal(getattr(shared, name), getattr(plain, name), err_msg=name)
