"""Which classes are given up, and which are started again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flipopt.networks import DenseNetwork
from flipopt.problem import FlipBatch, flip_batch
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.prune import Farther, Fruitless, Hopeless, covered, front, leading, ties_will_do, waves
from flipopt.solvers.batch.sqp import Sight


def sight(distance: list[float], residual: list[float], met: list[bool], solved: list[bool]) -> Sight:
    return Sight(np.arange(len(distance)), *map(np.array, (distance, residual, met, solved)))


def test_a_class_is_dropped_only_if_its_minimum_cannot_be_nearer() -> None:
    nearest = Farther(np.array([0, 0, 0, 0, 1]))
    distance, residual = [1.0, 1.1, 1.1, 1.1, 5.0], [1e-8, 1e-3, 0.3, 1e-3, 1e-3]
    met = [True, True, True, False, True]
    assert not nearest(sight(distance, residual, met, [False] * 5)).any()  # nothing is solved yet
    # The second is as good as at its minimum; the third may still descend by more than it is too far; the fourth has
    # not met the boundary.
    known = nearest(sight(distance, residual, met, [True, False, False, False, False]))
    assert known.tolist() == [False, True, False, False, False]
    part = nearest.part(np.array([1, 4]))
    assert part(sight([1.1, 5.0], [1e-3, 1e-3], [True] * 2, [False] * 2)).tolist() == [True, False]


def test_a_class_that_is_much_farther_than_one_on_its_way_down_is_hopeless() -> None:
    kept = np.array([False, False, False, True, False, False])
    hopeless = Hopeless(np.zeros(6, dtype=int), 1.4, kept)
    # The last two have not met the boundary yet: the first of them is not too far from x for that.
    distance, met, none = [1.0, 1.3, 1.6, 1.6, 2.7, 2.9], [True] * 4 + [False] * 2, [False] * 6
    assert np.flatnonzero(hopeless(sight(distance, [0.1] * 6, met, none))).tolist() == [2, 5]
    assert np.flatnonzero(hopeless(sight(distance, [0.9] * 6, met, none))).tolist() == [5]
    part = hopeless.part(np.array([3, 2]))
    assert part(sight([1.6, 1.6], [0.1] * 2, [True] * 2, [False] * 2)).tolist() == [False, True]


def test_an_approach_alone_gives_nothing_up() -> None:
    hopeless = Hopeless(np.zeros(2, dtype=int), 1.4, np.zeros(2, dtype=bool))
    assert not hopeless(sight([1.0, 9.0], [0.1] * 2, [False] * 2, [False] * 2)).any()


def test_a_restart_ends_where_nothing_is_to_be_gained() -> None:
    known = Fruitless(np.array([0, 0, 0, 1, 1]), np.array([1.0, 2.0, 9.0, 1.0, 3.0]), np.array([0, 1, 4]))
    # Less than a ten-thousandth nearer, clearly nearer, too far from the minimum to tell; in the second group the
    # nearest that is known is at 3.
    distance, residual = [0.99995, 0.99, 1.2, 2.9, 3.1], [1e-3, 1e-3, 0.2, 1e-3, 1e-3]
    assert known(sight(distance, residual, [True] * 5, [False] * 5)).tolist() == [True, False, False, False, True]
    assert not known(sight(distance, residual, [False] * 5, [False] * 5)).any()


def planes() -> tuple[FlipBatch, np.ndarray]:
    """x at the origin in class 0; ties with class 1 at x_1 = 1, with class 2 at x_1 = 2, with class 3 at x_2 = -3."""
    W, b = np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, -1.0]]), np.array([0.0, -1.0, -2.0, -3.0])
    batch = flip_batch(DenseNetwork([W], [b], []), np.zeros((3, 2)), [(0, 1), (0, 2), (0, 3)])
    return batch, np.array([5, 5, 5])


def test_a_tie_below_a_third_class_names_that_class() -> None:
    batch, groups = planes()
    found = Outcome.starting(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, -3.0]]))
    found.solved[:] = True
    assert [rows.tolist() for rows in covered(batch, found, groups)] == [[], []]
    found.dropped[0] = True
    assert [rows.tolist() for rows in covered(batch, found, groups)] == [[1], [0]]


def test_ties_will_do_only_if_nothing_else_can_be_nearer() -> None:
    batch, groups = planes()
    assert ties_will_do(batch, groups)
    assert not ties_will_do(batch.take(slice(0, 2)), groups[:2])  # class 3 is missing
    assert not ties_will_do(replace(batch, margin=0.1), groups)
    for lower, will in ((-1.0, True), (0.5, False)):  # x must satisfy the bounds itself
        bounded = flip_batch(batch.network, batch.X, batch.classes, bounds=(lower, 4.0))
        assert ties_will_do(bounded, groups) == will


def test_the_leading_classes_are_those_that_linear_boundaries_have_nearest() -> None:
    # A linear network is its own linearisation: the distances are (y_i - y_k) / |w_i - w_k|, in the weighted norm.
    rng = np.random.default_rng(3)
    network = DenseNetwork([rng.standard_normal((4, 5))], [rng.standard_normal(5)], [])
    X, weights = rng.standard_normal((30, 4)), np.array([1.0, 2.0, 3.0, 4.0])
    i = np.asarray(network.predict(X))
    groups = np.repeat(np.arange(30), 4)
    j = np.concatenate([np.delete(np.arange(5), k) for k in i])
    batch = flip_batch(network, X[groups], np.column_stack([i[groups], j]), weights=weights)
    W, Y = network.weights[0], network.logits(X)
    slope = np.linalg.norm((W[:, i[groups]] - W[:, j]).T / np.sqrt(weights), axis=1)
    distance = ((Y[groups, i[groups]] - Y[groups, j]) / slope).reshape(30, 4)
    mask, cost = leading(batch, groups + 7, 1.3)  # chunks begin anywhere
    assert np.array_equal(mask.reshape(30, 4), distance <= 1.3 * distance.min(axis=1, keepdims=True))
    assert cost.forward.sum() == 30  # one a group
    assert (cost.backward == 1).all()
    assert leading(batch.take(slice(0, 4)), np.arange(4), 1.0)[0].all()


def test_the_nearest_solved_classes_are_the_front() -> None:
    found = Outcome.starting(np.zeros((5, 2)))
    found.solved[:] = [True, True, True, False, True]
    distance, groups = np.array([1.0, 1.09, 1.11, 1.0, 9.0]), np.array([0, 0, 0, 0, 1])
    assert front(found, distance, groups, 1.1).tolist() == [0, 1, 4]


def test_the_nearest_of_every_group_so_far_comes_first() -> None:
    distance, groups = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 9.0]), np.array([0, 0, 0, 1, 1, 2])
    first, then = waves(np.array([0, 2, 3, 4, 5]), distance, groups)
    assert first.tolist() == [2, 4, 5]
    assert then.tolist() == [0, 3]
    assert [len(wave) for wave in waves(np.array([], dtype=np.int64), distance, groups)] == [0, 0]
