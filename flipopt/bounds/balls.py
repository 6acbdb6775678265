"""What dense networks do on balls around their inputs, and the distances to flips that follow: many balls at once.

Within a ball of radius r around x the Jacobian of a layer's pre-activations c stays near its value C at x: it drifts
by what the slopes of the layers below can change, and they are known from the ranges that their c can reach. Only
norms of C are needed, which no radius enters: a row costs one pass of all its directions, and a radius next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.bounds.matrices import DUAL, OUTWARD, ROUNDING, dual_norm, layer_gain
from flipopt.common.checks import Array
from flipopt.networks.activations import Activation
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork
from flipopt.runs.threads import blocks, over_rows

MEMORY = 2**26
"""Bytes of the Jacobians that are held at a time by each core."""


def lipschitz_lower(net: DenseNetwork, X: Array, norm: float, steps: int) -> tuple[Array, Array]:
    """Distances (rows,) free of flips by Lipschitz bounds, and where the linearisation at X has the first one, (rows,).

    For a network in float64 at X (rows, n_inputs). The radius is bisected, in its logarithm: within a radius r the lead
    y_i - y_k cannot fall faster than the bound L(r) of the ball allows, so that no flip is nearer than
    min(r, lead / L(r)).
    """
    most = max(1, MEMORY // (8 * net.n_inputs * max(net.widths)))
    work = 2.0 * net.n_inputs * sum(W.size for W in net.weights)
    parts = over_rows(
        lambda some: [_of_block(Balls.at(net, X[some][part], norm), steps) for part in blocks(len(X[some]), most=most)],
        len(X),
        work,
    )
    found = [pair for part in parts for pair in part]
    return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found])


def _of_block(balls: Balls, steps: int) -> tuple[Array, Array]:
    """The largest radius of some, for every row, within which its lead cannot be used up; and the linearisation's."""
    least = np.zeros(len(balls.lead))
    low, high = balls.nearest(np.full_like(least, np.inf)), balls.nearest(least)
    best, finite, linear = low, np.isfinite(low) & (low > 0), high
    for _ in range(steps):
        middle = np.where(finite, np.sqrt(np.where(finite, low, 0.0) * np.where(finite, high, 0.0)), 0.0)
        here = balls.nearest(middle)
        best = np.where(finite, np.maximum(best, np.minimum(middle, here)), best)
        low, high = np.where(here >= middle, middle, low), np.where(here >= middle, high, middle)
    return np.where(balls.lead.min(axis=1) > 0, best / OUTWARD, 0.0), linear


@dataclass(frozen=True)
class _Layer:
    """A layer at many points: pre-activations c = y W + b and their Jacobians C, by their norms.

    ``c``, ``slope`` (of the activation at c) and ``steep`` are (rows, width); ``steep`` is the dual norm of every row
    of C, the most that a c changes for a change of x by 1. ``sizes``, the absolute values of C as (rows, n_inputs,
    width), are for norm 1 only.
    """

    W: Array
    b: Array
    activation: Activation
    c: Array
    slope: Array
    steep: Array
    sizes: Array | None

    def norm_of(self, weights: Array, norm: float) -> Array:
        """Upper bounds (rows,) on the norm of diag(weights) C: exact for 1 and infinity, Frobenius' for 2."""
        if self.sizes is not None:
            return np.asarray(np.einsum("rnk,rk->rn", self.sizes, np.abs(weights)).max(axis=1))
        size = np.abs(weights) * self.steep
        return np.asarray(np.linalg.norm(size, axis=1) if norm == 2 else size.max(axis=1))


@dataclass(frozen=True)
class _Reached:
    """What a layer makes of the balls: ``drift`` bounds how far in norm its Jacobian gets from that at x, ``gain`` its
    norm; (rows,) each."""

    drift: Array
    gain: Array

    def steepness(self, steep: Array, through: Array) -> Array:
        """Bounds on the slopes of the next layer's c by ``steep``, what they are at x, and the duals of its columns."""
        drifted, gained = steep + self.drift[:, None] * through, self.gain[:, None] * through
        return np.asarray(np.minimum(drifted, gained) * OUTWARD)


