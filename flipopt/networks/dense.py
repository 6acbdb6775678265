"""Fully connected networks with analytic derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import FLOATS, Array, as_floats
from flipopt.common.errors import InputError
from flipopt.networks.activations import Activation
from flipopt.networks.base import BaseNetwork
from flipopt.networks.blocks import Block, join, padded, product, pull_back
from flipopt.networks.layers import Layers, check_layers, frozen
from flipopt.networks.protocol import Network, Outputs, Pullback, RowPullback
from flipopt.networks.softmax import softmax, softmax_vjp, softmax_vjp_tangent
from flipopt.runs.threads import over_items, over_rows


class DenseNetwork(Layers, BaseNetwork):
    """y(k) = activation(y(k-1) W(k) + b(k)), with no activation on the last layer: equations (8)-(10).

    The network is immutable: its arrays are read-only. It computes in the wider of its own precision and that of the
    points it is given, so that float32 parameters can be evaluated in float64 without rounding them again.

    Parameters
    ----------
    weights
        m matrices; W(k) is (n(k-1), n(k)), so that a row vector is multiplied from the left.
    biases
        m vectors; b(k) is (n(k),).
    activations
        One for each of the m - 1 hidden layers, or a single one for all of them.
    """

    def __repr__(self) -> str:
        return f"DenseNetwork({'-'.join(map(str, self.widths))}, {self.dtype})"

    def astype(self, dtype: Any) -> DenseNetwork:
        """The same network in float32 or float64; itself if it is in that precision already."""
        dtype = np.dtype(dtype)
        if dtype not in FLOATS:
            raise InputError(f"dtype: expected float32 or float64, found {dtype}")
        return (
            self
            if dtype == self.dtype
            else _assemble(
                [w.astype(dtype) for w in self.weights], [b.astype(dtype) for b in self.biases], self.activations
            )
        )

    def with_activations(self, activations: Activation | Sequence[Activation]) -> DenseNetwork:
        """A network with other activations that shares every array with this one."""
        if isinstance(activations, Activation):
            activations = [activations] * (self.n_layers - 1)
        check_layers(self.weights, self.biases, activations)
        return _assemble(self.weights, self.biases, activations)

    def softened(self, share: float, size: float) -> DenseNetwork:
        """The network with every activation's smoother form; itself if none has one."""
        soft = [activation.softened(share, size) for activation in self.activations]
        return self if soft == list(self.activations) else self.with_activations(soft)

    def with_output_bias(self, bias: ArrayLike) -> DenseNetwork:
        """A network with another b(m) that shares every other array with this one."""
        vector = as_floats(bias, "bias")
        if vector.shape != self.biases[-1].shape:
            raise InputError(f"bias: expected shape {self.biases[-1].shape}, found {vector.shape}")
        return _assemble(self.weights, (*self.biases[:-1], vector.astype(self.dtype)), self.activations)

    def up_to(self, layer: int) -> DenseNetwork:
        """The network whose logits are c(layer) of this one, with which it shares every array."""
        if not 1 <= layer <= self.n_layers:
            raise InputError(f"layer: expected a layer from 1 to {self.n_layers}, found {layer}")
        return _assemble(self.weights[:layer], self.biases[:layer], self.activations[: layer - 1])

    def forward(self, X: ArrayLike, stop: int | None = None) -> list[Array]:
        """The outputs y(1), ..., y(stop) of every layer up to ``stop`` (by default all m; the last are the logits)."""
        stop = self.n_layers if stop is None else stop
        if not 1 <= stop <= self.n_layers:
            raise InputError(f"stop: expected a layer from 1 to {self.n_layers}, found {stop}")
        X, single = self._batch(X)
        layers = self._at(X)._layers(X, stop)
        return [layer[0] for layer in layers] if single else layers

    def pre_activations(self, X: ArrayLike) -> list[Array]:
        """c(k) = y(k-1) W(k) + b(k) of every layer; the last are the logits."""
        X, single = self._batch(X)
        net = self._at(X)
        y, layers = padded(X.astype(net.dtype, copy=False)), []
        for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True)):
            c = product(y, W) + b
            layers.append(c[0] if single else c[: len(X)])
            y = net.activations[k].value(c) if k < net.n_layers - 1 else c
        return layers

    @cached_property
    def one_sided_slopes(self) -> list[tuple[Array, Array]]:
        """The slopes of every hidden layer just below c = 0 and from 0 on, (n(k),) each: they differ at a kink."""
        zeros = [np.zeros(width) for width in self.widths[1:-1]]
        below = np.finfo(np.float64).tiny
        return [
            (activation.slope(zero - below), activation.slope(zero))
            for activation, zero in zip(self.activations, zeros, strict=True)
        ]

    @cached_property
    def kinked(self) -> bool:
        """Whether a hidden neuron has a kink."""
        return any((left != right).any() for left, right in self.one_sided_slopes)

    def save(self, path: str | Path) -> None:
        """Write to .npz, .onnx, or (no suffix) a folder of CSV files."""
        from flipopt.networks.files import write_layers

        write_layers(self, path)

    # Evaluation. Every hook takes (batch, n_inputs) and splits it into blocks of rows over the cores.

    @cached_property
    def in_float64(self) -> DenseNetwork:
        """This network in float64; its own float32 values are kept exactly."""
        return self.astype(np.float64)

    @cached_property
    def in_float32(self) -> Network:
        """This network for where six digits do, in ``linearize_rows`` only; itself if it is small or torch is missing.

        See :class:`~flipopt.networks.single_precision.SinglePrecision`.
        """
        from flipopt.networks import single_precision

        if self._operations < single_precision.WORTH_IT or not single_precision.possible():
            return self
        return cast(Network, single_precision.SinglePrecision(self))

    def _at(self, X: Array) -> DenseNetwork:
        """The network in the precision to compute in at X."""
        return self if np.result_type(X, self.dtype) == self.dtype else self.in_float64

    @cached_property
    def _transposed(self) -> list[Array]:
        """Copies of the transposed weights: products with them are quicker, and rounded as ``product`` says."""
        return [np.ascontiguousarray(W.T) for W in self.weights]

    @cached_property
    def _operations(self) -> float:
        """Floating-point operations of a forward pass at one point."""
        return 2.0 * sum(matrix.size for matrix in self.weights)

    def _logits(self, X: Array) -> Array:
        net = self._at(X)
        blocks = over_rows(lambda rows: net._layers(X[rows], net.n_layers, keep=False)[-1], len(X), net._operations)
        return join(blocks)

    def _embedding(self, X: Array) -> Array:
        if self.n_layers == 1:
            return X.astype(np.result_type(X, self.dtype))
        return self._at(X)._layers(X, self.n_layers - 1, keep=False)[-1]

    def _linearize(self, X: Array) -> tuple[Array, Pullback]:
        net = self._at(X)
        work = net._operations

        def forward(rows: slice) -> tuple[slice, Array, list[Array]]:
            return rows, *net._forward(X[rows])

        blocks = over_rows(forward, len(X), work)

        def pullback(V: Array) -> Array:
            if len(X) == 1:  # any number of rows of V, which the slopes of the one point broadcast over
                return net._backward(blocks[0][2], V)
            at = {rows.start: slopes for rows, _, slopes in blocks}
            return join(over_rows(lambda rows: net._backward(at[rows.start], V[rows]), len(X), work))

        return join([Y for _, Y, _ in blocks]), pullback

    def _pull_rows(self, pullback: Pullback, V: Array) -> Array:
        return pullback(V)

    def linearize_rows(self, X: Array) -> tuple[Array, RowPullback]:
        """The logits at X (batch, n_inputs), and V J for any number of V at any of the points."""
        net = self._at(X)
        kept = over_rows(lambda rows: Block(rows, *net._forward(X[rows])), len(X), net._operations)

        def pullback(V: Array, points: Array) -> Array:
            return pull_back(kept, V, points, net._backward, partial(over_items, operations=len(V) * net._operations))

        return join([block.Y for block in kept]), pullback

    def _vjp(self, X: Array, V: Array, outputs: Outputs) -> Array:
        net = self._at(X)

        def gradient(rows: slice) -> Array:
            Y, slopes = net._forward(X[rows])
            seed = softmax_vjp(softmax(Y), V[rows]) if outputs == "probabilities" else V[rows]
            return net._backward(slopes, seed)

        return join(over_rows(gradient, len(X), 2 * net._operations))

    def _hessian_product(self, X: Array, V: Array, D: Array, outputs: Outputs) -> Array:
        net = self._at(X)

        def product(rows: slice) -> Array:
            return net._gradient_tangent(X[rows], V[rows], D[rows], outputs)

        return join(over_rows(product, len(X), 4 * net._operations))

    def hessian(self, x: ArrayLike, v: ArrayLike, outputs: Outputs = "logits") -> Array:
        """The Hessian of v . y (or v . z) at x (n_inputs,), as a matrix (n_inputs, n_inputs).

        With D(k) = dc(k)/dx and g(k) = d(v . y)/dy(k) it is the sum over the layers of D diag(g activation'') D^T: one
        pass with all directions at once, where n_inputs products would take four.
        """
        X, single = self._batch(x)
        weights = as_floats(v, "v").astype(np.float64)
        if not single or weights.shape != (self.n_classes,):
            raise InputError(
                f"x, v: expected shapes ({self.n_inputs},) and ({self.n_classes},), "
                f"found {np.shape(x)} and {weights.shape}"
            )
        net = self._at(X)
        y, D, kept = X[0].astype(net.dtype, copy=False), np.eye(net.n_inputs, dtype=net.dtype), []
        for k, (W, b, activation) in enumerate(zip(net.weights, net.biases, net.activations, strict=False)):
            c, D = y @ W + b, (W if k == 0 else D @ W)
            y, slope = activation.value_and_slope(c)
            kept.append((D, slope, activation.curvature(c)))
            D = D * slope
        D = D @ net.weights[-1]
        H = np.zeros((net.n_inputs, net.n_inputs), dtype=net.dtype)
        if outputs == "probabilities":
            z = softmax(y @ net.weights[-1] + net.biases[-1])
            H += D @ softmax_vjp_tangent(z, weights, np.eye(net.n_classes)) @ D.T
            weights = softmax_vjp(z, weights)
        g = net.weights[-1] @ weights
        for W, (D, slope, curvature) in zip((*net.weights[-2::-1],), reversed(kept), strict=True):
            bend = g * curvature
            if np.any(bend):
                H += (D * bend) @ D.T
            g = W @ (g * slope)
        return H

    def _layers(self, X: Array, stop: int, keep: bool = True) -> list[Array]:
        """y(1), ..., y(stop), or only the last of them."""
        layers: list[Array] = []
        y = padded(X.astype(self.dtype, copy=False))
        for k in range(stop):
            y = product(y, self.weights[k])
            y += self.biases[k]
            if k < self.n_layers - 1:
                y = self.activations[k].value(y)
            layers = [*layers, y] if keep else [y]
        return [layer[: len(X)] for layer in layers]

    def _forward(self, X: Array) -> tuple[Array, list[Array]]:
        """The logits, and the slopes of every hidden layer."""
        y = padded(X.astype(self.dtype, copy=False))
        slopes = []
        for W, b, activation in zip(self.weights, self.biases, self.activations, strict=False):
            c = product(y, W)
            c += b
            y, slope = activation.value_and_slope(c)
            slopes.append(slope[: len(X)])
        return (product(y, self.weights[-1]) + self.biases[-1])[: len(X)], slopes

    def _backward(self, slopes: list[Array], V: Array) -> Array:
        """V J by the chain rule (11)-(12) from the last layer to the first, where V has n_classes columns, not n."""
        g = product(padded(V.astype(self.dtype, copy=False)), self._transposed[-1])
        for transposed, slope in zip(self._transposed[-2::-1], reversed(slopes), strict=True):
            g[: len(V)] *= slope
            g = product(g, transposed)
        return np.asarray(g[: len(V)])

    def _gradient_tangent(self, X: Array, V: Array, D: Array, outputs: Outputs) -> Array:
        """The derivative of the gradient of v . y along D: Pearlmutter's product by tangents, forward and back."""
        y, dy = X.astype(self.dtype, copy=False), D.astype(self.dtype, copy=False)
        kept = []
        for W, b, activation in zip(self.weights, self.biases, self.activations, strict=False):
            c, dc = y @ W + b, dy @ W
            y, slope = activation.value_and_slope(c)
            dy = slope * dc
            kept.append((slope, activation.curvature(c) * dc))
        v, dv = V.astype(self.dtype, copy=False), None
        if outputs == "probabilities":
            Z = softmax(y @ self.weights[-1] + self.biases[-1])
            v, dv = softmax_vjp(Z, v), softmax_vjp_tangent(Z, v, dy @ self.weights[-1])
        g = v @ self.weights[-1].T
        dg = np.zeros_like(g) if dv is None else dv @ self.weights[-1].T
        for W, (slope, slope_tangent) in zip(self.weights[-2::-1], reversed(kept), strict=True):
            g, dg = (g * slope) @ W.T, (dg * slope + g * slope_tangent) @ W.T
        return dg


def _assemble(weights: Sequence[Array], biases: Sequence[Array], activations: Sequence[Activation]) -> DenseNetwork:
    """A network from arrays that are checked already, without copying them."""
    net = DenseNetwork.__new__(DenseNetwork)
    net.weights = tuple(frozen(matrix, matrix.dtype) for matrix in weights)
    net.biases = tuple(frozen(vector, vector.dtype) for vector in biases)
    net.activations = tuple(activations)
    return net
