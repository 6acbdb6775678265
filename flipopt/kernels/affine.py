"""Values and gradients of a piecewise linear network in one of its pieces, where it is affine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import inline
from flipopt.kernels.vectors import add, copy, dot


class Net(NamedTuple):
    """A network in flat arrays: one compiled program serves any number of layers.

    Attributes
    ----------
    weights, biases
        Of all layers, one after the other.
    widths, starts
        n(0), ..., n(m), and where each matrix begins in ``weights``.
    slopes
        Of all hidden neurons left and right of their kinks, (2, neurons).
    """

    weights: Array
    biases: Array
    widths: Array
    starts: Array
    slopes: Array


class Calls(NamedTuple):
    """Forward and backward passes so far, ``passes`` (2,), of ``most`` forward ones; none once ``stop`` (1,) is set."""

    passes: Array
    most: int
    stop: Array


@inline
def exhausted(calls):  # type: ignore[no-untyped-def]
    """Whether there may be no further forward pass."""
    return calls.passes[0] >= calls.most or calls.stop[0]


@inline
def times(net, layer, v, out):  # type: ignore[no-untyped-def]
    """out = W(layer + 1) v."""
    start, columns = net.starts[layer], net.widths[layer + 1]
    for row in range(net.widths[layer]):
        out[row] = dot(net.weights[start : start + columns], v)
        start += columns


@inline
def forward(net, sides, z, fixed, c, calls):  # type: ignore[no-untyped-def]
    """c of all layers at z: of the piece on ``sides`` if they are ``fixed``; else of the network, and its sides too."""
    layers, first, y = len(net.widths) - 1, 0, z[: net.widths[0]]
    for k in range(layers):
        start, columns = net.starts[k], net.widths[k + 1]
        out = c[first : first + columns]
        copy(net.biases[first : first + columns], out)
        for row in range(len(y)):
            if y[row] != 0.0:
                add(y[row], net.weights[start : start + columns], out)
            start += columns
        if k + 1 < layers:
            y = np.empty(columns)
            for e in range(columns):
                if not fixed:
                    sides[first + e] = out[e] >= 0.0
                y[e] = net.slopes[int(sides[first + e]), first + e] * out[e]
        first += columns
    calls.passes[0] += 1


@inline
def logit_gradient(net, sides, v, out, calls):  # type: ignore[no-untyped-def]
    """out = the gradient of v . y, in the piece on ``sides``."""
    last = len(net.widths) - 2
    back = np.empty(net.widths[last]) if last else out
    times(net, last, v, back)
    _backward(net, sides, last, net.slopes.shape[1], back, out, calls)


@inline
def neuron_gradient(net, sides, neuron, out, calls):  # type: ignore[no-untyped-def]
    """out = the gradient of c of a neuron, in the piece on ``sides``."""
    layer, first, e = 0, 0, neuron
    while e >= net.widths[layer + 1]:
        e -= net.widths[layer + 1]
        first += net.widths[layer + 1]
        layer += 1
    back, start = np.empty(net.widths[layer]) if layer else out, net.starts[layer]
    for row in range(net.widths[layer]):
        back[row] = net.weights[start + e]
        start += net.widths[layer + 1]
    _backward(net, sides, layer, first, back, out, calls)


@inline
def _backward(net, sides, layer, first, back, out, calls):  # type: ignore[no-untyped-def]
    """The chain rule from y(layer), whose derivative is ``back``, to the input; c(layer + 1) begins at ``first``."""
    for k in range(layer, 0, -1):
        first -= net.widths[k]
        for e in range(net.widths[k]):
            back[e] *= net.slopes[int(sides[first + e]), first + e]
        v = back
        back = np.empty(net.widths[k - 1]) if k > 1 else out
        times(net, k - 1, v, back)
    calls.passes[1] += 1
