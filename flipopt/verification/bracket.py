"""Two points either side of a flip point that the network, in its own precision, puts in different classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.protocol import Network

DOUBLINGS = 24
"""Of a step of one unit in the last place: float32 is then at its size, and any other precision at its square root."""


@dataclass(frozen=True)
class Bracket:
    """Two points, one on either side of x_hat along the boundary's normal, that the network puts in different classes.

    ``step`` is their distance from x_hat; they are in the precision of the network's own parameters.
    """

    step: float
    classes: tuple[int, int]
    inside: Array
    outside: Array

    @classmethod
    def around(cls, network: Network, x_hat: Array, normal: Array) -> Bracket | None:
        """Step both ways along ``normal``, from one unit in the last place on, until the classes differ."""
        length = np.linalg.norm(normal)
        if not (np.isfinite(length) and length > 0):
            return None
        ulp = np.finfo(network.dtype).eps * max(1.0, np.abs(x_hat).max())
        for steps in ulp * 2.0 ** np.arange(DOUBLINGS).reshape(-1, 8):  # eight pairs cost hardly more than one
            moves = (steps / length)[:, None] * normal
            pairs = np.stack([x_hat + moves, x_hat - moves], axis=1).astype(network.dtype)
            classes = network.predict(pairs.reshape(16, -1)).reshape(8, 2)
            for k in np.flatnonzero(classes[:, 0] != classes[:, 1]):
                inside, outside = (int(c) for c in network.predict(pairs[k]))  # in larger products rounding may differ
                if inside != outside:
                    return cls(float(steps[k]), (inside, outside), *pairs[k])
        return None
