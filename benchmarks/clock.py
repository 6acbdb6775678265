"""How much of the machine a network uses: the time and operations of its passes, against matrix products alone."""

from __future__ import annotations

import time
from threading import Lock

import numpy as np

from flipopt.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.parallel import cores, in_order


class Tally:
    """Time and operations of a network's passes, from several threads."""

    def __init__(self) -> None:
        self.seconds, self.operations, self.lock = 0.0, 0.0, Lock()

    def add(self, operations: float, started: float) -> None:
        seconds = time.perf_counter() - started
        with self.lock:
            self.seconds += seconds
            self.operations += operations


class Clock(DenseNetwork):
    """The network, in float64, with a tally of its passes for the batch solver and of those of its softened forms."""

    def __init__(self, network: DenseNetwork, tally: Tally | None = None) -> None:
        exact = network.in_float64
        super().__init__(exact.weights, exact.biases, exact.activations)
        self.tally = Tally() if tally is None else tally

    def softened(self, share: float, size: float) -> DenseNetwork:
        return Clock(super().softened(share, size), self.tally)

    def linearize_rows(self, X: Array):  # type: ignore[no-untyped-def]
        started = time.perf_counter()
        Y, pullback = super().linearize_rows(X)
        self.tally.add(len(X) * self._operations, started)

        def timed(V: Array, points: Array) -> Array:
            started = time.perf_counter()
            gradient = pullback(V, points)
            self.tally.add(len(V) * self._operations, started)
            return gradient

        return Y, timed


def peak() -> float:
    """Gflop/s of float64 matrix products of the size of a layer's, on all cores at once, for each core."""
    W, X = np.random.default_rng(0).standard_normal((500, 500)), np.random.default_rng(1).standard_normal((1024, 500))

    def products(_: int) -> float:
        started = time.perf_counter()
        for _ in range(40):
            np.matmul(X, W)
        return float(80 * X.size * W.shape[1] / (time.perf_counter() - started) / 1e9)

    return float(np.mean(list(in_order(products, range(2 * cores())))[cores() :]))
