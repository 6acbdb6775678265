"""Where the starts of a batch begin, and how large its pre-activations are there.

Nothing here depends on a problem's place in its batch, so that no result does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import PReLU
from flipopt.networks.protocol import Network
from flipopt.problem import FlipBatch

SPREAD = 0.1
"""How far from x the random starts are, relative to |x|."""
BISECTIONS = 8
"""Of the segment from x to a sample, to start near the boundary; the approach does the rest."""


@dataclass(frozen=True)
class Samples:
    """Points X (samples, n_inputs) to start towards, and the classes that the network gives them, (samples,)."""

    X: Array
    classes: Array

    @classmethod
    def of(cls, network: Network, X: Array) -> Samples:
        return cls(X, np.asarray(network.predict(X)))


def sizes_of(network: DenseNetwork, X: Array) -> Array:
    """The size of the hidden pre-activations at every x, as a power of 4, so that few networks serve all of them.

    Only the width of rounded kinks depends on it; for networks without any it is 1.
    """
    if not any(isinstance(activation, PReLU) for activation in network.activations):
        return np.ones(len(X))
    c = np.concatenate(network.pre_activations(X)[:-1], axis=1)
    square = (c**2).mean(axis=1)
    return np.asarray(4.0 ** np.round(np.log2(np.where(square > 0, square, 1.0)) / 4))


def random_points(batch: FlipBatch, seed: tuple[int, int]) -> Array:
    """x + SPREAD |x| z for one random direction z: the same for every problem, so that none depends on its batch."""
    z = np.random.default_rng(seed).standard_normal(batch.X.shape[1])
    size = np.maximum(np.linalg.norm(batch.X, axis=1), 1e-3)
    return batch.clip(batch.X + SPREAD * size[:, None] * z / np.linalg.norm(z))


def behind(batch: FlipBatch, X_hat: Array, back: float) -> Array:
    """Points behind x as seen from X_hat (problems, n_inputs), at the share ``back`` of its distance: x itself if 0."""
    return batch.clip(batch.X - back * (X_hat - batch.X)) if back else batch.X


def on_the_way(batch: FlipBatch, towards: Samples, rank: int, otherwise: Array) -> Array:
    """Points near the boundary on the way to the sample of the target class that is the nearest but ``rank``."""
    points = otherwise.copy()
    for j in np.unique(batch.classes[:, 1]):
        mine, theirs = np.flatnonzero(batch.classes[:, 1] == j), towards.X[towards.classes == j]
        if len(theirs) <= rank:
            continue
        squares = (theirs**2).sum(axis=1) - 2 * batch.X[mine] @ theirs.T
        points[mine] = _bisected(batch.take(mine), theirs[np.argsort(squares, axis=1, kind="stable")[:, rank]])
    return batch.clip(points)


def _bisected(batch: FlipBatch, samples: Array) -> Array:
    """Where the lead over the target changes its sign on the way from x to the sample of each problem."""
    low, high = np.zeros(len(batch)), np.ones(len(batch))
    rows, j = np.arange(len(batch)), batch.classes[:, 1]
    for _ in range(BISECTIONS):
        t = (low + high) / 2
        ahead = batch.leads(batch.network.logits(batch.X + t[:, None] * (samples - batch.X)))[rows, j] > 0
        low, high = np.where(ahead, t, low), np.where(ahead, high, t)
    return np.asarray(batch.X + high[:, None] * (samples - batch.X))
