"""Linear relaxations of dense networks on balls: many inputs and classes at once, each with a radius of its own.

A lower bound on a linear function of a layer's outputs is carried back to the inputs: in every layer an output that
counts upwards is replaced with a line below its activation, one that counts downwards with a line above (H. Zhang et
al., Efficient neural network robustness certification with general activation functions, 2018: CROWN). The ranges of
pre-activations that the lines need come from the same bounds, layer by layer. On the ball the linear function has its
minimum at the dual norm of its coefficients times the radius.

Where the minimum is above 0 for all leads y_i - y_k, the ball is free of flips. Where it is not, its zero is as far as
is proved: a radius r proves min(r, zero of the linear bound).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flipopt.bounds.domains import Domain
from flipopt.bounds.lines import Lines, lines_of
from flipopt.bounds.matrices import ROUNDING
from flipopt.common.checks import Array
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork

Box = tuple[Array, Array]
"""Lower and upper bounds of the features, (n_inputs,) each."""
STEPS = 5
"""Radii that are tried for each input, unless told otherwise."""
CLOSE = 1.02
"""Factor between what is proved and what may be, below which there is nothing to be gained."""
MEMORY = 2**25
"""Bytes of the coefficients of a block of rows."""
NARROW = 0.8
"""The largest share of the inputs that the first layer's width may be for coordinates in its span to be worth it."""


