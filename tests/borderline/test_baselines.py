"""Random, embedding-nearest and closest flip points of samples, and how they compare."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.borderline import Outcome, closest, epbs, farther, nearest_of, refine, rpbs
from tests.borderline.cases import blobs, corner, table


def test_random_pairs_use_every_sample_once_as_far_as_they_go() -> None:
    net, X, labels = blobs()
    found = rpbs(net, X, labels, 0, 1)
    assert found.row.tolist() == np.flatnonzero(labels == 0).tolist()
    assert (labels[found.partner] == 1).all()
    assert (net.predict(X[found.partner]) == 1).all()
    partners = np.sum((labels == 1) & (net.predict(X) == 1))
    assert np.bincount(found.partner).max() <= -(-len(found) // partners)
    again, other = rpbs(net, X, labels, 0, 1), rpbs(net, X, labels, 0, 1, seed=1)
    assert again.partner.tolist() == found.partner.tolist() != other.partner.tolist()
    np.testing.assert_array_equal(again.x, found.x)
    direct = refine(net, X[found.row], X[found.partner], 0, 1)
    np.testing.assert_array_equal(direct.x, found.x)
    many = rpbs(net, X, labels, 0, 1, count=100)
    assert len(many) == 100
    assert np.bincount(many.row).max() == -(-100 // len(found))
    assert len(rpbs(net, X, labels, 0, 1, count=7)) == 7


def test_a_source_that_is_a_mistake_counts_for_the_yield_alone() -> None:
    net, X, labels = blobs()
    wrong = (labels == 0) & (net.predict(X) != 0)
    labels = labels.copy()
    labels[np.flatnonzero((labels == 2) & (net.predict(X) == 2))[:3]] = 0  # three more
    found = rpbs(net, X, labels, 0, 1)
    mistakes = found.status == Outcome.NOT_S
    assert mistakes.sum() == wrong.sum() + 3
    assert found.success_rate == found.success.sum() / (~mistakes).sum()
    assert found.yield_rate == found.success.sum() / len(found)
    predicted = rpbs(net, X, None, 0, 1)
    assert predicted.searched.all()


def test_embedding_nearest_pairs_are_the_nearest() -> None:
    net, X, labels = blobs()
    found = epbs(net, X, labels, 1, 2)
    E, partners = net.embedding(X), np.flatnonzero((labels == 2) & (net.predict(X) == 2))
    for row, partner in zip(found.row, found.partner):
        distances = np.linalg.norm(E[partners] - E[row], axis=1)
        assert partner == partners[distances.argmin()]
    some = epbs(net, X, labels, 1, 2, count=5)
    assert len(some) == 5
    np.testing.assert_array_equal(some.x, found.x[np.isin(found.row, some.row)])


def test_as_coded_every_sample_has_the_same_partner() -> None:
    net, X, labels = blobs()
    found = epbs(net, X, labels, 1, 2, as_coded=True)
    first = np.flatnonzero((labels == 2) & (net.predict(X) == 2))[0]
    assert set(found.partner.tolist()) == {int(first)}
    assert len(found) == (labels == 1).sum()


def test_the_closest_are_flip_points_and_nobody_is_nearer() -> None:
    net, X, labels = blobs()
    best = closest(net, X, labels, 0, 1)
    assert (best.status[best.success] == Outcome.CLOSEST).all()
    assert best.converged_rate == best.success_rate > 0.9
    k = int(np.flatnonzero(best.success)[0])
    assert best.distance[k] == pytest.approx(fo.closest_flip_point(net, X[best.row[k]], 1).distance)
    assert best.gap[best.success].max() < 1e-6
    for method in (rpbs, epbs):
        table = farther(method(net, X, labels, 0, 1), best)
        assert len(table) > 0
        assert table.ratio.min() > 1 - 1e-9
        assert table.median == np.median(table.distance / table.closest)
    assert "times as far from its source as the closest flip point (median of" in str(table)
    assert len(closest(net, X, labels, 0, 1, count=4)) == 4


def test_instances_are_refined_to_the_closest_of_their_sources() -> None:
    net, X, labels = blobs()
    some = fo.borderline.Instances.join([rpbs(net, X, labels, 0, 1, count=60), epbs(net, X, labels, 2, 1, count=5)])
    nearest = nearest_of(some, net, X)
    assert nearest.row.tolist() == some.row.tolist()
    assert nearest.classes.tolist() == some.classes.tolist()
    both = some.success
    assert nearest.success[both].all()
    assert nearest_of(table(np.zeros((1, 2)), (1, 2)), net, X[:1]).status[0] is Outcome.NOT_S  # X[0] is in 0
    assert (nearest.distance[both] <= some.distance[both] * (1 + 1e-9)).all()
    assert farther(some, nearest).median > 1


def test_an_instance_that_nothing_is_nearer_than_is_kept() -> None:
    net = corner()
    X = np.array([[1.0, -3.0]])
    point = table(np.array([[0.0, -3.0]]), (0, 1))
    nearest = nearest_of(point, net, X)
    assert nearest.status[0] is Outcome.CLOSEST
    assert nearest.distance[0] == pytest.approx(1.0)
    # One that claims to be nearer than any flip point can be is believed: it is the best that is known.
    claimed = table(np.array([[0.5, -3.0]]), (0, 1))
    kept = nearest_of(claimed, net, X)
    assert kept.status[0] is Outcome.FOUND
    assert kept.distance[0] == pytest.approx(0.5)


def test_nothing_to_compare_is_said() -> None:
    net, X, labels = blobs()
    apart = farther(rpbs(net, X, labels, 0, 1), closest(net, X, labels, 1, 0))
    assert len(apart) == 0
    assert np.isnan(apart.median)
    assert "cannot be said" in str(apart)


@pytest.mark.parametrize("method", [rpbs, epbs, closest])
def test_bad_arguments_are_named(method: object) -> None:
    net, X, labels = blobs()
    for arguments, words in [
        ((X, labels, 1, 1), "t: expected another class than s, found class 1 for both"),
        ((X, labels, 3, 1), "s: expected a class from 0 to 2, found 3"),
        ((X, labels, 0, True), "t: expected a class from 0 to 2, found True"),
        ((X, np.where(labels == 0, 1, labels), 0, 1), "s: expected a class with samples, found 0, which none of 120"),
        ((X, labels[:5], 0, 1), "labels: expected 120 classes, one a row"),
        ((X[:, :1], labels, 0, 1), "X: expected shape"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            method(net, *arguments)  # type: ignore[operator]
    with pytest.raises(fo.InputError, match="count: expected a whole number >= 1"):
        method(net, X, labels, 0, 1, count=0)  # type: ignore[operator]
    with pytest.raises(fo.InputError, match="options: expected"):
        method(net, X, labels, 0, 1, wrong=3)  # type: ignore[operator]


def test_partners_must_be_where_the_network_puts_them() -> None:
    X = np.array([[1.0, -3.0], [2.0, -3.0]])
    with pytest.raises(fo.InputError, match="t: expected a class with samples that the network puts there, found 1"):
        rpbs(corner(), X, [0, 1], 0, 1)
    rows = closest(corner(), X, [0, 1], 1, 0)  # which the network puts in 0
    assert rows.status[0] is Outcome.NOT_S


def test_rows_that_are_not_finite_have_a_status() -> None:
    net, X, labels = blobs()
    X = X.copy()
    X[np.flatnonzero(labels == 0)[:2], 0] = np.nan
    clean = rpbs(net, X[2:], labels[2:], 0, 1)
    for method in (rpbs, epbs, closest):
        found = method(net, X, labels, 0, 1)
        assert (found.status[:2] == Outcome.NOT_FINITE).all()
        assert found.success[2:].any()
    assert clean.success.any()


def test_names_of_classes_are_classes() -> None:
    net, X, labels = blobs()
    net = net.astype(np.float64).with_activations(net.activations)
    net.class_names = ("red", "green", "blue")
    words = np.array(net.class_names)[labels]
    by_name, by_number = rpbs(net, X, words, "red", "blue"), rpbs(net, X, labels, 0, 2)
    np.testing.assert_array_equal(by_name.x, by_number.x)


def test_instances_and_samples_must_fit() -> None:
    net, X, labels = blobs()
    found = rpbs(net, X, labels, 0, 1)
    with pytest.raises(fo.InputError, match="X: expected all"):
        nearest_of(found, net, X[:3])
    with pytest.raises(fo.InputError, match="options: expected no norm and no weights"):
        nearest_of(found, net, X, norm=1)
    with pytest.raises(fo.InputError, match="net: expected a network of the instances' classes"):
        nearest_of(table(np.zeros((1, 2)), (0, 7)), net, X)
