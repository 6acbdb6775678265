"""What a dense network's leads can be on small boxes of its inputs: affine arithmetic, for many boxes at once.

On the box of points centre + half e, with e in [-1, 1]^f, every neuron is enclosed by an affine function of e and an
error: c(e) = value + slopes . e + u, |u| <= error (L. H. de Figueiredo and J. Stolfi, Numerical Algorithms 37, 2004;
here the errors of a neuron are one interval). A layer maps such enclosures to enclosures; an activation phi is replaced
by a line over the range [a, b] that its neuron can have, and what phi deviates from it is added to the error:

- where the slope is monotone, the chord of slope m, with phi on one side of it and the tangents at its ends on the
  other: it deviates by at most (m - s_a)(s_b - m) / (s_b - s_a) (b - a), to one side only. For a ReLU this is exact.
- elsewhere a line of the least or of the largest slope in [a, b], whichever deviates less: phi minus it is monotone.

Errors fall with the square of the size of a box, and with them the doubt about the distances of flips in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.bounds.matrices import OUTWARD, ROUNDING
from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.networks.activations import Activation
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork

MONOTONE = 1e-9
"""By how much slopes at the ends may be inside the range of slopes, relative to it, for a slope to count as monotone:
they are computed in two ways. What that may hide is added to the error."""


@dataclass(frozen=True)
class Enclosure(Columns):
    """value + slopes . e + u, with u at most ``error`` in size, for e in [-1, 1]^f.

    ``value`` and ``error`` are (boxes, width), ``slopes`` (boxes, f, width).
    """

    value: Array
    slopes: Array
    error: Array

    @property
    def reach(self) -> Array:
        """How far the values get from ``value``, (boxes, width)."""
        return np.asarray(np.abs(self.slopes).sum(axis=1) + self.error)

    def along(self, line: _Line) -> Enclosure:
        """That of phi(c), by the line that phi is replaced by."""
        error = np.abs(line.slope) * self.error * OUTWARD + line.error
        return Enclosure(line.at, line.slope[:, None] * self.slopes, error)

    def through(self, W: Array, b: Array) -> Enclosure:
        """That of W^T y + b."""
        count, free, width = self.slopes.shape
        value = times(self.value, W) + b
        slopes = times(self.slopes.reshape(count * free, width), W).reshape(count, free, -1)
        return Enclosure(value, slopes, times(self.error, np.abs(W)) * OUTWARD + _rounding(value, slopes))


def leads_on_boxes(net: DenseNetwork, i: int, centre: Array, half: Array, free: Array) -> Enclosure:
    """The leads y_i - y_k over all classes k on the boxes with ``centre`` (boxes, n_inputs).

    The features ``free`` (f,) change by up to ``half`` (boxes, f), the others not at all.
    """
    net = net.in_float64
    W, b = net.weights[0], net.biases[0]
    last = net.weights[-1][:, [i]] - net.weights[-1], net.biases[-1][i] - net.biases[-1]
    layers = [*zip(net.weights[1:-1], net.biases[1:-1], strict=True), last]
    if net.n_layers == 1:
        (W, b), layers = last, []
    value, slopes = times(centre, W) + b, half[:, :, None] * W[free]
    c = Enclosure(value, slopes, _rounding(value, slopes))
    lines = []
    for activation, (W, b) in zip(net.activations, layers, strict=True):
        line = _line(activation, c)
        lines.append(line)
        c = c.along(line).through(W, b)
    own = _own_errors(net, last[0], lines) + _rounding(c.value, c.slopes)
    return Enclosure(c.value, c.slopes, np.minimum(c.error, own))


@dataclass(frozen=True)
class _Line:
    """phi(c) = at + slope (c - value of c) + u, with \\|u\\| <= error: (boxes, width) each."""

    at: Array
    slope: Array
    error: Array


def _own_errors(net: DenseNetwork, last: Array, lines: list[_Line]) -> Array:
    """The errors of all lines as they reach the leads, (boxes, n_classes), by the slopes from each neuron to them.

    On the way from layer to layer the errors of one neuron reach the next layer's neurons together and cancel in part.
    """
    if not lines:
        return np.zeros(())
    count, width = lines[0].at.shape[0], last.shape[1]
    G, total = np.broadcast_to(last.T, (count, *last.T.shape)), np.zeros((count, width))
    for k in range(len(lines) - 1, -1, -1):
        total += (np.abs(G) * lines[k].error[:, None]).sum(axis=2)
        if k:
            through = (G * lines[k].slope[:, None]).reshape(count * width, -1)
            G = times(through, net.weights[k].T).reshape(count, width, -1)
    return total * OUTWARD


def _rounding(value: Array, slopes: Array) -> Array:
    return np.asarray(ROUNDING * (1 + np.abs(value) + np.abs(slopes).sum(axis=1)))


def _line(activation: Activation, c: Enclosure) -> _Line:
    """A line over the range of c, and what phi deviates from it."""
    reach = c.reach
    low, high = c.value - reach, c.value + reach
    (at_low, s_low), (at_high, s_high) = activation.value_and_slope(low), activation.value_and_slope(high)
    least, most = (np.broadcast_to(end, low.shape) for end in activation.slope_range(low, high))
    width, rise = high - low, at_high - at_low
    slope, up, down = _chord(s_low, s_high, rise / width, width)
    slack = MONOTONE * np.maximum(np.abs(least), np.abs(most))
    turns = (least < np.minimum(s_low, s_high) - slack) | (most > np.maximum(s_low, s_high) + slack)
    flat, steep = np.maximum(rise - least * width, 0.0), np.maximum(most * width - rise, 0.0)
    # How far phi gets above and below the line through its low end
    slope = np.where(turns, np.where(flat <= steep, least, most), slope)
    up = np.where(turns, np.where(flat <= steep, flat, 0.0), up)
    down = np.where(turns, np.where(flat <= steep, 0.0, steep), down)
    rounding = ROUNDING * (1 + np.abs(at_low) + np.abs(at_high) + np.abs(slope) * (1 + np.abs(c.value) + reach))
    return _Line(
        at_low + slope * reach + (up - down) / 2, slope, (up + down) / 2 * OUTWARD + rounding + 2 * slack * width
    )


def _chord(s_low: Array, s_high: Array, chord: Array, width: Array) -> tuple[Array, Array, Array]:
    """The slope of a chord between its ends' slopes, and how far a function of monotone slope gets above and below."""
    slope = np.clip(chord, np.minimum(s_low, s_high), np.maximum(s_low, s_high))
    bend = s_high - s_low
    away = (slope - s_low) * (s_high - slope) / np.where(bend == 0, 1.0, np.abs(bend)) * width
    away = np.abs(away)
    return slope, np.where(bend < 0, away, 0.0), np.where(bend > 0, away, 0.0)
