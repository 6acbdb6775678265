"""One engine: an input has the same answer alone and among others, wherever it stands and however they are split."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import flipopt as fo
from flipopt.solvers import Batch
from tests.solvers.batch.nets import random_network

SHIPPED = ("mnist-net1", "mnist-net2", "mnist-fcn", "cifar-200")
SAME = 1e-9
"""Relative, of distances."""
SOME = 24
"""Images; all of them where it may take long."""


@cache
def solved(name: str, rows: int) -> fo.FlipTable:
    """The nearest flips of the first images of a shipped network, all in one chunk."""
    shipped = fo.load_shipped(name)
    return fo.closest_flip_points(shipped.network, shipped.X[:rows], solver=Batch(chunk=8192))


def agree(table: fo.FlipTable, other: fo.FlipTable) -> None:
    np.testing.assert_array_equal(table.classes, other.classes)
    np.testing.assert_array_equal(table.status, other.status)
    np.testing.assert_allclose(table.distance, other.distance, rtol=SAME)


def agrees(found: fo.FlipResult, table: fo.FlipTable, row: int) -> None:
    assert found.classes == tuple(table.classes[row])
    assert found.status is table.status[row]
    np.testing.assert_allclose(found.distance, table.distance[row], rtol=SAME)
    assert found.evaluations.total == table.evaluations[row]
    assert (found.starts, found.agreeing) == (table.starts[row], table.agreeing[row])
    assert found.settled == table.settled[row]


@pytest.mark.parametrize("name", SHIPPED)
def test_one_input_alone_is_its_row_of_the_table(name: str) -> None:
    shipped, table = fo.load_shipped(name), solved(name, SOME)
    assert table.success.all()
    for row in range(5):  # row 3 of mnist-fcn has two minima that are 3% apart
        agrees(fo.closest_flip_point(shipped.network, shipped.X[row]), table, row)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_each_of_all_shipped_inputs_alone_is_its_row_of_the_table(name: str) -> None:
    shipped = fo.load_shipped(name)
    assert len(shipped.X) == 200
    table = solved(name, 200)
    for row, x in enumerate(shipped.X):
        agrees(fo.closest_flip_point(shipped.network, x), table, row)


@pytest.mark.parametrize("name", SHIPPED)
def test_splitting_shuffling_and_resizing_change_no_distance(name: str) -> None:
    shipped, whole = fo.load_shipped(name), solved(name, SOME)
    order = np.random.default_rng(0).permutation(SOME)
    classes = shipped.network.n_classes
    moved = fo.closest_flip_points(shipped.network, shipped.X[order], solver=Batch(chunk=13 * (classes - 1)))
    agree(moved, whole[order])


def test_pairs_of_a_shipped_network_do_not_depend_on_each_other() -> None:
    shipped = fo.load_shipped("mnist-net1")
    rng = np.random.default_rng(1)
    X = shipped.X[rng.integers(0, 200, 40)]
    targets = (np.asarray(shipped.network.predict(X)) + rng.integers(1, 10, 40)) % 10
    whole = fo.closest_flip_points(shipped.network, X, targets)
    assert whole.success.mean() > 0.9
    order = rng.permutation(40)
    agree(fo.closest_flip_points(shipped.network, X[order], targets[order], Batch(chunk=7)), whole[order])
    for row in (0, 17, 39):
        agrees(fo.closest_flip_point(shipped.network, X[row], int(targets[row])), whole, row)


@pytest.mark.parametrize("activation", [fo.Erf(1.5), fo.ReLU()], ids=["smooth", "kinked"])
@pytest.mark.parametrize(
    "options",
    [{}, {"starts": 3}, {"margin": 0.05}, {"bounds": (-2.5, 2.5)}, {"frozen": [1]}, {"weights": [1, 2, 3, 4, 5, 6]}],
    ids=lambda options: "-".join(options) or "plain",
)
def test_every_kind_of_problem_is_solved_alike_alone_and_among_others(activation: fo.Activation, options: dict) -> None:
    net = random_network(5, activation=activation)
    X = np.clip(np.random.default_rng(7).standard_normal((9, 6)), -2, 2)
    table = fo.closest_flip_points(net, X, **options)
    assert table.success.any()
    for row in range(9):
        agrees(fo.closest_flip_point(net, X[row], **options), table, row)
    agree(fo.closest_flip_points(net, X[::-1], solver=Batch(chunk=6), **options), table[np.arange(9)[::-1]])


@pytest.mark.parametrize("activation", [fo.Erf(1.5), fo.ReLU()], ids=["smooth", "kinked"])
@pytest.mark.filterwarnings("ignore:X. expected inputs within the bounds")
def test_an_input_outside_its_bounds_changes_no_other_one(activation: fo.Activation) -> None:
    net = random_network(5, activation=activation)
    inside = np.clip(np.random.default_rng(7).standard_normal((8, 6)), -2, 2)
    outside = np.insert(inside, 3, 5.0, axis=0)
    alone, among = (fo.closest_flip_points(net, X, bounds=(-2.0, 2.0)) for X in (inside, outside))
    others = among[among.row != 3]
    np.testing.assert_array_equal(others.x, alone.x)
    np.testing.assert_array_equal(others.evaluations, alone.evaluations)
    agree(others, alone)
    assert (np.abs(among.x[3]) <= 2).all()
