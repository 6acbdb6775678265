"""Starting points of many problems at once: towards samples of the target class, random, reflected.

None depends on a problem's place in its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.blocks import times
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.problem import FlipBatch

SPREAD = 0.1
"""How far from x the random points are, relative to |x|, in the weighted norm."""
BISECTIONS = 8
"""Of the segment from x to a sample: a solver does the rest."""


def number_of_starts(starts: Any) -> int:
    """``starts``, which must be a whole number of at least 1."""
    if not isinstance(starts, int | np.integer) or isinstance(starts, bool) or starts < 1:
        raise InputError(f"starts: expected a number of points >= 1, or points, found {starts!r}")
    return int(starts)


@dataclass(frozen=True)
class Samples:
    """Points X (samples, n_inputs) to start towards, and the classes that the network gives them, (samples,)."""

    X: Array
    classes: Array

    @classmethod
    def of(cls, network: Network, towards: ArrayLike | None) -> Samples | None:
        """From the argument ``towards`` of the public verbs."""
        if towards is None:
            return None
        X = np.atleast_2d(as_points(towards, network, "towards")).astype(np.float64)
        return cls(X, np.asarray(network.predict(X)))


def further_points(batch: FlipBatch, k: int, samples: Samples | None, seed: int) -> Array:
    """The k-th further start of every problem, (problems, n_inputs): near the boundary on the way to the k-th nearest
    sample of its target class, or, where there is none, a random point."""
    points = random_points(batch, (seed, 100 + k))
    return points if samples is None else towards_samples(batch, samples, k, points)


def restart_points(batch: FlipBatch, attempt: int, seed: int) -> Array:
    """Where to start again what has failed, (problems, n_inputs): on the way to the network's landmarks, if it has any,
    else a random point. Far from its centres a kernel is flat, and the gradient may lead away from every boundary."""
    points, landmarks = random_points(batch, (seed, attempt)), getattr(batch.network, "landmarks", None)
    samples = Samples.of(batch.network, landmarks)
    return points if samples is None else towards_samples(batch, samples, attempt - 1, points)


def random_points(batch: FlipBatch, seed: tuple[int, int]) -> Array:
    """x + SPREAD |x| z for one random direction z: the same for every problem, so that none depends on its batch."""
    z = np.random.default_rng(seed).standard_normal(batch.X.shape[1])
    root = np.sqrt(batch.setting.weights)
    size = np.maximum(np.linalg.norm(root * batch.X, axis=1), 1e-3)
    return batch.clip(batch.X + SPREAD * size[:, None] * z / np.linalg.norm(z) / root)


def reflected(batch: FlipBatch, X_hat: Array, back: float) -> Array:
    """Points behind x as seen from X_hat (problems, n_inputs), at ``back`` times its distance; beyond it if negative;
    x itself if 0."""
    return batch.clip(batch.X - back * (X_hat - batch.X)) if back else batch.X


def towards_samples(batch: FlipBatch, samples: Samples, rank: int, otherwise: Array) -> Array:
    """Points near the boundary on the way to the sample of the target class that is the nearest but ``rank``."""
    points, weights = otherwise.copy(), batch.setting.weights
    for j in np.unique(batch.classes[:, 1]):
        mine, theirs = np.flatnonzero(batch.classes[:, 1] == j), samples.X[samples.classes == j]
        if len(theirs) <= rank:
            continue
        squares = (weights * theirs**2).sum(axis=1) - 2 * times(weights * batch.X[mine], theirs.T)
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
