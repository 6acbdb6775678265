"""The curvature of many Lagrangians at once: limited-memory BFGS with the identity as its base.

The objective's own Hessian is the identity (in the scaled variables), so the base is exact and the memory only has to
learn what the boundary's curvature adds.
"""

from __future__ import annotations

import numpy as np

from flipopt.checks import Array

LEAST_CURVATURE = 0.1
"""A pair with s . y below this times s . s is damped (Powell), so that the matrix stays positive definite."""


class Memory:
    """Pairs (s, y) of every problem, newest last; a slot that is still empty has rho = 0 and does nothing."""

    def __init__(self, problems: int, n: int, pairs: int) -> None:
        self.S, self.Y = np.zeros((problems, pairs, n)), np.zeros((problems, pairs, n))
        self.rho = np.zeros((problems, pairs))

    def keep(self, rows: Array) -> None:
        self.S, self.Y, self.rho = self.S[rows], self.Y[rows], self.rho[rows]

    def learn(self, rows: Array, s: Array, y: Array) -> None:
        """Add the pairs s, y (problems, n) to the problems in the mask ``rows``."""
        ss, sy = (s * s).sum(axis=1), (s * y).sum(axis=1)
        share = np.where(sy < LEAST_CURVATURE * ss, (1 - LEAST_CURVATURE) * ss / np.maximum(ss - sy, 1e-300), 1.0)
        y = share[:, None] * y + (1 - share)[:, None] * s
        sy = (s * y).sum(axis=1)
        use = np.flatnonzero(rows & (sy > 0) & np.isfinite(sy))
        for array, newest in ((self.S, s), (self.Y, y), (self.rho, 1 / np.where(sy > 0, sy, 1.0))):
            array[use] = np.roll(array[use], -1, axis=1)
            array[use, -1] = newest[use]

    def inverse(self, V: Array) -> Array:
        """H V for V (problems, vectors, n), H the inverse of the Hessian's approximation: the two-loop recursion."""
        V, shares = V.copy(), []
        pairs = [k for k in range(self.rho.shape[1]) if self.rho[:, k].any()]
        for k in reversed(pairs):
            a = self.rho[:, k, None] * np.matmul(V, self.S[:, k, :, None])[:, :, 0]
            V -= a[:, :, None] * self.Y[:, k, None]
            shares.append(a)
        for k, a in zip(pairs, reversed(shares), strict=True):
            b = self.rho[:, k, None] * np.matmul(V, self.Y[:, k, :, None])[:, :, 0]
            V += (a - b)[:, :, None] * self.S[:, k, None]
        return V
