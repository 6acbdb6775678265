"""Smoother forms of a network, whose boundaries have fewer folds."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.activations import PReLU
from flipopt.networks.dense import DenseNetwork


def sizes_of(network: DenseNetwork, X: Array) -> Array:
    """The size of the hidden pre-activations at every x, as a power of 4, so that few networks serve all of them.

    Only the width of rounded kinks depends on it; for networks without any it is 1.
    """
    if not any(isinstance(activation, PReLU) for activation in network.activations):
        return np.ones(len(X))
    c = np.concatenate(network.pre_activations(X)[:-1], axis=1)
    square = (c**2).mean(axis=1)
    return np.asarray(4.0 ** np.round(np.log2(np.where(square > 0, square, 1.0)) / 4))
