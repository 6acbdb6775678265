"""How much of the machine a network uses: the time and operations of its passes, against matrix products alone."""

from __future__ import annotations

import time
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.protocol import Network, RowPullback
from flipopt.runs.threads import cores, in_order


class Tally:
    """Time and operations of a network's passes, from several threads."""

    def __init__(self) -> None:
        self.seconds, self.operations, self.lock = 0.0, 0.0, Lock()

    def add(self, operations: float, started: float) -> None:
        seconds = time.perf_counter() - started
        with self.lock:
            self.seconds += seconds
            self.operations += operations

    @property
    def rate(self) -> float:
        """Gflop/s."""
        return self.operations / max(self.seconds, 1e-12) / 1e9


class Clock(DenseNetwork):
    """A network with tallies, one a precision, of what the batch solver makes it and its softened forms compute."""

    def __init__(self, network: Any, tallies: dict[str, Tally] | None = None) -> None:
        super().__init__(network.weights, network.biases, network.activations)
        self.network = network
        self.tallies = {"float64": Tally(), "float32": Tally()} if tallies is None else tallies

    def softened(self, share: float, size: float) -> DenseNetwork:
        return Clock(self.network.softened(share, size), self.tallies)

    @cached_property
    def in_float64(self) -> DenseNetwork:
        return self if self.dtype == np.float64 else Clock(self.network.in_float64, self.tallies)

    @cached_property
    def in_float32(self) -> Network:
        single = self.network.in_float32
        return self if single is self.network else Clock(single, self.tallies)

    def linearize_rows(self, X: Array) -> tuple[Array, RowPullback]:
        tally, started = self.tallies[str(self.network.dtype)], time.perf_counter()
        Y, pullback = self.network.linearize_rows(X)
        tally.add(len(X) * self._operations, started)

        def timed(V: Array, points: Array) -> Array:
            started = time.perf_counter()
            gradient: Array = pullback(V, points)
            tally.add(len(V) * self._operations, started)
            return gradient

        return Y, timed


def peak(dtype: str) -> float:
    """Gflop/s of matrix products of the size of a layer's, on all cores at once, for each core."""
    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((500, 500)).astype(dtype), rng.standard_normal((1024, 500)).astype(dtype)

    def products(_: int) -> float:
        started = time.perf_counter()
        for _ in range(40):
            np.matmul(X, W)
        return float(80 * X.size * W.shape[1] / (time.perf_counter() - started) / 1e9)

    return float(np.mean(list(in_order(products, range(2 * cores())))[cores() :]))
