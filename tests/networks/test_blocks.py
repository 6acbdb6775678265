"""Gradients at any of the points of a forward pass in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flipopt.networks.blocks import Block, pull_back
from flipopt.runs import threads as parallel
from tests.solvers.batch.nets import random_network
from tests.strategies import seeds


@given(seeds, st.integers(1, 9), st.booleans())
def test_gradients_are_those_of_single_points(seed: int, most: int, ascending: bool) -> None:
    net = random_network(seed, (4, 7, 6, 3))
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((20, 4)), rng.standard_normal((30, 3))
    points = rng.integers(0, 20, 30)
    points = np.sort(points) if ascending else points
    blocks = [Block(rows, *net._forward(X[rows])) for rows in parallel.blocks(20, most=most)]
    G = pull_back(blocks, V, points, net._backward, lambda task, count: [task(k) for k in range(count)])
    np.testing.assert_allclose(G, net.vjp(X[points], V), rtol=1e-12, atol=1e-13)


def test_slopes_of_all_points_in_order_are_not_copied() -> None:
    slopes = [np.ones((5, 2)), np.ones((5, 3))]
    seen: list[np.ndarray] = []

    def backward(given: list[np.ndarray], V: np.ndarray) -> np.ndarray:
        seen.extend(given)
        return V

    block = Block(slice(0, 5), np.ones((5, 2)), slopes)
    pull_back([block], np.ones((5, 2)), np.arange(5), backward, lambda task, count: [task(0)])
    assert all(np.shares_memory(one, other) for one, other in zip(seen, slopes, strict=True))


@pytest.mark.parametrize("points", [[], [3]])
def test_few_points_or_none(points: list[int]) -> None:
    net = random_network(0, (4, 7, 3))
    X = np.random.default_rng(0).standard_normal((5, 4))
    V = np.ones((len(points), 3))
    G = net.linearize_rows(X)[1](V, np.array(points, dtype=np.int64))
    assert G.shape == (len(points), 4)
    np.testing.assert_allclose(G, net.vjp(X[points], V) if points else np.zeros((0, 4)), rtol=1e-12)
