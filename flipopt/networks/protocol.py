"""What flipopt asks of a classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from flipopt.common.checks import Array

Outputs = Literal["logits", "probabilities"]
Pullback = Callable[[Array], Array]
"""V (batch, n_classes) to V J (batch, n_inputs)."""
RowPullback = Callable[[Array, Array], Array]
"""V (k, n_classes) and points (k,) to V J (k, n_inputs), where ``points`` are indices into a batch and may repeat."""


@runtime_checkable
class Network(Protocol):
    """A differentiable classifier from R^n_inputs to n_classes scores.

    Points are rows: X is (n_inputs,) or (batch, n_inputs), and results lose or keep the batch axis with it. ``V`` are
    weights of the outputs, (n_classes,) or (batch, n_classes); ``outputs`` chooses between the logits y and the
    probabilities z = softmax(y).
    """

    @property
    def n_inputs(self) -> int: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the trained parameters."""

    def logits(self, X: Array) -> Array:
        """y, (n_classes,) or (batch, n_classes)."""

    def probabilities(self, X: Array) -> Array:
        """z = softmax(y), of the same shape."""

    def predict(self, X: Array) -> Array:
        """The class with the largest score: an integer, or (batch,) integers."""

    def embedding(self, X: Array) -> Array:
        """The last hidden layer, (width,) or (batch, width)."""

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        """The logits at X and the map V -> V J there, so that several V share one forward pass."""

    def vjp(self, X: Array, V: Array, outputs: Outputs = "logits") -> Array:
        """V J: the gradient of v . y (or v . z) at every row, in the shape of X."""

    def jacobian(self, X: Array, outputs: Outputs = "logits") -> Array:
        """J = dy/dx or dz/dx: (n_classes, n_inputs) or (batch, n_classes, n_inputs)."""

    def hessian_product(self, X: Array, V: Array, D: Array, outputs: Outputs = "logits") -> Array:
        """The Hessian of v . y (or v . z) at every row times the direction in D's row, in the shape of X."""

    def astype(self, dtype: Any) -> Network:
        """The same network with its parameters in another precision."""


def linearize_rows(network: Network, X: Array) -> tuple[Array, RowPullback]:
    """The logits at X (batch, n_inputs), and V J for any number of V at any of the points: some need several.

    A network that keeps what its forward pass has computed has a method of this name; for others it is computed again.
    """
    own = getattr(network, "linearize_rows", None)
    if own is not None:
        return own(X)  # type: ignore[no-any-return]
    return network.logits(X), lambda V, points: network.vjp(X[points], V)
