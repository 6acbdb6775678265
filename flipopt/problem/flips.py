"""Many flip problems in one setting: they differ only in their inputs and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.networks.protocol import Network
from flipopt.problem.flip import FlipProblem
from flipopt.problem.goal import flip
from flipopt.problem.setting import Setting


@dataclass(frozen=True, eq=False)
class FlipBatch:
    """One flip between two classes a row.

    Attributes
    ----------
    setting
        What they share: the network (float64), norm, weights, bounds, frozen features.
    X
        The inputs, (problems, n_inputs), float64.
    classes
        (i, j) of each, (problems, 2).
    margin
        By how much every other class must stay below the two.
    others
        Whether it must: without, only the tie counts.
    beyond
        By how much j leads i at the point sought: 0 at a flip, more inside the class j.
    """

    setting: Setting
    X: Array
    classes: Array
    margin: float = 0.0
    others: bool = True
    beyond: float = 0.0

    def __len__(self) -> int:
        return len(self.X)

    @property
    def network(self) -> Network:
        return self.setting.network

    def problem(self, k: int) -> FlipProblem:
        """The k-th of them as a problem of its own."""
        goal = flip(self.network.n_classes, [int(c) for c in self.classes[k]], self.margin, self.beyond)
        return FlipProblem(self.setting, self.X[k], goal)

    def take(self, rows: Array | slice) -> FlipBatch:
        """Those at ``rows``: indices, which may repeat, a mask or a slice."""
        return replace(self, X=self.X[rows], classes=self.classes[rows])

    def leads(self, Y: Array) -> Array:
        """y_i - y_k, less the margin for other classes, plus ``beyond`` for j, from the logits Y (problems, n_classes).

        At a flip point the lead over j is 0 and no other one is negative. It is infinite for k = i and for
        classes that do not count.
        """
        rows, (i, j) = np.arange(len(Y)), self.classes.T
        if not self.others:
            leads = np.full(Y.shape, np.inf)
            leads[rows, j] = Y[rows, i] - Y[rows, j] + self.beyond
            return leads
        leads = Y[rows, i][:, None] - Y - self.margin
        leads[rows, j] += self.margin + self.beyond
        leads[rows, i] = np.inf
        return np.asarray(leads)

    @property
    def tie_weights(self) -> Array:
        """v with v . y = y_i - y_j, (problems, n_classes)."""
        rows, (i, j) = np.arange(len(self)), self.classes.T
        V = np.zeros((len(self), self.network.n_classes))
        V[rows, i], V[rows, j] = 1.0, -1.0
        return V

    def clip(self, X_hat: Array) -> Array:
        """``X_hat`` (problems, n_inputs) put within the bounds, and its frozen features put back."""
        return self.setting.clip(X_hat, self.X)

    def distances(self, X_hat: Array) -> Array:
        """d(x_hat, x), (problems,)."""
        return np.asarray(self.setting.distance(X_hat, self.X))


def flip_batch(
    network: Network, X: Array, classes: ArrayLike | Sequence[tuple[int, int]], margin: float = 0.0, **options: Any
) -> FlipBatch:
    """The closest flips of every row of X (problems, n_inputs) between its ``classes`` (problems, 2).

    ``options`` are those of :meth:`Setting.of`.
    """
    setting, points = Setting.of(network, **options), np.asarray(X, dtype=np.float64)
    setting.require_possible(points)
    return FlipBatch(setting, points, np.asarray(classes, dtype=np.int64).reshape(len(X), 2), margin)
