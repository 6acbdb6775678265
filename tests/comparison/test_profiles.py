"""Profiles, against their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flipopt.comparison.profiles import (
    cost_of_solved,
    curve,
    data_ratios,
    performance_ratios,
    solved,
)
from tests.strategies import seeds


def test_a_small_case_by_hand() -> None:
    distance = np.array([[1.0, 1.0005, np.nan], [2.0, 2.1, 2.0], [np.nan, np.nan, np.nan]])
    counts = solved(distance, np.array([1.0, 2.0, 3.0]), 1e-3)
    assert counts.tolist() == [[True, True, False], [True, False, True], [False] * 3]
    cost = cost_of_solved(np.array([[4.0, 2.0, 1.0], [3.0, 1.0, 12.0], [1.0, 1.0, 1.0]]), counts)
    ratios = performance_ratios(cost)
    assert ratios.tolist() == [[2, 1, np.inf], [1, np.inf, 4], [np.inf] * 3]
    at, share = curve(ratios[:, 0])
    assert at.tolist() == [1, 2]
    np.testing.assert_allclose(share, [1 / 3, 2 / 3])
    assert data_ratios(cost, np.array([1, 2, 3]))[:2].tolist() == [[2, 1, np.inf], [1, np.inf, 4]]


def random_costs(seed: int, problems: int, methods: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cost = rng.integers(1, 20, (problems, methods)).astype(float)
    return np.where(rng.random(cost.shape) < 0.3, np.inf, cost)


@given(seeds, st.integers(1, 8), st.integers(1, 5))
def test_a_profile_is_the_share_of_problems_within_a_factor(seed: int, problems: int, methods: int) -> None:
    cost = random_costs(seed, problems, methods)
    ratios = performance_ratios(cost)
    for m in range(methods):
        at, share = curve(ratios[:, m])
        assert (np.diff(at) > 0).all()
        assert (np.diff(share) > 0).all()
        for tau in (1.0, 1.5, 3.0, 100.0):
            by_hand = np.mean([cost[p, m] <= tau * cost[p].min() and np.isfinite(cost[p, m]) for p in range(problems)])
            height = share[at <= tau][-1] if (at <= tau).any() else 0.0
            np.testing.assert_allclose(height, by_hand)


@given(seeds, st.integers(1, 8), st.integers(2, 5))
def test_hiding_the_best_method_moves_the_others_up_and_data_profiles_not(
    seed: int, problems: int, methods: int
) -> None:
    cost, n = random_costs(seed, problems, methods), np.arange(1, problems + 1)
    with_all, without = performance_ratios(cost)[:, 1:], performance_ratios(cost[:, 1:])
    assert (without <= with_all).all()
    assert (np.isinf(without) == np.isinf(cost[:, 1:])).all()
    np.testing.assert_array_equal(data_ratios(cost, n)[:, 1:], data_ratios(cost[:, 1:], n))


def test_nothing_solved_and_nothing_at_all() -> None:
    assert np.isinf(performance_ratios(np.full((2, 2), np.inf))).all()
    at, share = curve(np.full(3, np.inf))
    assert len(at) == len(share) == 0
    assert performance_ratios(np.empty((0, 3))).shape == (0, 3)
    free = cost_of_solved(np.zeros((1, 2)), np.ones((1, 2), dtype=bool))
    assert performance_ratios(free).tolist() == [[1, 1]]
