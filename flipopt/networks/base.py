"""The template that every network fills in: checks, shapes and softmax here, evaluation in the hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from inspect import getattr_static
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_rows, one_of
from flipopt.common.errors import InputError
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network, Outputs, Pullback, RowPullback
from flipopt.networks.softmax import softmax, softmax_vjp


class BaseNetwork(ABC):
    """Meets :class:`~flipopt.networks.protocol.Network`; a subclass writes the hooks.

    Hooks see only batches, and never an empty one, which many modules cannot take.
    """

    feature_names: tuple[str, ...] | None = None
    """Of the inputs, where they have names: columns of tables are then put in their order."""
    class_names: tuple[str, ...] | None = None
    """Of the classes, where they have names."""

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Length of an input."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of outputs."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Of the trained parameters."""

    @abstractmethod
    def astype(self, dtype: Any) -> Network:
        """The same network with its parameters in another precision."""

    @abstractmethod
    def _logits(self, X: Array) -> Array: ...

    @abstractmethod
    def _embedding(self, X: Array) -> Array: ...

    @abstractmethod
    def _linearize(self, X: Array) -> tuple[Array, Pullback]: ...

    @abstractmethod
    def _hessian_product(self, X: Array, V: Array, D: Array, outputs: Outputs) -> Array: ...

    def __getstate__(self) -> dict[str, Any]:
        """For another process: without what is computed from the rest when it is needed."""
        cached = {name for name in vars(self) if isinstance(getattr_static(type(self), name, None), cached_property)}
        return {name: value for name, value in vars(self).items() if name not in cached}

    def logits(self, X: ArrayLike) -> Array:
        """The scores y at X, (n_classes,) or (batch, n_classes)."""
        X, single = self._batch(X)
        return _unbatch(self._logits(X), single) if len(X) else self._none(self.n_classes)

    def probabilities(self, X: ArrayLike) -> Array:
        """z = softmax(y) at X."""
        return softmax(self.logits(X))

    def predict(self, X: ArrayLike) -> Array:
        """The class with the largest score at X: an integer, or (batch,) integers."""
        return cast(Array, self.logits(X).argmax(axis=-1))

    def embedding(self, X: ArrayLike) -> Array:
        """The last hidden layer at X."""
        X, single = self._batch(X)
        return _unbatch(self._embedding(X), single) if len(X) else self._embedding(np.zeros((1, self.n_inputs)))[:0]

    def linearize(self, X: ArrayLike) -> tuple[Array, Pullback]:
        """The logits at X and the map V -> V J there, so that several V share one forward pass.

        For a single point V may have several rows: (rows, n_classes) gives (rows, n_inputs).
        """
        X, single = self._batch(X)
        if not len(X):
            return self._none(self.n_classes), lambda V: self._none(self.n_inputs)
        Y, pullback = self._linearize(X)

        def checked(V: ArrayLike) -> Array:
            if single and np.ndim(V) == 2:
                return self._pull_rows(pullback, as_rows(V, self.n_classes, "V"))
            return _unbatch(pullback(self._output_weights(V, len(X))), single)

        return _unbatch(Y, single), checked

    def linearize_rows(self, X: Array) -> tuple[Array, RowPullback]:
        """The logits at X (batch, n_inputs), and V J for any number of V at any of the points.

        For solvers: nothing is checked, so that a point that is not finite has logits that are not, and costs no other.
        """
        if not len(X):
            return self._none(self.n_classes), lambda V, points: self._none(self.n_inputs)

        def pullback(V: Array, points: Array) -> Array:
            return self._vjp(X[points], V, "logits") if len(points) else self._none(self.n_inputs)

        return self._logits(X), pullback

    def vjp(self, X: ArrayLike, V: ArrayLike, outputs: Outputs = "logits") -> Array:
        """V J, the gradient of v . y (or v . z) at every row of X."""
        X, single = self._batch(X)
        one_of(outputs, ("logits", "probabilities"), "outputs")
        V = self._output_weights(V, len(X))
        return _unbatch(self._vjp(X, V, outputs), single) if len(X) else self._none(self.n_inputs)

    def _pull_rows(self, pullback: Pullback, V: Array) -> Array:
        """Every row of V through the pullback of a single point."""
        return np.concatenate([pullback(v[None]) for v in V]) if len(V) else np.empty((0, self.n_inputs))

    def _vjp(self, X: Array, V: Array, outputs: Outputs) -> Array:
        Y, pullback = self._linearize(X)
        return pullback(softmax_vjp(softmax(Y), V) if outputs == "probabilities" else V)

    def jacobian(self, X: ArrayLike, outputs: Outputs = "logits") -> Array:
        """dy/dx or dz/dx, (n_classes, n_inputs) or (batch, n_classes, n_inputs); equations (11)-(13)."""
        X, single = self._batch(X)
        one_of(outputs, ("logits", "probabilities"), "outputs")
        if not len(X):
            return self._none(self.n_classes, self.n_inputs)
        Y, pullback = self._linearize(X)
        unit = np.eye(self.n_classes, dtype=Y.dtype)
        if len(X) == 1:
            J = self._pull_rows(pullback, unit)[None]
        else:
            J = np.stack([pullback(np.broadcast_to(row, Y.shape)) for row in unit], axis=1)
        if outputs == "probabilities":
            Z = softmax(Y)
            J = Z[:, :, None] * (J - np.einsum("bk,bkn->bn", Z, J)[:, None, :])
        return _unbatch(J, single)

    def hessian_product(self, X: ArrayLike, V: ArrayLike, D: ArrayLike, outputs: Outputs = "logits") -> Array:
        """The Hessian of v . y (or v . z) at every row of X, times the same row of D."""
        X, single = self._batch(X)
        one_of(outputs, ("logits", "probabilities"), "outputs")
        D = _rows(D, "D", self.n_inputs, X.shape[0])
        V = self._output_weights(V, len(X))
        return _unbatch(self._hessian_product(X, V, D, outputs), single) if len(X) else self._none(self.n_inputs)

    def _batch(self, X: ArrayLike) -> tuple[Array, bool]:
        """X as (batch, n_inputs), and whether it was a single point."""
        array = as_points(X, self, "X")
        return np.atleast_2d(array), array.ndim == 1

    def _none(self, *shape: int) -> Array:
        """What there is of no points, (0, *shape)."""
        return np.empty((0, *shape), dtype=self.dtype)

    def _output_weights(self, V: ArrayLike, rows: int) -> Array:
        return _rows(V, "V", self.n_classes, rows)


def _rows(values: ArrayLike, name: str, width: int, rows: int) -> Array:
    """(width,) or (rows, width) as (rows, width)."""
    array = as_rows(values, width, name)
    if array.ndim == 2 and len(array) != rows:
        raise InputError(f"{name}: expected {rows} rows, as X has, found {len(array)}")
    return np.broadcast_to(array, (rows, width))


def _unbatch(array: Array, single: bool) -> Array:
    return cast(Array, array[0]) if single else array
