from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from tests.cases import disc, linear
from tests.explain.tables import plane, table
from tests.solvers.batch.nets import random_network


def test_of_a_plane_nothing_is_off() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    net, flips = plane(np.array([1.0, 2.0, 2.0]), X)
    found = fo.explain.compare_taylor(fo.paths.taylor(net, X), flips, X)
    np.testing.assert_allclose(found.beta, 1)
    np.testing.assert_allclose(found.ratio, 1)
    np.testing.assert_allclose(found.angle, 0, atol=1e-6)
    assert found.same_class.all()
    assert found.feasible.all()
    assert "1 times as far as the first-order estimate" in str(found)


def test_of_a_disc_it_is_off_by_what_is_known() -> None:
    X = np.array([[3.0, 0.0], [0.0, 5.0]])
    flips = fo.closest_flip_points(disc(1.0), X)
    found = fo.explain.compare_taylor(fo.paths.taylor(disc(1.0), X), flips, X)
    s = np.array([3.0, 5.0])
    np.testing.assert_allclose(found.beta, 2 * s / (s + 1), rtol=1e-6)
    np.testing.assert_allclose(found.angle, 0, atol=1e-3)


def test_angles_and_ratios_of_a_curved_network() -> None:
    net = random_network(2, widths=(8, 16, 3))
    X = np.random.default_rng(1).standard_normal((30, 8))
    flips, estimates = fo.closest_flip_points(net, X), fo.paths.taylor(net, X)
    found = fo.explain.compare_taylor(estimates, flips, X)
    met = np.isfinite(found.ratio)
    assert (found.ratio[met] >= 1 - 1e-6).all()  # nothing is closer than the closest
    cosine = (estimates.direction * (flips.x - X)).sum(axis=1) / flips.distance
    np.testing.assert_allclose(np.cos(np.radians(found.angle)), cosine, atol=1e-9)
    assert found.angle.max() > 1


def test_rows_without_a_flip_and_other_norms() -> None:
    X = np.ones((3, 2))
    net, flips = plane(np.array([1.0, 1.0]), X)
    status = [fo.Status.CONVERGED, fo.Status.LIMIT, fo.Status.CONVERGED]
    found = fo.explain.compare_taylor(
        fo.paths.taylor(net, X), table(flips.row, flips.classes, flips.x, flips.distance, status), X
    )
    assert found.row.tolist() == [0, 2]
    assert "1 input without a flip point is left out" in str(found)
    assert "cannot be said" in str(fo.explain.compare_taylor(fo.paths.taylor(net, X), flips[:0], X))
    largest = fo.closest_flip_points(net, X, norm=np.inf)
    with pytest.raises(fo.InputError, match="flips: expected distances in the 2-norm from X, found 1 where the points"):
        fo.explain.compare_taylor(fo.paths.taylor(net, X), largest, X)
    with pytest.raises(fo.InputError, match="estimates: expected those of fo.paths.taylor, found FlipTable"):
        fo.explain.compare_taylor(flips, flips, X)


def test_without_a_gradient_there_is_nothing_to_compare() -> None:
    X = np.ones((2, 2))
    _, flips = plane(np.array([1.0, 1.0]), X)
    flat = fo.paths.taylor(linear(np.zeros(2), 1.0), X)
    found = fo.explain.compare_taylor(flat, flips, X)
    assert (found.beta == 0).all()
    assert np.isnan(found.angle).all()
    assert "along its direction there is no boundary" in str(found)
