"""One line, to look at."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_whole
from flipopt.networks.points import as_one_point
from flipopt.networks.softmax import softmax
from flipopt.networks.wrapping import as_network
from flipopt.paths.crossings import Crossings, crossings
from flipopt.paths.lines import lines_between


class Line:
    """The line (1 - alpha) a + alpha b through two points, and what a network says along it.

    Parameters
    ----------
    net
        Any network.
    a, b
        Points (n_inputs,): alpha is 0 at a and 1 at b.
    beyond
        How far the line goes on past both, as a share of its length: alpha is in [-beyond, 1 + beyond].
    """

    def __init__(self, net: Any, a: Any, b: Any, beyond: float = 0.0) -> None:
        self.network = as_network(net, a)
        self.a, self.b = as_one_point(a, self.network, "a"), as_one_point(b, self.network, "b")
        self._lines = lines_between(self.network, self.a, self.b, beyond)

    def __repr__(self) -> str:
        return f"Line({self.network!r}, length {self.length:.4g}, beyond {self.beyond:g})"

    @property
    def beyond(self) -> float:
        """As asked for."""
        return self._lines.beyond

    @cached_property
    def length(self) -> float:
        """The distance of a and b in the 2-norm."""
        return float(np.linalg.norm(self.b - self.a))

    def alphas(self, points: int = 201) -> Array:
        """Evenly spaced, (points,), both ends among them."""
        return np.linspace(self._lines.low, self._lines.high, as_whole(points, "points", least=2))

    def at(self, alpha: Any) -> Array:
        """The points at alpha: (n_inputs,) for a number, (k, n_inputs) for (k,)."""
        values = np.asarray(alpha, dtype=np.float64)
        X = self._lines.at(np.zeros(values.size, dtype=int), values.reshape(-1))
        return X if values.ndim else X[0]

    def logits(self, points: int = 201) -> Array:
        """y at ``alphas(points)``, (points, n_classes)."""
        return self._logits(self.alphas(points))

    def probabilities(self, points: int = 201) -> Array:
        """z there, (points, n_classes)."""
        return softmax(self.logits(points))

    def probabilities_at(self, alpha: Any) -> Array:
        """z at any alpha (k,), (k, n_classes)."""
        return softmax(self._logits(np.asarray(alpha, dtype=np.float64)))

    def _logits(self, alpha: Array) -> Array:
        return self._lines.logits(np.zeros(len(alpha), dtype=int), alpha)

    def crossings(self, mode: str = "proved", **options: Any) -> Crossings:
        """Where the predicted class changes: see :func:`flipopt.paths.crossings`."""
        return crossings(self.network, self.a, self.b, mode, self.beyond, **options)
