"""Matrix products by blocks of rows, none of which depends on the others; gradients at points of a forward pass.

The slopes of a block stay in an array of their own: they are as many numbers as a batch has neurons, and copying them
costs a good part of what the matrix products do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from flipopt.common.checks import Array

Backward = Callable[[list[Array], Array], Array]
"""Slopes (k, width) of every hidden layer and V (k, n_classes) to V J (k, n_inputs)."""
ROWS_AT_ONCE = 8
"""The number of rows of a product is a multiple of this: BLAS treats what is left over by other kernels, whose sums are
rounded otherwise (tests/networks/test_blocks.py), and iterations turn last bits into other local minima."""
SMALL = 10**6
"""Multiplications up to which OpenBLAS takes other kernels on processors with AVX-512, whose sums round otherwise.
So a product is on one side of it however many rows a batch has: in portions below, or if that is few rows, above."""
LEFT_OVER_ROWS = 24
"""The same for the columns that are left over by those kernels."""
Each = Callable[[Callable[[int], Array], int], list[Array]]
"""Calls a function of 0, ..., count - 1; its results in order."""


def padded(A: Array) -> Array:
    """A (rows, columns) with rows of zeros up to the next multiple of ROWS_AT_ONCE."""
    more = -len(A) % ROWS_AT_ONCE
    return np.concatenate([A, np.zeros((more, A.shape[1]), dtype=A.dtype)]) if more else A


def product(A: Array, W: Array) -> Array:
    """A W for A (rows, k), rows a multiple of ROWS_AT_ONCE, and W (k, n), in the order of C or copied to it."""
    W = np.ascontiguousarray(W)  # a transposed one has other kernels
    if not _has_small_kernels():
        return np.asarray(A @ W)
    most = SMALL // W.size // ROWS_AT_ONCE * ROWS_AT_ONCE
    if most <= ROWS_AT_ONCE:  # portions of so few rows are slow
        return _large_product(A, W, least=2 * ROWS_AT_ONCE if most else ROWS_AT_ONCE)
    if len(A) <= most:
        return np.asarray(A @ W)
    C = np.empty((len(A), W.shape[1]), dtype=np.result_type(A, W))
    for first in range(0, len(A), most):
        np.matmul(A[first : first + most], W, out=C[first : first + most])
    return C


def _large_product(A: Array, W: Array, least: int) -> Array:
    """With so many rows at least, and where columns are left over, in full rows of the kernel for them."""
    multiple = ROWS_AT_ONCE if W.shape[1] % ROWS_AT_ONCE == 0 else LEFT_OVER_ROWS
    rows = max(-(-len(A) // multiple) * multiple, least)
    if rows > len(A):
        A, count = np.concatenate([A, np.zeros((rows - len(A), A.shape[1]), dtype=A.dtype)]), len(A)
        return np.asarray(A @ W)[:count]
    return np.asarray(A @ W)


@cache
def _has_small_kernels() -> bool:
    """Whether this machine's BLAS rounds the rows of a small product otherwise than those of a large one."""
    A, W = np.random.default_rng(0).standard_normal((2, 300, 300))
    some = [np.ascontiguousarray(W[:, :n]) for n in (10, 33, 100)]
    return any(not np.array_equal(A[:8] @ part, (A @ part)[:8]) for part in some)


def times(A: Array, W: Array) -> Array:
    """A W for A (rows, k), or (k,), on one BLAS thread: in float64 a row is the same whatever the others are."""
    return product(padded(np.atleast_2d(A)), W)[: len(A)] if A.ndim > 1 else times(A[None], W)[0]


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a batch, their logits (rows, n_classes), and the slopes of every hidden layer there."""

    rows: slice
    Y: Array
    slopes: list[Array]


def pull_back(blocks: Sequence[Block], V: Array, points: Array, backward: Backward, each: Each) -> Array:
    """V J (k, n_inputs) for V (k, n_classes) at the ``points`` (k,), indices of rows of the whole batch."""
    if (points[1:] < points[:-1]).any():
        order = np.argsort(points, kind="stable")
        G = pull_back(blocks, V[order], points[order], backward, each)
        return G[np.argsort(order, kind="stable")]
    edges = np.searchsorted(points, [block.rows.start for block in blocks[1:]])
    lows, highs = np.append(0, edges), np.append(edges, len(points))

    def gradient(k: int) -> Array:
        here, mine = blocks[k], slice(lows[k], highs[k])
        return backward(_at(here.slopes, points[mine] - here.rows.start), V[mine])

    return join(each(gradient, len(blocks)))


def _at(slopes: list[Array], points: Array) -> list[Array]:
    """The rows ``points`` of all slopes, without a copy where they are one after the other."""
    if (np.diff(points) == 1).all():
        first = int(points[0]) if len(points) else 0
        return [slope[first : first + len(points)] for slope in slopes]
    return [slope.take(points, axis=0) for slope in slopes]


def join(parts: list[Array]) -> Array:
    """One array of the rows of all parts."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
