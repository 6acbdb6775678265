"""Lines between points, many to be searched together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_number
from flipopt.common.errors import DerivativeError, InputError
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network, linearize_rows
from flipopt.networks.wrapping import as_network
from flipopt.problem.setting import in_float64

NUMBERS_AT_ONCE = 2**23
"""Entries of the points that are made at once."""
CLEARLY = 1e-3
"""How far ahead a class must be for float32, relative to the logits: a hundred times what rounding does to them."""


@dataclass(frozen=True)
class Lines:
    """(1 - alpha) a + alpha b for alpha in [-beyond, 1 + beyond], for the rows a of A and b of B, (lines, n_inputs).

    Both ends are met exactly. ``evaluations`` (lines,) counts the points at which the network has been asked.
    """

    network: Network | NearlyExact
    A: Array
    B: Array
    beyond: float
    evaluations: Array

    @classmethod
    def between(cls, network: Network | NearlyExact, A: Array, B: Array, beyond: float = 0.0) -> Lines:
        """Lines that nobody has looked at yet."""
        return cls(network, A, B, beyond, np.zeros(len(A), dtype=np.int64))

    @property
    def low(self) -> float:
        """The first alpha."""
        return -self.beyond

    @property
    def high(self) -> float:
        """The last alpha."""
        return 1 + self.beyond

    def __len__(self) -> int:
        return len(self.A)

    def take(self, lines: slice) -> Lines:
        """Some of them, with their counts."""
        return Lines(self.network, self.A[lines], self.B[lines], self.beyond, self.evaluations[lines])

    def at(self, line: Array, alpha: Array) -> Array:
        """The points (k, n_inputs) of the lines ``line`` (k,) at ``alpha`` (k,)."""
        return np.asarray((1 - alpha)[:, None] * self.A[line] + alpha[:, None] * self.B[line])

    def logits(self, line: Array, alpha: Array) -> Array:
        """What the network says there, (k, n_classes)."""
        self.evaluations[:] += np.bincount(line, minlength=len(self))
        most = max(1, NUMBERS_AT_ONCE // self.A.shape[1])
        parts = [slice(first, first + most) for first in range(0, len(line), most)]
        values = [self.network.logits(self.at(line[part], alpha[part])) for part in parts]
        return np.concatenate(values) if values else np.empty((0, self.network.n_classes))


def lines_between(network: Any, A: Any, B: Any, beyond: float) -> Lines:
    """Lines from what a caller hands in: A and B are rows, or one point for all lines."""
    network = as_network(network, A, many=np.ndim(A) > 1)
    ends = [as_points(values, network, name).astype(np.float64) for values, name in ((A, "A"), (B, "B"))]
    if ends[0].ndim == ends[1].ndim == 2 and len(ends[0]) != len(ends[1]):
        raise InputError(f"B: expected {len(ends[0])} points, as A has, or one, found {len(ends[1])}")
    A, B = (np.atleast_2d(end) for end in np.broadcast_arrays(*ends))
    if not len(A):
        raise InputError("A: expected at least one point, found none")
    same = np.flatnonzero((A == B).all(axis=1))
    if len(same):
        raise InputError(f"A, B: expected two points for every line, found the same point twice in row {same[0]}")
    return Lines.between(exact(network), A, B, as_number(beyond, "beyond", least=0.0))


def exact(network: Network) -> Network:
    """The network in float64, or as it is where it has no other precision."""
    try:
        return in_float64(network)
    except DerivativeError:
        return network


@dataclass(frozen=True)
class NearlyExact:
    """A network whose logits are computed in float32 where one class is clearly ahead, and in float64 elsewhere."""

    network: Network
    single: Network

    @property
    def n_classes(self) -> int:
        """Of the network."""
        return self.network.n_classes

    def logits(self, X: Array) -> Array:
        """At the points X (batch, n_inputs), (batch, n_classes)."""
        Y = linearize_rows(self.single, X)[0].astype(np.float64)
        two = np.partition(Y, -2, axis=1)[:, -2:]
        near = np.flatnonzero(~(two[:, 1] - two[:, 0] > CLEARLY * (1 + np.abs(Y).max(axis=1))))
        if len(near):
            Y[near] = self.network.logits(X[near])
        return Y


def in_float32_far_away(network: Network) -> Network | NearlyExact:
    """The network with float32 where it can do no harm; itself where that saves nothing, or cannot be had."""
    try:
        single = getattr(network, "in_float32", network)
    except DerivativeError:
        return network
    return network if single is network else NearlyExact(network, single)
