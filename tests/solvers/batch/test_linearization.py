"""What the batch solver knows at a point: gradients by the Jacobian, the normal step by scipy's quadratic program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import flipopt as fo
from flipopt.problem import FlipBatch
from flipopt.solvers.batch import linearization
from flipopt.solvers.batch.linearization import Linearization, Linearizer
from tests.flips.test_one import four_classes
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import seeds

WEIGHTS = np.array([1.0, 4.0, 0.25, 2.0, 0.5])


def linearized(batch: FlipBatch, seed: int) -> tuple[Linearizer, Linearization]:
    """At points a little away from the inputs, frozen features and bounds respected."""
    here = Linearizer(batch)
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
        assert at.worst[k] == pytest.approx(np.abs(gaps).max(), abs=1e-12)


@given(seeds)
@settings(max_examples=15)
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
            lambda d: d @ d / 2, np.zeros(5), jac=lambda d: d, constraints=limits, method="SLSQP", tol=1e-12
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


def test_what_is_asked_for_is_watched_and_slots_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearization, "SLOTS", 2)
    net = random_network(0)
    batch = random_batch(net, 0)
    i, j = batch.classes.T
    third = np.array([next(m for m in (3, 2, 1, 0) if m not in pair) for pair in batch.classes])
    wanted = np.zeros((len(batch), 4), dtype=bool)
    wanted[np.arange(len(batch)), third] = True
    here = Linearizer(batch)
    at = here.at(batch, here.scale * batch.X, wanted)
    assert at.row.shape == (len(batch), 2)
    assert (at.row == np.column_stack([j, third])).all()
    assert at.use.all()
    assert (at.row != i[:, None]).all()


def test_rows_are_cut_merged_and_put_together() -> None:
    net = fo.DenseNetwork([np.eye(3)], [np.zeros(3)])
    batch = random_batch(net, 2, problems=4)
    _, one = linearized(batch, 1)
    _, two = linearized(batch, 2)
    part = two.take(np.array([1, 3]))
    one.merge(np.array([True, False, False, False]), two)
    one.put(np.array([1, 3]), part)
    for k, same in enumerate([True, True, False, True]):
        assert (one.u[k] == two.u[k]).all() == same
        assert (one.violation[k] == two.violation[k]) == same
