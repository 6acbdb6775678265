"""Dense networks in float32 for where their values need not be exact, with rows that do not depend on each other.

A row of a float32 product by numpy's BLAS depends, in its last bits, on its place among the others, and an iteration
can turn last bits into another local minimum. The products of torch's CPU library do not, from a few rows and columns
on (tests/networks/test_single.py), and are as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.blocks import Block, join, pull_back
from flipopt.networks.layers import Layers
from flipopt.networks.protocol import RowPullback
from flipopt.runs.threads import BLOCK_ROWS, blocks

if TYPE_CHECKING:
    from torch import Tensor

FEWEST = 16
"""Rows and columns that a product needs for its rows to be independent; it is padded to them."""
AT_ONCE = 2 * BLOCK_ROWS
"""Rows of a block: as many bytes as those in float64."""
WORTH_IT = 1e6
"""Floating-point operations of a forward pass from which on float32 saves more time than loading torch costs."""


def possible() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


class SinglePrecision:
    """The layers of a network, which take and return float64 and compute in float32: for ``linearize_rows`` only."""

    dtype = np.dtype(np.float32)

    def __init__(self, layers: Layers) -> None:
        self.weights, self.biases = ([a.astype(self.dtype) for a in part] for part in (layers.weights, layers.biases))
        self.activations, self.widths = layers.activations, layers.widths

    def linearize_rows(self, X: Array) -> tuple[Array, RowPullback]:
        """As that of the network, to about six digits; on one core, since a batch has its chunks on all of them."""
        with _one_thread():
            kept = [Block(rows, *self._forward(X[rows].astype(np.float32))) for rows in blocks(len(X), most=AT_ONCE)]

        def pullback(V: Array, points: Array) -> Array:
            with _one_thread():
                return pull_back(kept, V.astype(np.float32), points, self._backward, _in_turn).astype(np.float64)

        return join([block.Y for block in kept]).astype(np.float64), pullback

    def _forward(self, X: Array) -> tuple[Array, list[Array]]:
        y, slopes = X, []
        for k, activation in enumerate(self.activations):
            c = _product(y, self._matrices[k], self._shifts[k])[:, : self.widths[k + 1]]
            y, slope = activation.value_and_slope(c)
            slopes.append(slope)
        return _product(y, self._matrices[-1], self._shifts[-1])[:, : self.widths[-1]], slopes

    def _backward(self, slopes: list[Array], V: Array) -> Array:
        g = _product(V, self._transposed[-1])
        for W, slope in zip(self._transposed[-2::-1], reversed(slopes), strict=True):
            g = g[:, : slope.shape[1]]
            g *= slope
            g = _product(g, W)
        return g[:, : self.widths[0]]

    @cached_property
    def _matrices(self) -> list[Tensor]:
        return [_tensor(W) for W in self.weights]

    @cached_property
    def _shifts(self) -> list[Tensor]:
        return [_tensor(b[None])[0] for b in self.biases]

    @cached_property
    def _transposed(self) -> list[Tensor]:
        return [_tensor(W.T) for W in self.weights]


def _in_turn(task: Callable[[int], Array], count: int) -> list[Array]:
    return [task(k) for k in range(count)]


def _tensor(W: Array) -> Tensor:
    """W with columns of zeros up to FEWEST."""
    import torch

    return torch.from_numpy(np.pad(W, ((0, 0), (0, max(0, FEWEST - W.shape[1])))))


def _product(A: Array, W: Tensor, b: Tensor | None = None) -> Array:
    """A W or A W + b, with whatever columns W has been padded by."""
    import torch

    rows = len(A)
    if rows < FEWEST:
        A = np.concatenate([A, np.zeros((FEWEST - rows, A.shape[1]), dtype=A.dtype)])
    left = torch.from_numpy(np.ascontiguousarray(A))
    product = left.mm(W) if b is None else torch.addmm(b, left, W)
    return np.asarray(product.numpy()[:rows])


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch on one thread, as BLAS is in a batch: the cores have a chunk each."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
