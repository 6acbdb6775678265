from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from tests.cases import three_classes
from tests.explain.tables import plane, table

W = np.array([3.0, -4.0])


def test_within_a_radius() -> None:
    X = np.array([[0.1, 0.0], [1.0, 0.0], [0.0, 2.0]])
    _, flips = plane(W, X)
    found = fo.explain.ambiguity(flips, 0.6)
    assert found.ambiguous.tolist() == [True, True, False]
    assert found.share == pytest.approx(2 / 3)
    assert np.isnan(found.probability).all()
    assert str(found) == "2 of 3 decisions (67%) may change within a distance of 0.6."


def test_of_a_plane_the_probability_is_that_of_noise() -> None:
    rng = np.random.default_rng(0)
    X, sd = rng.standard_normal((20, 2)), np.array([0.5, 0.1])
    net, flips = plane(W, X, offset=0.5)
    found = fo.explain.ambiguity(flips, sd, X, net)
    noisy = X[:, None] + sd * rng.standard_normal((20, 20_000, 2))
    changed = (net.predict(noisy.reshape(-1, 2)).reshape(20, -1) != net.predict(X)[:, None]).mean(axis=1)
    np.testing.assert_allclose(found.probability, changed, atol=0.015)
    np.testing.assert_array_equal(found.ambiguous, found.probability >= 0.05)
    np.testing.assert_allclose(found.index, np.abs(X @ W + 0.5) / np.hypot(1.5, 0.4))
    assert "may change with a probability of 5% or more" in str(found)


def test_in_units_of_the_deviations_the_distance_is_the_index() -> None:
    X, sd = np.random.default_rng(1).standard_normal((10, 2)), np.array([2.0, 0.3])
    net, _ = plane(W, X)
    flips = fo.closest_flip_points(net, X, weights=1 / sd**2)
    np.testing.assert_allclose(fo.explain.ambiguity(flips, sd, X, net).index, flips.distance, rtol=1e-6)


def test_the_likeliest_of_all_classes_counts() -> None:
    # Class 1 is 0.2 away along x_0, which is known exactly; class 2 at 0.6 / sqrt 2 along (-1, 1).
    net, X = three_classes(), np.array([[0.2, 2.6]])
    flips = fo.closest_flip_points(net, X, targets="all")
    found = fo.explain.ambiguity(flips, np.array([0.0, 0.3]), X, net)
    assert found.classes.tolist() == [[0, 2]]
    assert found.index[0] == pytest.approx(0.6 / 0.3)
    exact = fo.explain.ambiguity(flips, np.zeros(2), X, net)
    assert np.isinf(exact.index[0])
    assert not exact.ambiguous[0]


def test_nothing_to_go_by_and_bad_arguments() -> None:
    X = np.ones((2, 2))
    net, flips = plane(W, X)
    lost = table([0, 1], [(0, 1)] * 2, X, [np.nan] * 2, [fo.Status.INFEASIBLE] * 2)
    for found in (fo.explain.ambiguity(lost, 1.0), fo.explain.ambiguity(lost, np.ones(2), X, net)):
        assert found.without_flip == 2
        assert np.isnan(found.share)
        assert "cannot be said" in str(found)
    with pytest.raises(fo.InputError, match="X, net: expected the inputs and the network"):
        fo.explain.ambiguity(flips, np.ones(2))
    with pytest.raises(
        fo.InputError, match="uncertainty: expected a radius, or 2 standard deviations >= 0, found shape .3"
    ):
        fo.explain.ambiguity(flips, np.ones(3), X, net)
    with pytest.raises(fo.InputError, match="uncertainty: expected a number >= 0, found -1"):
        fo.explain.ambiguity(flips, -1)
    with pytest.raises(fo.InputError, match="flips: expected a FlipTable, found int"):
        fo.explain.ambiguity(3, 1.0)
