"""Problems in the span of the first layer's columns, against the same ones in all inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import flipopt as fo
from flipopt.problem import FlipBatch, Reduced, Span
from flipopt.solvers import Ipopt
from tests.cases import linear
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import examples, seeds

WIDTHS = (12, 4, 6, 3)
WEIGHTS = np.linspace(0.25, 4.0, 12)


def narrow(seed: int, **options: object) -> FlipBatch:
    """Problems of twelve inputs whose first layer is four wide."""
    return random_batch(random_network(seed, WIDTHS), seed, **options)


@given(seeds)
def test_logits_and_distances_are_the_same_in_the_coordinates(seed: int) -> None:
    batch = narrow(seed, weights=WEIGHTS, margin=0.1)
    reduced = Reduced.of(batch)
    assert reduced.inner.X.shape == (6, 4)
    Z = reduced.inner.X + np.random.default_rng(seed).standard_normal((6, 4))
    X = reduced.lifted(Z)
    # Products of a dozen numbers of size 1 in another order.
    np.testing.assert_allclose(reduced.inner.network.logits(Z), batch.network.logits(X), atol=1e-12)
    np.testing.assert_allclose(reduced.inner.distances(Z), batch.distances(X), rtol=1e-12)
    np.testing.assert_allclose(reduced.coordinates(X), Z, atol=1e-12)
    np.testing.assert_array_equal(reduced.inner.classes, batch.classes)
    assert reduced.inner.margin == batch.margin


@given(seeds)
@examples(5)
def test_the_closest_flip_point_of_all_inputs_is_in_the_span(seed: int) -> None:
    batch = narrow(seed, weights=WEIGHTS)
    span = Span.of(batch.setting)
    assert span is not None
    flips = [Ipopt().solve(batch.problem(k)) for k in range(3)]  # knows nothing of the span
    for k, flip in enumerate(flips):
        change = flip.x - batch.X[k]
        outside = change - span.lifted((span.root * change) @ span.Q)
        # Where it is a solution, the change is orthogonal to the boundary to the KKT residual of 1e-6.
        assert not flip.success or np.linalg.norm(outside) <= 1e-5 * np.linalg.norm(change)


def test_the_batch_solver_finds_what_it_finds_without_the_span() -> None:
    """A box that nothing touches keeps the problem in all inputs."""
    found, same = 0, 0
    for seed in (*range(8), 1857643):  # the last has a boundary so flat that steps overflow
        free, boxed = narrow(seed), narrow(seed, bounds=(-1e3, 1e3))
        assert Span.of(boxed.setting) is None
        one, other = (fo.solvers.Batch().solve_batch(batch) for batch in (free, boxed))
        both = one.solved & other.solved
        found += both.sum()
        same += np.isclose(one.distance[both], other.distance[both], rtol=1e-6).sum()
    assert found >= 20  # of 54: some classes are nowhere on top
    assert same >= 0.9 * found  # iterates differ by rounding only, but may part at a fork


@pytest.mark.parametrize(
    "options", [{"bounds": (-9.0, 9.0)}, {"frozen": [3]}, {"bounds": (np.r_[-1.0, [-np.inf] * 11], np.inf)}]
)
def test_what_restricts_the_inputs_keeps_them_all(options: dict) -> None:
    batch = narrow(0, **options)
    assert not batch.setting.unrestricted
    reduced = Reduced.of(batch)
    assert reduced.inner is batch
    assert reduced.lifted(batch.X) is batch.X


def test_a_wide_first_layer_a_linear_classifier_and_a_module_have_no_span() -> None:
    assert Span.of(random_batch(random_network(0), 0).setting) is None
    assert Span.of(random_batch(linear(np.ones(2)), 0).setting) is None


def test_a_linear_classifier_of_many_inputs_has_the_flip_point_in_closed_form() -> None:
    rng = np.random.default_rng(3)
    net = fo.DenseNetwork([rng.standard_normal((40, 3))], [rng.standard_normal(3)])
    X = rng.standard_normal((5, 40))
    batch = fo.problem.flip_batch(net, X, [(int(i), (int(i) + 1) % 3) for i in net.predict(X)])
    assert Reduced.of(batch).inner.X.shape == (5, 3)
    result = fo.solvers.Batch().solve_batch(batch)
    assert result.solved.all()
    closed = 0
    for k, (i, j) in enumerate(batch.classes):
        normal = net.weights[0][:, i] - net.weights[0][:, j]
        lead = float(net.logits(X[k])[i] - net.logits(X[k])[j])
        nearest = X[k] - lead * normal / (normal @ normal)
        logits = net.logits(nearest)
        if logits[[c for c in range(3) if c not in (i, j)]] <= logits[i]:  # the third class does not interfere
            np.testing.assert_allclose(result.x[k], nearest, atol=1e-9)
            closed += 1
    assert closed > 0
