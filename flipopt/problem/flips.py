"""Many flip problems on one network that differ only in their inputs and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.protocol import Network
from flipopt.problem.flip import FlipProblem, flip_problem


@dataclass(frozen=True, eq=False)
class FlipBatch:
    """One :class:`FlipProblem` a row, in the 2-norm and with constraints on the logits.

    Attributes
    ----------
    template
        A problem with everything that they share: the network (float64), weights, bounds, frozen features.
    X
        The inputs, (problems, n_inputs), float64.
    classes
        (i, j) of each, (problems, 2).
    margin
        By how much every other class must stay below the two.
    others
        Whether it must: without, only the tie counts.
    """

    template: FlipProblem
    X: Array
    classes: Array
    margin: float = 0.0
    others: bool = True

    def __len__(self) -> int:
        return len(self.X)

    @property
    def network(self) -> Network:
        return self.template.network

    def problem(self, k: int) -> FlipProblem:
        """The k-th of them as a problem of its own."""
        single = flip_problem(self.network, self.X[k], [int(c) for c in self.classes[k]], self.margin)
        return replace(self.template, x=self.X[k], goal=single.goal)

    def take(self, rows: Array | slice) -> FlipBatch:
        """Those at ``rows``: indices, which may repeat, a mask or a slice."""
        return replace(self, X=self.X[rows], classes=self.classes[rows])

    def leads(self, Y: Array) -> Array:
        """y_i - y_k, less the margin for other classes, from the logits Y (problems, n_classes), in their shape.

        At a flip point the lead over j is 0 and no other one is negative. It is infinite for k = i and for
        classes that do not count.
        """
        rows, (i, j) = np.arange(len(Y)), self.classes.T
        if not self.others:
            leads = np.full(Y.shape, np.inf)
            leads[rows, j] = Y[rows, i] - Y[rows, j]
            return leads
        leads = Y[rows, i][:, None] - Y - self.margin
        leads[rows, j] += self.margin
        leads[rows, i] = np.inf
        return np.asarray(leads)

    def clip(self, X_hat: Array) -> Array:
        """``X_hat`` (problems, n_inputs) put within the bounds, and its frozen features put back."""
        shared = self.template
        return np.where(shared.frozen, self.X, np.clip(X_hat, shared.lower, shared.upper))

    def distances(self, X_hat: Array) -> Array:
        """d(x_hat, x), (problems,)."""
        return np.asarray(np.sqrt(((X_hat - self.X) ** 2 * self.template.weights).sum(axis=1)))


def flip_batch(
    network: Network, X: Array, classes: ArrayLike | Sequence[tuple[int, int]], margin: float = 0.0, **options: Any
) -> FlipBatch:
    """The closest flips of every row of X (problems, n_inputs) between its ``classes`` (problems, 2).

    ``options`` are those that the problems share: bounds, frozen and weights of :func:`flip_problem`.
    """
    pairs = np.asarray(classes, dtype=np.int64).reshape(len(X), 2)
    first = (0, 1) if len(pairs) == 0 else tuple(int(c) for c in pairs[0])
    x = X[0] if len(X) else np.zeros(network.n_inputs)
    shared = flip_problem(network, x, first, margin, **options)
    outside = (shared.frozen & ((shared.lower > X) | (shared.upper < X))).any(axis=1)
    if outside.any():
        raise InputError(f"frozen: a feature of row {int(np.argmax(outside))} is frozen outside its bounds")
    return FlipBatch(shared, np.asarray(X, dtype=np.float64), pairs, margin)