@dataclass(frozen=True)
class Balls:
    """Balls around many inputs: what every hidden layer is at their centres, and the leads there.

    ``lead``, ``steep`` and ``through`` are (rows, n_classes): y_i - y_k, the dual norm of its gradient and that of the
    difference of the last layer's columns; for k = i they are infinity, 0 and 0. ``jacobian`` is dy/dx transposed,
    (rows, n_inputs, n_classes), and ``last`` the last layer's weights.
    """

    norm: float
    layers: list[_Layer]
    last: Array
    lead: Array
    steep: Array
    through: Array
    jacobian: Array

    @classmethod
    def at(cls, net: DenseNetwork, X: Array, norm: float) -> Balls:
        """Around X (rows, n_inputs), for a network in float64."""
        rows, n = X.shape
        J, y = np.broadcast_to(np.eye(n), (rows, n, n)), X
        layers: list[_Layer] = []
        for W, b, activation in zip(net.weights, net.biases, net.activations, strict=False):
            c, C = times(y, W) + b, _through(J, W, first=not layers)
            y, slope = activation.value_and_slope(c)
            sizes = np.abs(C) if norm == 1 else None
            layers.append(_Layer(W, b, activation, c, slope, _duals(C, norm), sizes))
            J = C * slope[:, None]
        W, Y = net.weights[-1], times(y, net.weights[-1]) + net.biases[-1]
        J, each, i = _through(J, W, first=not layers), np.arange(rows), Y.argmax(axis=1)
        lead = Y[each, i][:, None] - Y - ROUNDING * np.abs(Y).max(axis=1, keepdims=True)
        lead[each, i] = np.inf
        through = np.stack([dual_norm(W[:, [k]] - W, norm) for k in range(W.shape[1])])
        return cls(norm, layers, W, lead, _duals(J[each, :, i][:, :, None] - J, norm), through[i], J)

    def nearest(self, radius: Array) -> Array:
        """Where a lead could be used up at the earliest, were the slopes everywhere what they are in the balls.

        ``radius`` is (rows,), and so is the result.
        """
        steepest = self._follow(radius).steepness(self.steep, self.through)
        with np.errstate(divide="ignore", invalid="ignore"):  # a lead of 0 that does not change
            return np.asarray((np.maximum(self.lead, 0.0) / steepest).min(axis=1))

    def gain(self, radius: Array) -> Array:
        """Upper bounds on the norm of dy/dx in the balls, (rows,)."""
        reached, layer = self._follow(radius), layer_gain(self.last, np.ones(self.last.shape[1]), self.norm)
        order: Any = "fro" if self.norm == 2 else self.norm
        at_centre = np.array([np.linalg.norm(J.T, order) for J in self.jacobian])
        return np.asarray(np.minimum(reached.gain * layer, at_centre + reached.drift * layer) * OUTWARD)

    def _follow(self, radius: Array) -> _Reached:
        """To the last hidden layer.

        A pre-activation stays within its steepness times the radius, and within what the box of the layer below allows;
        the range of slopes there gives the drift of the next layer.
        """
        reached = _Reached(np.zeros(len(radius)), np.ones(len(radius)))
        box: tuple[Array, Array] | None = None
        for at in self.layers:
            steepness = reached.steepness(at.steep, dual_norm(at.W, self.norm))
            low, high = _within(box, at, _reach(steepness, radius) + ROUNDING * (1 + np.abs(at.c)))
            slopes = [np.broadcast_to(end, at.c.shape) for end in at.activation.slope_range(low, high)]
            change = np.maximum(slopes[1] - at.slope, at.slope - slopes[0]) + ROUNDING
            layer = layer_gain(at.W, np.max(np.abs(slopes), axis=0), self.norm)
            drift = layer * reached.drift + at.norm_of(change, self.norm)
            gain = np.minimum(layer * reached.gain, at.norm_of(at.slope, self.norm) + drift) * OUTWARD
            reached, box = _Reached(drift, gain), _value_range(at.activation, low, high)
        return reached


def _through(J: Array, W: Array, first: bool) -> Array:
    """J W for J (rows, n_inputs, width); in the ``first`` layer J is the identity."""
    rows, n, width = J.shape
    if first:
        return np.broadcast_to(W, (rows, *W.shape))
    return np.asarray(times(J.reshape(rows * n, width), W).reshape(rows, n, -1))


def _duals(C: Array, norm: float) -> Array:
    """The dual norms (rows, width) of the columns of C (rows, n_inputs, width)."""
    return np.asarray(np.linalg.norm(C, ord=DUAL[norm], axis=1))


def _reach(steepness: Array, radius: Array) -> Array:
    """steepness * radius, rounded outwards; a neuron that depends on nothing stays put even for an infinite radius."""
    with np.errstate(invalid="ignore"):
        return np.where(steepness > 0, steepness * radius[:, None] * OUTWARD, 0.0)


def _within(box: tuple[Array, Array] | None, at: _Layer, reach: Array) -> tuple[Array, Array]:
    """The range of c: within ``reach`` of the centre, and of what the box of the layer below allows."""
    low, high = at.c - reach, at.c + reach
    if box is None:
        return low, high
    with np.errstate(invalid="ignore"):  # an infinite side says nothing, and fmax and fmin pass over what it gives
        middle, half = times((box[0] + box[1]) / 2, at.W) + at.b, times((box[1] - box[0]) / 2, np.abs(at.W)) * OUTWARD
        return np.fmax(low, middle - half), np.fmin(high, middle + half)


def _value_range(activation: Activation, low: Array, high: Array) -> tuple[Array, Array]:
    """The box of a layer's outputs. Activations turn only at 0 and at the ends."""
    with np.errstate(invalid="ignore"):
        turns = np.stack([activation.value(c) for c in (low, high, np.clip(0.0, low, high))])
    bottom, top = turns.min(axis=0), turns.max(axis=0)
    return bottom - ROUNDING * (1 + np.abs(bottom)), top + ROUNDING * (1 + np.abs(top))
