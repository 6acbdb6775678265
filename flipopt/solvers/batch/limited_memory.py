"""The curvature of many Lagrangians at once: limited-memory BFGS with the identity as its base.

The objective's own Hessian is the identity (in the scaled variables), so the base is exact and the memory only has to
learn what the boundary's curvature adds.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels import limited_memory as kernels

LEAST_CURVATURE = 0.1
"""Of a pair, s . y over s . s, below which it is damped."""


class Memory:
    """The last pairs (s, y) of every problem; see :mod:`flipopt.kernels.limited_memory` for the arrays."""

    def __init__(self, problems: int, n: int, pairs: int) -> None:
        self.S, self.Y = np.empty((problems, pairs, n)), np.empty((problems, pairs, n))
        self.rho = np.empty((problems, pairs))
        self.learnt, self.place = np.zeros(problems, dtype=np.int64), np.arange(problems)

    def keep(self, rows: Array) -> None:
        """Go on with the problems ``rows``; nothing is moved."""
        self.place = self.place[rows]

    def learn(self, rows: Array, s: Array, y: Array) -> None:
        """Add the pairs s, y (problems, n) to the problems in the mask ``rows``."""
        kernels.learn(self.S, self.Y, self.rho, self.learnt, self.place, rows, s, y, LEAST_CURVATURE)

    def inverse(self, A: Array, use: Array, r: Array) -> tuple[Array, Array]:
        """H A^T (problems, slots, n) for the rows in ``use``, 0 for others, and H r (problems, n).

        H is the inverse of the Hessian's approximation.
        """
        HA, Hr = np.zeros(A.shape), np.empty_like(r)
        kernels.inverse(self.S, self.Y, self.rho, self.learnt, self.place, A, use, r, HA, Hr)
        return HA, Hr
