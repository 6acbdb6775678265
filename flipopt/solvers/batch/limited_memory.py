"""The curvature of many Lagrangians at once: limited-memory BFGS with the identity as its base.

The objective's own Hessian is the identity (in the scaled variables), so the base is exact and the memory only has to
learn what the boundary's curvature adds.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array

LEAST_CURVATURE = 0.1
"""A pair with s . y below this times s . s is damped (Powell), so that the matrix stays positive definite."""


class Memory:
    """The last pairs (s, y) of every problem, in a ring.

    Attributes
    ----------
    S, Y
        (all problems, pairs, n).
    rho
        1 / s . y, (all problems, pairs).
    learnt
        Pairs that a problem has learnt so far, (all problems,): the newest is at (learnt - 1) mod pairs.
    place
        Where the problems that are still there have their pairs, (problems,).
    """

    def __init__(self, problems: int, n: int, pairs: int) -> None:
        self.S, self.Y = np.empty((problems, pairs, n)), np.empty((problems, pairs, n))
        self.rho = np.empty((problems, pairs))
        self.learnt, self.place = np.zeros(problems, dtype=np.int64), np.arange(problems)

    def keep(self, rows: Array) -> None:
        """Go on with the problems ``rows``; nothing is moved."""
        self.place = self.place[rows]

    def learn(self, rows: Array, s: Array, y: Array) -> None:
        """Add the pairs s, y (problems, n) to the problems in the mask ``rows``."""
        from flipopt.kernels.limited_memory import learn

        learn(self.S, self.Y, self.rho, self.learnt, self.place, rows, s, y, LEAST_CURVATURE)

    def inverse(self, V: Array, wanted: Array) -> Array:
        """H v for those v of V (problems, vectors, n) in the mask ``wanted`` (problems, vectors), the others as they
        are; H is the inverse of the Hessian's approximation, by the two-loop recursion."""
        from flipopt.kernels.limited_memory import two_loops

        V = np.array(V, order="C")
        two_loops(self.S, self.Y, self.rho, self.learnt, self.place, wanted, V)
        return V
