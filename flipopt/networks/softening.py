"""Smoother forms of a network, whose boundaries have fewer folds."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.activations import PReLU
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.protocol import Network

LARGEST = 2.0**1000
"""Square of a size: networks are rounded off by no more."""


def softens(network: Network) -> bool:
    """Whether the network has a smoother form."""
    soften = getattr(network, "softened", None)
    return soften is not None and soften(1.0, 1.0) is not network


def sizes_of(network: Network, X: Array) -> Array:
    """The size of the hidden pre-activations at every x, as a power of 4, so that few networks serve all of them.

    Only the width of rounded kinks depends on it; for networks without any it is 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is as large as can be
        square = np.nan_to_num(_squares(network, X), nan=1.0, posinf=LARGEST)
    return np.asarray(4.0 ** np.round(np.log2(np.where(square > 0, square, 1.0)) / 4))


def _squares(network: Network, X: Array) -> Array:
    """Of those sizes, (points,)."""
    if not isinstance(network, DenseNetwork):
        return np.asarray(network.sizes(X) ** 2)  # type: ignore[attr-defined]
    if any(isinstance(activation, PReLU) for activation in network.activations):
        return np.asarray((np.concatenate(network.pre_activations(X)[:-1], axis=1) ** 2).mean(axis=1))
    return np.ones(len(X))
