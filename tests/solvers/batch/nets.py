"""Small random networks and batches of problems on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import flipopt as fo
from flipopt.problem import FlipBatch, flip_batch


def random_network(
    seed: int, widths: tuple[int, ...] = (6, 12, 4), activation: fo.Activation | None = None
) -> fo.DenseNetwork:
    rng = np.random.default_rng(seed)
    W = [1.5 * rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [0.5 * rng.standard_normal(width) for width in widths[1:]]
    return fo.DenseNetwork(W, b, activation or fo.Erf(1.5))


def random_batch(net: fo.Network, seed: int, problems: int = 6, **options: object) -> FlipBatch:
    """Problems from the predicted class of random inputs to any other one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((problems, net.n_inputs))
    i = np.asarray(net.predict(X))
    j = (i + rng.integers(1, net.n_classes, problems)) % net.n_classes
    return flip_batch(net, X, np.column_stack([i, j]), **options)  # type: ignore[arg-type]
