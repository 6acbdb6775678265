"""Random directions, the network's leads at many points, and where rays change class: what statistics are made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FlipoptError
from flipopt.networks.protocol import linearize_rows
from flipopt.problem import FlipBatch, Reduced, Setting
from flipopt.runs.threads import one_blas_thread

HALVINGS = 50
"""Of a ray: to the last digits."""
NUMBERS = 2**22
"""In the points of a chunk, at most."""


@dataclass(frozen=True, eq=False)
class View:
    """The class of x (n,) as seen from x, in as few variables as will do: ``inner`` and ``x`` are in those.

    Directions have length 1 in the weighted norm, and are 0 in frozen features.

    Attributes
    ----------
    reduced
        The problem and the one in fewer variables, with one row.
    source
        The class of x.
    """

    reduced: Reduced
    source: int

    @classmethod
    def of(cls, setting: Setting, x: Array) -> View:
        """At the input x (n_inputs,) of a setting."""
        source = int(setting.network.predict(x))
        classes = np.array([[source, int(source == 0)]])
        return cls(Reduced.of(FlipBatch(setting, x[None], classes)), source)

    @property
    def inner(self) -> Setting:
        return self.reduced.inner.setting

    @property
    def x(self) -> Array:
        return np.asarray(self.reduced.inner.X[0])

    @property
    def dimension(self) -> int:
        """In how many variables a flip can move."""
        return len(self.inner.free)

    @property
    def root(self) -> Array:
        return np.sqrt(self.inner.weights)

    @property
    def others(self) -> Array:
        """The other classes, (n_classes - 1,)."""
        return np.setdiff1d(np.arange(self.inner.network.n_classes), [self.source])

    def directions(self, rng: np.random.Generator, count: int) -> Array:
        """(count, n), uniform on the unit sphere."""
        Z = np.zeros((count, len(self.x)))
        Z[:, self.inner.free] = rng.standard_normal((count, self.dimension))
        return self.unit(Z / self.root)

    def unit(self, changes: Array) -> Array:
        """Changes of x (k, n) at length 1; those of length 0 stay 0."""
        moved = np.where(self.inner.frozen, 0.0, changes)
        length = self.inner.length(moved)[:, None]
        return np.asarray(moved / np.where(length > 0, length, 1.0))

    def downhill(self, gradients: Array) -> Array:
        """The directions (k, n) of steepest descent for gradients (k, n) by x."""
        return self.unit(-gradients / self.inner.weights)

    def points(self, changes: Array) -> Array:
        """x + changes (k, n), put within the bounds."""
        return np.asarray(self.inner.clip(self.x + changes, self.x))

    def leads(self, points: Array, target: int | None = None) -> tuple[Array, Array]:
        """By how much the class of x leads the best of the others, or ``target``, at points (k, n), and which class
        that is, (k,) each."""
        return self._best(self.inner.network.logits(points), target)

    def slopes(self, points: Array, others: Array | None = None) -> tuple[Array, Array]:
        """The leads at points (k, n), and the gradients (k, n) of those over the best, or over ``others`` (k,)."""
        with one_blas_thread():
            Y, pullback = linearize_rows(self.inner.network, points)
            leads, best = self._best(Y)
            V, rows = np.zeros_like(Y), np.arange(len(Y))
            V[rows, self.source], V[rows, best if others is None else others] = 1.0, -1.0
            return leads, pullback(V, rows)

    def _best(self, Y: Array, target: int | None = None) -> tuple[Array, Array]:
        if not np.isfinite(Y).all():
            raise FlipoptError(f"network: expected finite logits near x, found {Y[~np.isfinite(Y)][0]}")
        others = Y.copy()
        others[:, self.source] = -np.inf
        j = others.argmax(axis=1) if target is None else np.full(len(Y), target)
        return Y[:, self.source] - others[np.arange(len(Y)), j], j

    def crossings(self, points: Array, target: int | None = None) -> tuple[Array, Array]:
        """A change of class (to ``target``) on the way from x to each of the points (k, n), which are in another class
        (or behind ``target``): the points at which it happens, (k, n), and the class beyond, (k,)."""
        low, high = np.zeros(len(points)), np.ones(len(points))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            ahead = self.leads(self.points(middle[:, None] * (points - self.x)), target)[0] > 0
            low, high = np.where(ahead, middle, low), np.where(ahead, high, middle)
        found = self.points(high[:, None] * (points - self.x))
        return found, self.leads(found, target)[1]

    def chunks(self, count: int) -> list[int]:
        """How many points to look at at once, of ``count``."""
        size = max(1, NUMBERS // len(self.x))
        return [min(size, count - first) for first in range(0, count, size)]

    def batch(self, classes: Array) -> FlipBatch:
        """Flips of x to ``classes`` (k,), in all variables."""
        outer = self.reduced.batch
        pairs = np.column_stack([np.full(len(classes), self.source), classes])
        return FlipBatch(outer.setting, np.repeat(outer.X, len(classes), axis=0), pairs)

    def lifted(self, points: Array) -> Array:
        """Points (k, n) in all variables, (k, n_inputs)."""
        if self.reduced.span is None:
            return points
        return np.asarray(self.reduced.batch.X[0] + self.reduced.span.lifted(points - self.x))
