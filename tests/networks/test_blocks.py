"""Products whose rows do not depend on each other; gradients at any of the points of a forward pass in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.networks.blocks import ROWS_AT_ONCE, Block, padded, pull_back, times
from flipopt.runs import threads
from tests.solvers.batch.nets import random_network
from tests.strategies import seeds

# (columns of A, columns of W)
SHAPES = [(5, 12), (12, 4), (100, 1), (100, 300), (300, 2), (784, 33), (400, 300), (500, 250), (300, 300), (1000, 203)]


@pytest.mark.parametrize(("inner", "columns"), SHAPES)
def test_a_row_of_a_product_depends_on_no_other_row(inner: int, columns: int) -> None:
    """Bit by bit, also where BLAS changes its ways: at products of a million multiplications."""
    rng = np.random.default_rng(inner)
    million = 1_000_000 // (inner * columns) + 1
    rows = min(1100, max(60, 2 * million))
    A, W = rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))
    with threads.one_blas_thread():
        whole = times(A, W)
        np.testing.assert_allclose(whole, A @ W, atol=1e-11)
        for count in {1, 2, 7, 8, 9, 23, min(million - 1, rows), min(million + 1, rows), rows}:
            chosen = rng.permutation(rows)[:count]
            np.testing.assert_array_equal(times(A[chosen], W), whole[chosen])
        np.testing.assert_array_equal(times(A[3], W), whole[3])
        others = np.concatenate([1e6 * rng.standard_normal((5, inner)), A[:4]])
        np.testing.assert_array_equal(times(others, W)[5:], whole[:4])


@pytest.mark.parametrize("activation", [fo.Erf(1.5), fo.Tanh(), fo.ReLU(), fo.ELU()], ids=repr)
def test_a_row_of_a_dense_network_depends_on_no_other_row(activation: fo.Activation) -> None:
    net = random_network(1, (100, 120, 90, 10), activation)
    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((210, 100)), rng.standard_normal((210, 10))
    with threads.one_blas_thread():
        Y, pullback = net.linearize_rows(X)
        G = pullback(V, np.arange(210))
        for count in (1, 2, 8, 11, 64, 65, 90, 200):
            some = rng.permutation(210)[:count]
            Y_some, pullback_some = net.linearize_rows(X[some])
            np.testing.assert_array_equal(Y_some, Y[some])
            np.testing.assert_array_equal(net.logits(X[some]), Y[some])
            np.testing.assert_array_equal(pullback_some(V[some], np.arange(count)), G[some])


def test_rows_are_padded_with_zeros_to_a_full_block() -> None:
    A = np.arange(1.0, 23.0).reshape(11, 2)
    full = padded(A)
    assert len(full) % ROWS_AT_ONCE == 0
    np.testing.assert_array_equal(full[:11], A)
    assert not full[11:].any()
    assert padded(full) is full


@given(seeds, st.integers(1, 9), st.booleans())
def test_gradients_are_those_of_single_points(seed: int, most: int, ascending: bool) -> None:
    net = random_network(seed, (4, 7, 6, 3))
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((20, 4)), rng.standard_normal((30, 3))
    points = rng.integers(0, 20, 30)
    points = np.sort(points) if ascending else points
    blocks = [Block(rows, *net._forward(X[rows])) for rows in threads.blocks(20, most=most)]
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
