from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from tests.explain.tables import plane, table
from tests.solvers.batch.nets import random_network

RNG = np.random.default_rng(0)


def blind(net: fo.DenseNetwork, features: list[int]) -> fo.DenseNetwork:
    """The network without a look at some features."""
    W = [weights.copy() for weights in net.weights]
    W[0][features] = 0
    return fo.DenseNetwork(W, net.biases, net.activations)


def test_a_plane_has_one_direction() -> None:
    w = np.array([0.0, 3.0, -4.0])
    X = RNG.standard_normal((30, 3))
    _, flips = plane(w, X)
    found = fo.explain.directions(flips, X)
    assert found.rank == 1
    assert found.needed(0.99) == 1
    np.testing.assert_allclose(found.components[0], [0, -0.6, 0.8], atol=1e-12)
    assert found.never.tolist() == [0]
    assert found.order[:2].tolist() == [2, 1]
    np.testing.assert_allclose(found.values[0], np.linalg.norm(flips.x - X))
    np.testing.assert_allclose(found.mean, (flips.x - X).mean(axis=0))
    assert "Of 3 features 1 never matter" in str(found)
    assert "rank 1 of 3" in str(found)


def test_features_that_a_network_ignores_never_matter_and_the_rank_is_that_of_the_others() -> None:
    net = blind(random_network(3, widths=(8, 12, 3)), [1, 4, 5])
    X = RNG.standard_normal((60, 8))
    flips = fo.closest_flip_points(net, X)
    for method in ("pca", "qr"):
        found = fo.explain.directions(flips, X, method=method)
        assert found.never.tolist() == [1, 4, 5]
        assert found.rank == 5
        assert found.condition > 1e6
        assert found.share.sum() == pytest.approx(1)
        assert found.needed(1.0) <= 5
    assert set(found.order[-3:].tolist()) == {1, 4, 5}
    assert (np.diff(found.values) <= 1e-12).all()


def test_shares_are_those_of_least_squares() -> None:
    X = np.zeros((40, 6))
    D = RNG.standard_normal((40, 6)) @ RNG.standard_normal((6, 6))
    flips = table(np.arange(40), [(0, 1)] * 40, D, np.linalg.norm(D, axis=1))
    pca, qr = (fo.explain.directions(flips, X, method=method) for method in ("pca", "qr"))
    for k in range(1, 7):
        kept = pca.components[:k]
        assert pca.share[:k].sum() == pytest.approx(((D @ kept.T @ kept) ** 2).sum() / (D**2).sum())
        chosen = D[:, qr.order[:k]]
        fit = chosen @ np.linalg.lstsq(chosen, D, rcond=None)[0]
        assert qr.share[:k].sum() == pytest.approx((fit**2).sum() / (D**2).sum())
        assert qr.components[k - 1].argmax() == qr.order[k - 1]
    assert pca.condition == pytest.approx(np.linalg.cond(D))
    np.testing.assert_allclose(pca.values, np.linalg.svd(D, compute_uv=False))
    assert pca.needed(pca.share[:2].sum()) == 2


def test_centred_and_unit_changes() -> None:
    X = np.abs(RNG.standard_normal((30, 2)))
    _, flips = plane(np.array([1.0, 1.0]), X)  # all on one side: the same direction
    unit = fo.explain.directions(flips, X, unit=True)
    np.testing.assert_allclose(np.linalg.norm(unit.changes, axis=1), 1)
    assert unit.values[0] == pytest.approx(np.sqrt(30))
    assert unit.rank == 1
    centred = fo.explain.directions(flips, X, centred=True)
    assert centred.values[0] == pytest.approx(np.sqrt(len(X)) * flips.distance.std())


def test_units_of_features_count_as_they_are_told() -> None:
    X = RNG.standard_normal((20, 2))
    w = np.array([1.0, 1e-3])
    _, flips = plane(w, X)
    assert fo.explain.directions(flips, X, negligible=1e-2).never.tolist() == [1]
    assert fo.explain.directions(flips, X, negligible=1e-2, scale=[1.0, 1e-3]).never.tolist() == []
    with pytest.raises(fo.InputError, match="scale: expected 2 positive numbers, found shape .2,. and least 0"):
        fo.explain.directions(flips, X, scale=[1.0, 0.0])


def test_classes_one_by_one() -> None:
    net = random_network(1, widths=(4, 10, 3))
    X = RNG.standard_normal((40, 4))
    flips = fo.closest_flip_points(net, X)
    each = fo.explain.directions_by_class(flips, X)
    assert set(each) == set(net.predict(X).tolist())
    assert sum(len(found.row) for found in each.values()) == flips.success.sum()
    one = next(iter(each))
    np.testing.assert_array_equal(fo.explain.directions(flips, X, of=one).changes, each[one].changes)
    assert len(fo.explain.directions(flips, X, of=17).row) == 0


def test_components_as_images() -> None:
    images = RNG.uniform(size=(50, 8, 8))
    features = fo.WaveletFeatures.fit(images, 10)
    X = features.transform(images)
    _, flips = plane(np.arange(1.0, 11.0), X - X.mean(axis=0))
    found = fo.explain.directions(flips, X - X.mean(axis=0), features=features)
    image = found.images(1)[0]
    np.testing.assert_allclose(features.transform(image), found.components[0], atol=1e-12)
    pixels = fo.explain.directions(flips, X - X.mean(axis=0), features=(2, 5))
    np.testing.assert_array_equal(pixels.images(2)[1], pixels.components[1].reshape(2, 5))
    lit = pixels.unchanged_pixels()
    assert lit.shape == (2, 5)
    np.testing.assert_array_equal(np.flatnonzero(lit), pixels.never)
    reached = np.abs(features.basis[found.largest > 0]).max(axis=0).reshape(8, 8) > 0
    assert not found.unchanged_pixels()[reached].all()
    assert found.unchanged_pixels()[~reached].all()
    with pytest.raises(fo.InputError, match="features: expected 10 of them, as the flips have, found 12"):
        fo.explain.directions(flips, X, features=(3, 4))
    with pytest.raises(fo.InputError, match="features: expected WaveletFeatures or a shape, found str"):
        fo.explain.directions(flips, X, features="images")
    with pytest.raises(fo.InputError, match="features: expected WaveletFeatures or the shape of images, found none"):
        fo.explain.directions(flips, X).images()


def test_nothing_to_go_by_is_said() -> None:
    X = RNG.standard_normal((3, 2))
    _, flips = plane(np.ones(2), X)
    lost = table([0, 1], [(0, 1)] * 2, X[:2], [np.nan, np.nan], [fo.Status.INFEASIBLE] * 2)
    for method in ("pca", "qr"):
        found = fo.explain.directions(lost, X, method=method)
        assert found.without_flip == 2
        assert found.rank == 0
        assert "cannot be said" in str(found)
    assert fo.explain.directions_by_class(lost, X) == {}
    assert fo.explain.directions(flips[:1], X).rank == 1
    on_it = table([0, 1], [(0, 1)] * 2, [X[0], [0.0, 0.0]], [0.0, 1.0])  # x itself is a flip point
    assert fo.explain.directions(on_it, X).without_flip == 1
    with pytest.raises(fo.InputError, match="X: expected numbers of shape .rows, 2., found float64 .3, 3"):
        fo.explain.directions(flips, np.zeros((3, 3)))
    with pytest.raises(fo.InputError, match="method: expected one of pca, qr, found 'ica'"):
        fo.explain.directions(flips, X, method="ica")
    with pytest.raises(fo.InputError, match="of: expected a whole number >= 0, found 'all'"):
        fo.explain.directions(flips, X, of="all")
