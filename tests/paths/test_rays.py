"""Rays from an input onto the boundary."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.paths.rays import onto_boundary
from flipopt.problem.flips import flip_batch
from tests.solvers.batch.nets import random_network


def linear(threshold: float) -> fo.DenseNetwork:
    """Classes 0 and 1 tie where the first feature is ``threshold``."""
    return fo.DenseNetwork([np.array([[-1.0, 1.0], [0.0, 0.0]])], [np.array([threshold, -threshold])], [])


@pytest.mark.parametrize("end", [0.5, 0.9999, 1.0, 1.3, 4.0, 40.0])
def test_the_boundary_of_a_linear_network_is_met_exactly(end: float) -> None:
    batch = flip_batch(linear(1.0), np.zeros((1, 2)), [(0, 1)])
    x_hat, met, forward = onto_boundary(batch, np.array([[end, 2 * end]]))
    assert met.all()
    assert forward[0] >= 1
    np.testing.assert_allclose(x_hat, [[1.0, 2.0]], rtol=1e-9)


def test_a_ray_that_leads_away_meets_nothing() -> None:
    batch = flip_batch(linear(1.0), np.zeros((2, 2)), [(0, 1), (0, 1)])
    _, met, _ = onto_boundary(batch, np.array([[-1.0, 0.0], [1.5, 0.0]]))
    assert met.tolist() == [False, True]


def test_points_stay_within_bounds_and_frozen_features_stay() -> None:
    net = random_network(3, widths=(4, 8, 3))
    X = np.random.default_rng(0).uniform(size=(20, 4))
    i = net.predict(X)
    batch = flip_batch(net, X, np.column_stack([i, (i + 1) % 3]), bounds=(0, 1), frozen=[2])
    x_hat, met, _ = onto_boundary(batch, np.random.default_rng(1).uniform(-1, 2, size=X.shape))
    assert met.any()
    assert (x_hat >= 0).all()
    assert (x_hat <= 1).all()
    np.testing.assert_array_equal(x_hat[:, 2], X[:, 2])
    Y = net.logits(x_hat[met])
    lead = (Y * batch.tie_weights[met]).sum(axis=1)
    assert np.abs(lead).max() <= 1e-9 * max(1, np.abs(Y).max())
