"""What is to be proved: a piecewise linear network seen from x, with what rounding may do to it.

Every hidden layer is written as y = left c + (right - left) p with p = max(c, 0), which is exact for ReLU, PReLU and
the identity. The last layer gives the leads y_i - y_k of the class i of x: a flip is where one of them is 0. A change
of x that is orthogonal to the columns of W(1) changes nothing, so the variables are the coordinates d of the change in
a basis of those; with bounds on features they are the changes of all features that may change, see ``box``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.activations import Identity, PReLU
from flipopt.networks.dense import DenseNetwork
from flipopt.proofs.box import UNDERFLOW, UNIT, Box

__all__ = ["UNIT", "Instance", "is_piecewise_linear", "require_piecewise_linear"]
"""UNIT is twice the unit roundoff: every bound on rounding below has a factor of two to spare."""


@dataclass(frozen=True, eq=False)
class Instance:
    """The leads of a class near x.

    Attributes
    ----------
    c0
        The first pre-activations at x, (n(1),).
    R
        How they change with d, (n, n(1)).
    weights, biases
        Of layers 2, ..., m; the last ones are those of the leads.
    left, right
        Slopes of the hidden layers left and right of their kinks.
    Q
        (n_inputs, n): a change of x is Q d, in units of 1 / sqrt(weights).
    stretch
        At least the 2-norm of Q, which rounding makes a little more than 1.
    others
        The class of each lead, (n_classes - 1,).
    source
        The class i.
    size
        Of every term that adds up to c(1) at x, (n(1),), and ``residual`` of what R lacks for a change of length 1.
    box
        The bounds, if there are any.
    """

    c0: Array
    R: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    left: tuple[Array, ...]
    right: tuple[Array, ...]
    Q: Array
    stretch: float
    others: Array
    source: int
    size: Array
    residual: Array
    box: Box | None = None

    @classmethod
    def of(
        cls,
        net: DenseNetwork,
        x: Array,
        source: int,
        root: Array,
        free: Array,
        bounds: tuple[Array, Array] | None = None,
    ) -> Instance:
        """That of a network in float64 at x (n_inputs,).

        ``root`` (n_inputs,) are square roots of the weights, and ``free`` (n_inputs,) the mask of features that may
        change. ``bounds`` are lower and upper ones, (n_inputs,) each, and x is within them.
        """
        others = np.delete(np.arange(net.n_classes), source)
        W = [*net.weights[:-1], net.weights[-1][:, [source]] - net.weights[-1][:, others]]
        b = [*net.biases[:-1], net.biases[-1][source] - net.biases[-1][others]]
        scaled = np.where(free[:, None], W[0] / root[:, None], 0.0)
        if bounds is not None:
            scaled = scaled[free]
        Q, R = _basis(scaled.tobytes(), scaled.shape)
        slopes = net.one_sided_slopes
        n = net.n_inputs + len(R)
        excess = float(np.linalg.norm(Q.T @ Q - np.eye(Q.shape[1]))) + n * UNIT * Q.shape[1]
        lacking = np.linalg.norm(scaled - Q @ R, axis=0) + n * UNIT * (np.linalg.norm(scaled, axis=0) + _lengths(R))
        box = None
        if bounds is not None:
            lower, upper = (((bound - x) * root)[free] * (1 + 4 * UNIT) for bound in bounds)
            box = Box(lower, upper, np.flatnonzero(free), Q, R, excess)
            lacking = lacking + excess * _lengths(R)
            Q, R, excess = np.eye(net.n_inputs)[:, free], scaled, 0.0
        return cls(
            x @ W[0] + b[0],
            R,
            tuple(W[1:]),
            tuple(b[1:]),
            tuple(left for left, _ in slopes),
            tuple(right for _, right in slopes),
            Q,
            float(np.sqrt(1 + excess)) * (1 + UNIT),
            others,
            source,
            np.abs(x) @ np.abs(W[0]) + np.abs(b[0]),
            lacking,
            box,
        )

    @property
    def hidden(self) -> int:
        """How many hidden layers."""
        return len(self.left)

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the hidden layers."""
        return tuple(len(left) for left in self.left)

    def rounding(self, radius: float) -> list[Array]:
        """By how much any computed c(k) may be off in the ball, (n(k),) for every layer, leads included.

        The running error analysis of N. J. Higham, Accuracy and stability of numerical algorithms (2002), 3.3: every
        layer adds a multiple of the size of all terms that add up to it and what underflow may have taken away, and
        passes on what it is given. It covers c(k) by forward passes as well as by maps of d and of the p of earlier
        layers, since those have the same terms.
        """
        n = len(self.R)
        size = self.size + radius * np.maximum(np.abs(self.R).sum(axis=0), np.abs(self.span).sum(axis=0))
        errors = [(n + len(self.Q) + 16) * UNIT * size + radius * self.residual + UNDERFLOW * (1 + radius)]
        for W, b, left, right in zip(self.weights, self.biases, self.left, self.right, strict=True):
            most = np.abs(left) + 2 * np.abs(right - left)  # |p| of a chord is at most |c| and its value at c = 0
            size = (most * size) @ np.abs(W) + np.abs(b)
            errors.append((most * errors[-1]) @ np.abs(W) + (len(W) + 16) * UNIT * size + UNDERFLOW * (1 + radius))
        return errors

    @property
    def span(self) -> Array:
        """R in the variables of programs."""
        return self.R if self.box is None else self.box.R

    def least(self, A: Array, radius: float) -> Array:
        """Lower bounds (...,) on A d in the ball, for A (..., n)."""
        return np.asarray(-radius * np.linalg.norm(A, axis=-1)) if self.box is None else self.box.least(A, radius)

    def inside(self, D: Array) -> Array:
        """Changes (..., n), put into the box."""
        return D if self.box is None else np.clip(D, self.box.lower, self.box.upper)

    def leads(self, d: Array) -> Array:
        """At the changes d, (n,) or (points, n): (..., n_classes - 1)."""
        c = self.c0 + d @ self.R
        for W, b, left, right in zip(self.weights, self.biases, self.left, self.right, strict=True):
            c = (left * c + (right - left) * np.maximum(c, 0)) @ W + b
        return np.asarray(c)


def is_piecewise_linear(net: object) -> bool:
    """Whether there are proofs for the network."""
    return isinstance(net, DenseNetwork) and all(isinstance(act, PReLU | Identity) for act in net.activations)


def require_piecewise_linear(net: object) -> DenseNetwork:
    """The network in float64; raise if it is not of the kind that proofs are for."""
    if not isinstance(net, DenseNetwork):
        raise InputError(
            f"network: expected a dense network with ReLU or PReLU, for which there are proofs, found "
            f"{type(net).__name__}"
        )
    for k, activation in enumerate(net.activations, 1):
        if not isinstance(activation, PReLU | Identity):
            raise InputError(
                f"network: expected ReLU, PReLU or identity in every hidden layer, found {type(activation).__name__} "
                f"in layer {k}; for others there are lower bounds, fo.bounds.lower"
            )
    return net.in_float64


def _lengths(W: Array) -> Array:
    return np.asarray(np.linalg.norm(W, axis=0))


@lru_cache(maxsize=8)
def _basis(matrix: bytes, shape: tuple[int, int]) -> tuple[Array, Array]:
    """W = Q R with orthonormal columns of Q, or Q the identity where W has no fewer columns than rows."""
    W = np.frombuffer(matrix).reshape(shape)
    if shape[1] >= shape[0]:
        return np.eye(shape[0]), W
    Q, R = np.linalg.qr(W)
    return Q, R
