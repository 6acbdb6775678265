"""Straight lines below and above an activation on intervals, one for each neuron."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flipopt.bounds.matrices import ROUNDING
from flipopt.common.checks import Array
from flipopt.networks.activations import ELU, Activation, Erf, Identity, PReLU, Tanh

HALVINGS = 40
"""Of the bisection for the tangent through an end; any number of them is sound."""


class Lines(NamedTuple):
    """s_low c + t_low <= activation(c) <= s_high c + t_high on the intervals, (rows, width) each."""

    s_low: Array
    t_low: Array
    s_high: Array
    t_high: Array


def lines_of(activation: Activation, low: Array, high: Array) -> Lines:
    """For the intervals [low, high], (rows, width), which are finite.

    For erf and tanh, which bend upwards below 0 and downwards above it, a chord or a tangent, and where both kinds of
    bend are in the interval the tangent that goes through its other end or one that is flatter. For convex and concave
    activations a chord and a tangent; for a ReLU the tangent with slope 0 or 1, whichever is nearer. For others the
    least and the largest slope, from the left end.
    """
    if isinstance(activation, Identity):
        one, zero = np.ones_like(low), np.zeros_like(low)
        return Lines(one, zero, one, zero)
    if isinstance(activation, Erf | Tanh):
        lines = _of_sigmoid(activation, low, high)
    elif isinstance(activation, PReLU):
        lines = _of_kink(activation, low, high)
    elif isinstance(activation, ELU) and np.max(activation.alpha) <= 1 and np.min(activation.alpha) >= 0:
        lines = _of_convex(activation, low, high)
    else:
        lines = _of_slopes(activation, low, high)
    values = 0.0 if isinstance(activation, PReLU) else 1.0  # of the size of c, or of the size of 1
    size = ROUNDING * (values + np.abs(low) + np.abs(high))
    size = size * (1 + np.abs(lines.s_low) + np.abs(lines.s_high))
    return Lines(lines.s_low, lines.t_low - size, lines.s_high, lines.t_high + size)


def _of_kink(activation: PReLU, low: Array, high: Array) -> Lines:
    """alpha c + (1 - alpha) max(c, 0): max(c, 0) is below its chord, and above c and 0."""
    alpha = np.broadcast_to(np.asarray(activation.alpha, dtype=low.dtype), low.shape)
    split = (low < 0) & (high > 0)
    chord = np.where(split, high / np.where(split, high - low, 1.0), low >= 0)
    lift = np.where(split, -chord * low, 0.0)
    below = np.where(split, high > -low, low >= 0)
    bend = 1 - alpha
    convex = bend >= 0
    s_low, s_high = alpha + bend * np.where(convex, below, chord), alpha + bend * np.where(convex, chord, below)
    return Lines(s_low, np.where(convex, 0.0, bend * lift), s_high, np.where(convex, bend * lift, 0.0))


def _of_convex(activation: Activation, low: Array, high: Array) -> Lines:
    """A tangent in the middle and a chord."""
    middle = (low + high) / 2
    value, slope = activation.value_and_slope(middle)
    s, t = _chord(activation, low, high, slope)
    return Lines(slope, value - slope * middle, s, np.maximum(t[0], t[1]))


def _of_slopes(activation: Activation, low: Array, high: Array) -> Lines:
    """From the left end nothing falls below the least slope, nor rises above the largest."""
    at, (least, most) = activation.value(low), activation.slope_range(low, high)
    least, most = np.broadcast_to(least, low.shape), np.broadcast_to(most, low.shape)
    return Lines(least, at - least * low, most, at - most * low)


def _of_sigmoid(activation: Activation, low: Array, high: Array) -> Lines:
    """An odd function: the line above it on [low, high] is minus the one below it on [-high, -low]."""
    below, above = _below_sigmoid(activation, low, high), _below_sigmoid(activation, -high, -low)
    return Lines(*below, above[0], -above[1])


def _below_sigmoid(activation: Activation, low: Array, high: Array) -> tuple[Array, Array]:
    """Convex below 0: a tangent at a point d <= 0 is below the function on [low, high] if it is so at ``high``."""
    middle = (low + high) / 2
    s, t = _chord(activation, low, high, activation.slope(middle))
    end = activation.value(high)
    left, right = np.minimum(low, 0.0), np.minimum(high, 0.0)  # tangents at d in between
    for _ in range(HALVINGS):
        d = (left + right) / 2
        value, slope = activation.value_and_slope(d)
        under = value + slope * (high - d) <= end
        left, right = np.where(under, d, left), np.where(under, right, d)
    d = np.where(high <= 0, middle, np.minimum(left, middle))
    d = np.maximum(d, np.minimum(low, 0.0))
    value, slope = activation.value_and_slope(d)
    under = (high <= 0) | ((low < 0) & (value + slope * (high - d) <= end))  # else the chord is below
    return np.where(under, slope, s), np.where(under, value - slope * d, np.minimum(t[0], t[1]))


def _chord(activation: Activation, low: Array, high: Array, otherwise: Array) -> tuple[Array, tuple[Array, Array]]:
    """Its slope (``otherwise`` where the interval is a point), and its height at 0 by either end."""
    ends = activation.value(low), activation.value(high)
    wide = high - low > ROUNDING * (1 + np.abs(low))
    slope = np.where(wide, (ends[1] - ends[0]) / np.where(wide, high - low, 1.0), otherwise)
    return slope, (ends[0] - slope * low, ends[1] - slope * high)
