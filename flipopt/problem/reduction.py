"""The few directions that a flip point moves in, where the first layer is narrower than the inputs are many.

A dense network sees x only through x W(1). The part of x_hat - x that is orthogonal to the columns of W(1) costs
distance and changes nothing, so at a closest flip point it is zero, if no bound and no other constraint speaks against
it: x_hat = x + Q t, with Q (n_inputs, r) an orthonormal basis of those columns. With q = Q^T x the network is one of r
inputs, q -> q (Q^T W(1)) + b(1) -> ..., with the same distances: the problem is the same, in r variables, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.blocks import times
from flipopt.problem.flips import FlipBatch
from flipopt.problem.setting import Setting

WORTH_IT = 0.8
"""The largest share of the inputs that the first layer's width may be."""


@dataclass(frozen=True, eq=False)
class Span:
    """The columns of W(1) in the scaled inputs u = sqrt(w) x.

    Attributes
    ----------
    network
        The same function of the coordinates, of r inputs.
    Q
        (n_inputs, r), with orthonormal columns.
    root
        sqrt(w), (n_inputs,).
    """

    network: DenseNetwork
    Q: Array
    root: Array

    @classmethod
    def of(cls, setting: Setting) -> Span | None:
        """That of a setting, or None where it has bounds or further constraints, or is no smaller."""
        net = setting.network
        if not isinstance(net, DenseNetwork) or net.widths[1] > WORTH_IT * net.n_inputs:
            return None
        if not setting.unrestricted or setting.norm != 2:
            return None
        return _span(net, np.sqrt(setting.weights).tobytes())

    def coordinates(self, X: Array) -> Array:
        """q (points, r) of points X (points, n_inputs)."""
        return times(self.root * X, self.Q)

    def lifted(self, T: Array) -> Array:
        """The changes of x (points, n_inputs) whose coordinates are T (points, r)."""
        return np.asarray(times(T, self.Q.T) / self.root)


@lru_cache(maxsize=8)
def _span(net: DenseNetwork, root: bytes) -> Span:
    scale = np.frombuffer(root)
    Q, R = np.linalg.qr(net.weights[0] / scale[:, None])
    return Span(DenseNetwork([R, *net.weights[1:]], net.biases, net.activations), Q, scale)


@dataclass(frozen=True, eq=False)
class Reduced:
    """A batch of problems in as few variables as will do.

    Attributes
    ----------
    batch, inner
        The problems, and the same in fewer variables; the same object where there are none fewer.
    span
        What leads from one to the other.
    """

    batch: FlipBatch
    inner: FlipBatch
    span: Span | None

    @classmethod
    def of(cls, batch: FlipBatch) -> Reduced:
        span = Span.of(batch.setting)
        if span is None:
            return cls(batch, batch, None)
        return cls(batch, replace(batch, setting=Setting(span.network), X=span.coordinates(batch.X)), span)

    def coordinates(self, X: Array) -> Array:
        """Points (points, n_inputs) in the variables of the inner problems."""
        return X if self.span is None else self.span.coordinates(X)

    def lifted(self, Z: Array) -> Array:
        """The points (problems, n_inputs) of solutions Z of the inner problems."""
        return Z if self.span is None else np.asarray(self.batch.X + self.span.lifted(Z - self.inner.X))
