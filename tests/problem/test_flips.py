from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import flipopt as fo
from flipopt.problem import flip_batch
from tests.cases import linear, three_classes
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import seeds

WEIGHTS = np.array([1.0, 4.0, 0.25, 2.0, 0.5, 3.0])


@given(seeds)
def test_a_problem_of_the_batch_is_the_one_that_is_made_alone(seed: int) -> None:
    net = random_network(seed)
    options: dict = {"weights": WEIGHTS, "frozen": [2], "bounds": (-5.0, 5.0), "margin": 0.3}
    batch = random_batch(net, seed, **options)
    X_hat = batch.clip(batch.X + 9 * np.random.default_rng(seed).standard_normal(batch.X.shape))
    leads, distances = batch.leads(net.logits(X_hat)), batch.distances(X_hat)
    for k in range(len(batch)):
        alone = fo.flip_problem(net, batch.X[k], [int(c) for c in batch.classes[k]], **options)
        mine = batch.problem(k)
        for name in ("x", "weights", "lower", "upper", "frozen", "norm", "classes", "outputs"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(alone, name))
        np.testing.assert_array_equal(mine.goal.T, alone.goal.T)
        np.testing.assert_array_equal(mine.goal.lower, alone.goal.lower)
        np.testing.assert_array_equal(alone.clip(X_hat[k]), X_hat[k])
        assert distances[k] == pytest.approx(alone.distance(X_hat[k]), rel=1e-14)
        values = alone.goal.T @ net.logits(X_hat[k]) - alone.goal.lower
        i, j = batch.classes[k]
        assert np.isinf(leads[k, i])
        assert leads[k, j] == pytest.approx(values[0], abs=1e-12)
        others = [m for m in range(4) if m not in (i, j)]
        assert sorted(leads[k, others]) == pytest.approx(sorted(values[1:]), abs=1e-12)


def test_parts_may_repeat_problems() -> None:
    batch = random_batch(random_network(0), 0)
    part = batch.take(np.array([2, 2, 0]))
    np.testing.assert_array_equal(part.X, batch.X[[2, 2, 0]])
    np.testing.assert_array_equal(part.classes, batch.classes[[2, 2, 0]])
    assert len(batch.take(slice(1, 3))) == 2
    assert part.setting is batch.setting


def test_leads_are_less_by_the_margin_but_for_the_target() -> None:
    batch = flip_batch(three_classes(), np.zeros((1, 2)), [(0, 1)], margin=0.5)
    np.testing.assert_array_equal(batch.leads(np.array([[3.0, 1.0, 2.0]])), [[np.inf, 2.0, 0.5]])


def test_without_the_others_only_the_target_s_lead_counts() -> None:
    batch = replace(flip_batch(random_network(2, (3, 4, 4)), np.zeros((2, 3)), [(0, 1), (2, 0)], 0.5), others=False)
    leads = batch.leads(np.array([[4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0]]))
    np.testing.assert_array_equal(leads, [[np.inf, 1.0, np.inf, np.inf], [-2.0, np.inf, np.inf, np.inf]])


def test_a_frozen_feature_outside_its_bounds_is_named_with_its_row() -> None:
    X = np.array([[0.5, 0.5], [0.5, 0.5], [2.0, 0.5]])
    with pytest.raises(fo.InputError, match="frozen: feature 0 is frozen outside its bounds in row 2"):
        flip_batch(linear(np.ones(2)), X, [(0, 1)] * 3, bounds=(0.0, 1.0), frozen=[0])
    assert len(flip_batch(linear(np.ones(2)), X, [(0, 1)] * 3, bounds=(0.0, 1.0), frozen=[1])) == 3


def test_shared_options_are_checked() -> None:
    for options, message in (
        ({"weights": [-1.0, 1.0]}, "weights: expected positive numbers"),
        ({"frozen": [True, True]}, "frozen: expected at least one feature that may change"),
        ({"bounds": 3}, "bounds: expected a pair"),
    ):
        with pytest.raises(fo.InputError, match=message):
            flip_batch(linear(np.ones(2)), np.ones((1, 2)), [(0, 1)], **options)


def test_a_batch_may_be_empty() -> None:
    batch = flip_batch(linear(np.ones(2)), np.empty((0, 2)), np.empty((0, 2)))
    assert len(batch) == 0
    assert batch.leads(np.empty((0, 2))).shape == (0, 2)
    assert batch.distances(np.empty((0, 2))).shape == (0,)


def test_the_network_computes_in_float64() -> None:
    net = random_network(3).astype(np.float32)
    batch = random_batch(net, 3)
    assert batch.network.dtype == np.float64
    assert batch.X.dtype == np.float64
