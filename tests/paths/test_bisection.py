"""Boundary points between points of two classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.paths import bisect
from tests.cases import disc, linear, moons, three_classes


@pytest.mark.parametrize("beta", [0.1, 1e-4, 1e-10])
def test_the_gap_is_at_most_beta_between_points_of_two_classes(beta: float) -> None:
    net = moons()
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    classes = net.predict(X)
    A, B = X[classes == 0][:40], X[classes == 1][:40]
    found = bisect(net, A, B, beta)
    assert found.success.all()
    assert (found.classes == [0, 1]).all()
    z = net.probabilities(found.x)
    np.testing.assert_allclose(np.abs(z[:, 0] - z[:, 1]), found.gap, atol=1e-12)
    assert found.gap.max() <= beta
    np.testing.assert_allclose(found.x, A + found.alpha[:, None] * (B - A), atol=1e-12)
    assert (found.evaluations < 60).all()


def test_without_beta_it_goes_to_the_last_bit() -> None:
    net = linear(np.array([1.0, 1.0]), offset=-1.0)
    found = bisect(net, np.zeros(2), np.array([[0.9, 0.8], [3.0, 0.0], [0.7, 7.0]]), beta=0)
    np.testing.assert_allclose(found.alpha, 1 / np.array([1.7, 3.0, 7.7]), rtol=3e-16)
    assert found.success.all()


def test_a_third_class_in_between_is_no_success() -> None:
    net = three_classes()  # (x_0, -x_0, x_1 - 3): class 2 is ahead near x_0 = 0 at x_1 = 4, and behind at x_1 = 2
    A, B = np.array([[-2.0, 4.0], [-2.0, 2.0]]), np.array([[2.0, 4.0], [2.0, 2.0]])
    found = bisect(net, A, B)
    assert found.success.tolist() == [False, True]
    np.testing.assert_allclose(found.x[:, 0], 0.0, atol=1e-3)
    assert found.classes.tolist() == [[1, 0], [1, 0]]


def test_a_third_class_at_the_first_midpoint_only_does_no_harm() -> None:
    """Scores (1 - x, x - 1, 10 - 30 |x - 1/2|): the third is ahead in the middle, 1/2, and behind where others tie."""
    W = [np.array([[1.0, -1.0]]), np.array([[-1.0, 1.0, -30.0], [1.0, -1.0, -30.0]])]
    net = fo.DenseNetwork(W, [np.array([-0.5, 0.5]), np.array([0.5, -0.5, 10.0])], fo.ReLU())
    assert net.predict(np.array([[-4.0], [0.5], [5.0]])).tolist() == [0, 2, 1]
    found = bisect(net, [-4.0], [5.0])
    assert found.success[0]
    assert found.x[0, 0] == pytest.approx(1.0, abs=1e-3)


def test_networks_that_are_not_dense_are_taken_too() -> None:
    found = bisect(disc(1.0), [0.0, 0.0], [[2.0, 0.0], [0.0, 5.0]], beta=0)
    np.testing.assert_allclose(found.alpha, [0.5, 0.2])
    assert found.success.all()


def test_points_of_one_class_have_no_boundary_between_them(tmp_path: Path) -> None:
    found = bisect(linear(np.array([1.0])), [[1.0], [-1.0]], [[2.0], [2.0]])
    assert found.success.tolist() == [False, True]
    assert np.isnan(found.alpha[0])
    assert np.isnan(found.x[0]).all()
    assert list(found.to_pandas().columns) == ["alpha", "gap", "i", "j", "success", "evaluations"]
    found.save(tmp_path / "points.parquet")


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(fo.InputError, match="beta: expected a number >= 0"):
        bisect(linear(np.ones(1)), [0.0], [1.0], beta=-1)