def rows_at_once(net: DenseNetwork, boxed: bool = False) -> int:
    """Inputs of a block, such that their coefficients fit."""
    inner = max(net.widths[1:])
    return max(1, MEMORY // (16 * inner * max(inner, net.n_inputs if boxed else len(first_in_span(net, 2)))))


def operations(net: DenseNetwork) -> float:
    """Floating-point operations of one radius of one input."""
    total = passed = 0.0
    for k, W in enumerate(net.weights):
        total += 4.0 * W.shape[1] * passed
        passed += first_in_span(net, 2).size if k == 0 else W.size
    return total


def relaxed_lower(
    net: DenseNetwork, X: Array, norm: float, low: Array, high: Array, steps: int = STEPS, box: Box | None = None
) -> Array:
    """Distances (rows,) free of flips, at least ``low`` (rows,), which are such distances already.

    For a network in float64 at X (rows, n_inputs). The logarithm of the radius is bisected between ``low`` and
    ``high`` (rows,), beyond which no radius is expected to prove anything. Flips outside the ``box`` do not count.
    """
    i = net.logits(X).argmax(axis=1)
    best, high = low.copy(), high.copy()
    for _ in range(steps):
        some = np.flatnonzero((best > 0) & np.isfinite(high) & (high > CLOSE * best))
        if len(some) == 0:
            break
        radius = np.sqrt(best[some] * high[some])
        zero = nearest_zero(net, X[some], i[some], radius, norm, box)
        best[some] = np.maximum(best[some], np.minimum(radius, zero))
        high[some] = np.where(zero < radius, radius, np.minimum(high[some], zero))
    return best


@lru_cache(maxsize=8)
def first_in_span(net: DenseNetwork, norm: float) -> Array:
    """W(1), or for the 2-norm a smaller matrix with the same products of its columns."""
    W = net.weights[0]
    if norm != 2 or W.shape[1] > NARROW * W.shape[0]:
        return W
    return np.asarray(np.linalg.qr(W, mode="r"))


def nearest_zero(net: DenseNetwork, X: Array, i: Array, radius: Array, norm: float, box: Box | None = None) -> Array:
    """Where a linear lower bound of a lead of the class i (rows,), that holds in the ball, reaches 0 first: (rows,)."""
    hidden = Hidden.on(net, X, radius, norm, box)
    W, b, rows = net.weights[-1], net.biases[-1], np.arange(len(X))
    A = W.T[i][:, None, :] - W.T[None]
    a = b[i][:, None] - b[None]
    bound = hidden.carried_back(A, a)
    bound.at_centre[rows, i] = np.inf
    return hidden.domain.zero(bound.at_centre, bound.A)


class Bound(NamedTuple):
    """Linear lower bounds at_centre + A d for changes d of the inputs, (rows, k) and (rows, k, n).

    The rounding of the coefficients is a part of the values: times a change of x it is below what sizes say.
    """

    at_centre: Array
    A: Array


@dataclass(eq=False)
class Hidden:
    """The hidden layers on balls.

    Attributes
    ----------
    c0
        The first pre-activations at the centres, (rows, width).
    domain, first
        Changes of the inputs, and W(1) for them, which without a box may be in the span of its columns.
    ranges, lines
        Of the pre-activations, (rows, width) each: pairs (low, high), and lines of the activations.
    sizes
        Upper bounds on what adds up to any c or y, for rounding, (rows, width).
    """

    net: DenseNetwork
    c0: Array
    domain: Domain
    first: Array
    ranges: list[tuple[Array, Array]]
    lines: list[Lines]
    sizes: list[Array]

    @classmethod
    def on(cls, net: DenseNetwork, X: Array, radius: Array, norm: float, box: Box | None = None) -> Hidden:
        """The balls around X (rows, n_inputs), one layer after the other."""
        sizes = np.abs(X) + radius[:, None]
        domain, first = Domain(radius, norm), first_in_span(net, norm)
        if box is not None:
            domain = Domain(radius, norm, np.minimum(box[0] - X, 0.0), np.maximum(box[1] - X, 0.0))
            first = net.weights[0]
        hidden = cls(net, times(X, net.weights[0]) + net.biases[0], domain, first, [], [], [sizes])
        for k in range(net.n_layers - 1):
            W, b = net.weights[k], net.biases[k]
            if k == 0:
                c, A = hidden.c0, np.broadcast_to(first.T, (len(X), *first.T.shape))
                rounding = ROUNDING * (times(sizes, np.abs(W)) + np.abs(b))
                low, high = c - domain.fall(A) - rounding, c + domain.fall(-A) + rounding
            else:
                low, high = hidden._range(W, b)
            hidden.ranges.append((low, high))
            hidden.lines.append(lines_of(net.activations[k], low, high))
            line, most = hidden.lines[-1], np.maximum(np.abs(low), np.abs(high))
            slopes = np.maximum(np.abs(line.s_low), np.abs(line.s_high))
            hidden.sizes.append(slopes * most + np.maximum(np.abs(line.t_low), np.abs(line.t_high)))
        return hidden

    def _range(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Of y W + b, with y the outputs of the last layer so far; by lines, and by the box of y."""
        rows, width = len(self.c0), W.shape[1]
        both = np.concatenate([W.T, -W.T])
        A = np.broadcast_to(both, (rows, *both.shape))
        bound = self.carried_back(A, np.broadcast_to(np.concatenate([b, -b]), (rows, 2 * width)))
        floor = bound.at_centre - self.domain.fall(bound.A)
        low, high = floor[:, :width], -floor[:, width:]
        bottom, top = self._box()
        middle, half = times((bottom + top) / 2, W) + b, times((top - bottom) / 2, np.abs(W))
        half = half + ROUNDING * (times(self.sizes[-1], np.abs(W)) + np.abs(b))
        low, high = np.maximum(low, middle - half), np.minimum(high, middle + half)
        return np.minimum(low, high), np.maximum(low, high)  # which rounding may have swapped

    def _box(self) -> tuple[Array, Array]:
        """Of the last layer's outputs: activations turn only at 0 and at the ends."""
        low, high = self.ranges[-1]
        activation = self.net.activations[len(self.ranges) - 1]
        turns = np.stack([activation.value(c) for c in (low, high, np.clip(0.0, low, high))])
        return turns.min(axis=0), turns.max(axis=0)

    def carried_back(self, A: Array, a: Array) -> Bound:
        """Of A y + a, (rows, k, width) and (rows, k), with y the outputs of the last layer so far."""
        rows, k = a.shape
        loss = np.zeros_like(a)
        for layer in range(len(self.lines) - 1, -1, -1):
            line, W, b = self.lines[layer], self.net.weights[layer], self.net.biases[layer]
            loss = loss + ROUNDING * _dot(np.abs(A), self.sizes[layer + 1])
            up, down = np.maximum(A, 0), np.minimum(A, 0)
            a = a + _dot(up, line.t_low) + _dot(down, line.t_high)
            on_c = up * line.s_low[:, None] + down * line.s_high[:, None]
            sizes = times(self.sizes[layer], np.abs(W)) + np.abs(b)
            loss = loss + ROUNDING * (_dot(np.abs(on_c), sizes) + np.abs(a))
            if layer:
                a = a + on_c @ b
            else:
                a, W = a + _dot(on_c, self.c0), self.first
            A = times(on_c.reshape(rows * k, -1), W.T).reshape(rows, k, -1)
        return Bound(a - loss - ROUNDING * np.abs(a), A)


def _dot(A: Array, v: Array) -> Array:
    """(rows, k) of A (rows, k, n) and v (rows, n)."""
    return np.asarray((A @ v[:, :, None])[:, :, 0])
