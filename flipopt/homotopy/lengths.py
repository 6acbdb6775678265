"""How far it is from the easy network to the trained one."""

from __future__ import annotations

import numpy as np

from flipopt.homotopy.transformation import Transformation

GRID = 65
"""Values of t between which the Lipschitz constant is taken to change in one direction only."""
ROUNDING = 1e-9
"""What is left of the way, relative to all of it, and no step of its own."""


class Lengths:
    """l(t) = t + the variation of log(bound (15)) from 0 to t, and its inverse.

    A step of given length in l is short in t where the Lipschitz constant changes fast (F1, line 4).
    """

    def __init__(self, transformation: Transformation) -> None:
        self.t = np.linspace(0, 1, GRID)
        steepness = np.array([transformation.log_steepness(float(t)) for t in self.t])
        self.l = self.t + np.concatenate([[0.0], np.cumsum(np.abs(np.diff(steepness)))])

    def at(self, t: float) -> float:
        """l(t)."""
        return float(np.interp(t, self.t, self.l))

    def after(self, t: float, step: float) -> float:
        """Where a step of length ``step`` in l leads from t; 1 at most, and exactly."""
        end = self.at(t) + step
        if end >= (1 - ROUNDING) * self.l[-1]:
            return 1.0
        return float(np.interp(end, self.l, self.t))
