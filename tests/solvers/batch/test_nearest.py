"""Which classes are given up, and which get a second look."""

from __future__ import annotations

import numpy as np

from flipopt.solvers.batch.nearest import Nearest, front, waves
from flipopt.solvers.batch.sqp import Outcome


def test_a_class_is_dropped_only_if_its_minimum_cannot_be_nearer() -> None:
    nearest = Nearest(np.array([0, 0, 0, 1]))
    everything = np.arange(4)
    distance, residual = np.array([1.0, 1.1, 1.1, 5.0]), np.array([1e-8, 1e-3, 0.3, 1e-3])
    none = np.zeros(4, dtype=bool)
    assert not nearest(everything, distance, residual, none).any()  # nothing is solved yet
    solved = np.array([True, False, False, False])
    # The second is as good as at its minimum; the third may still descend by more than it is too far.
    assert nearest(everything, distance, residual, solved).tolist() == [False, True, False, False]
    assert nearest.part(np.array([1, 3]))(np.arange(2), distance[[1, 3]], residual[[1, 3]], none[:2]).tolist() == [
        True,
        False,
    ]


def test_a_class_that_is_much_farther_than_one_on_its_way_down_is_hopeless() -> None:
    nearest = Nearest(np.array([0, 0, 0, 0]), reach=1.4, flattest=1.0)
    distance, none = np.array([1.0, 1.3, 1.6, 0.0]), np.zeros(4, dtype=bool)
    # The last one has not met the boundary yet: it says nothing, and nothing can be said of it.
    assert nearest(np.arange(4), distance, np.full(4, 0.1), none).tolist() == [False, False, True, False]
    assert nearest(np.arange(4), distance, np.full(4, 0.9), none).tolist() == [False] * 4


def test_the_nearest_classes_are_looked_at_twice() -> None:
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
