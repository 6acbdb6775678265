"""The descent over linear pieces of a ReLU network for the problems of a batch that have no bounds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.problem import FlipBatch

if TYPE_CHECKING:
    from flipopt.kernels.pieces import Net

BETWEEN_LOOKS_AT_THE_CLOCK = 100
"""Problems that are solved without one."""
LOOKS = 20
"""Walls around a local minimum that are looked behind, the nearest ones."""


@dataclass(frozen=True)
class Descent:
    """Where the problems ended.

    Attributes
    ----------
    x
        The points, (problems, n).
    ended
        Whether that is a local minimum, or, after a look around, a nearer one than before, (problems,).
    dropped
        Whether the problem was given up, (problems,).
    forward, backward
        Passes, (problems,).
    """

    x: Array
    ended: Array
    dropped: Array
    forward: Array
    backward: Array


def descend(
    batch: FlipBatch, starts: Array, groups: Array, best: Array, fall: float, deadline: float = np.inf
) -> Descent:
    """From ``starts`` (problems, n) to local minima, the nearest first.

    ``best`` (groups,), changed in place, holds the least distance in every group so far. A problem that is farther than
    that, even if the descent brings it to the share ``fall`` of its distance, is dropped. None begins after the
    ``deadline``, in seconds of ``time.perf_counter``.
    """
    return _run(batch, starts, groups, best, fall, 0, deadline)


def look_around(batch: FlipBatch, minima: Array, deadline: float = np.inf) -> Descent:
    """From local minima (problems, n) to nearer ones behind the walls that are near, where there are any."""
    each = np.arange(len(batch))
    return _run(batch, minima, each, np.full(len(batch), np.inf), 0.0, LOOKS, deadline)


def _run(
    batch: FlipBatch, points: Array, groups: Array, best: Array, fall: float, looks: int, deadline: float
) -> Descent:
    from flipopt.kernels.pieces import descend_all

    count, root = len(batch), np.sqrt(batch.setting.weights)
    X, Z = np.ascontiguousarray(root * batch.X), np.ascontiguousarray(root * points)
    ended, dropped, passes = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool), np.zeros((count, 2), np.int64)
    order, classes = np.argsort(batch.distances(points), kind="stable"), np.ascontiguousarray(batch.classes)
    net, margin = _flat(batch, root), float(batch.margin)
    for start in range(0, count, BETWEEN_LOOKS_AT_THE_CLOCK):
        if time.perf_counter() > deadline:
            break
        some = order[start : start + BETWEEN_LOOKS_AT_THE_CLOCK]
        descend_all(net, X, classes, margin, some, groups, best, fall, looks, Z, ended, dropped, passes)
    return Descent(Z / root, ended, dropped, *passes.T)


def _flat(batch: FlipBatch, root: Array) -> Net:
    """The network as a function of u = sqrt(w) x."""
    from flipopt.kernels.pieces import Net

    network = batch.network
    assert isinstance(network, DenseNetwork)
    first, *others = network.weights
    return Net(
        weights=np.concatenate([(first / root[:, None]).reshape(-1), *map(np.ravel, others)]),
        biases=np.concatenate(network.biases),
        widths=np.array(network.widths),
        starts=np.cumsum([0, *(matrix.size for matrix in network.weights[:-1])]),
        slopes=np.concatenate([np.array(pair) for pair in network.one_sided_slopes], axis=1, dtype=np.float64),
    )
