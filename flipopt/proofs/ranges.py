"""How far every pre-activation can go in a ball where some neurons have a given sign.

A bound on c(k) that is linear in the p of the layers before is carried back to d layer by layer: where p counts
upwards it is replaced with a line above it, its chord, and elsewhere with a line below, lam c with lam = 0, 1 or
whichever of them is nearer to p (E. Wong and J. Z. Kolter 2018; H. Zhang et al. 2018, CROWN). Then the ball, or its
part within bounds on features, gives a number. The best of the three and of the box of the layer before is taken, and
rounded outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.proofs.instance import Instance

Signs = tuple[Array, ...]
"""Of the hidden neurons, (n(k),) for each layer: 1 for c >= 0, -1 for c <= 0, 0 for either."""


@dataclass(frozen=True, eq=False)
class Range:
    """Of a hidden layer: low <= c <= high, (n(k),) each."""

    low: Array
    high: Array

    @property
    def open(self) -> Array:
        """Mask of the neurons that may have either sign."""
        return (self.low < 0) & (self.high > 0)

    @property
    def active(self) -> Array:
        """Mask of those with c >= 0, for which p = c."""
        return self.low >= 0

    @property
    def slope(self) -> Array:
        """Of a line above p."""
        width = np.where(self.open, self.high - self.low, 1.0)
        return np.where(self.open, self.high / width, self.active)

    @property
    def nearest(self) -> Array:
        """Of lines below p, (3, 1, n(k))."""
        kinds = (self.high > -self.low, np.zeros_like(self.low), np.ones_like(self.low))
        return np.stack([np.where(self.open, kind, self.active) for kind in kinds])[:, None]


@dataclass(frozen=True, eq=False)
class Ranges:
    """Of all hidden layers in a ball, and lower bounds on the leads (n_classes - 1,)."""

    radius: float
    layers: tuple[Range, ...]
    leads: Array
    rounding: Sequence[Array]


def ranges_of(instance: Instance, radius: float, signs: Signs, rounding: Sequence[Array]) -> Ranges | None:
    """In the ball of a radius; None if no point of it has these signs.

    ``rounding`` is that of the instance for this radius or a larger one.
    """
    layers: list[Range] = []
    for k in range(instance.hidden + 1):
        if k == 0:
            low = instance.c0 + instance.least(instance.R.T, radius) - rounding[0]
            high = instance.c0 - instance.least(-instance.R.T, radius) + rounding[0]
        else:
            both = k < instance.hidden  # of a lead only the lower bound matters
            W, b = instance.weights[k - 1].T, instance.biases[k - 1]
            A, a = (np.concatenate([W, -W]), np.concatenate([b, -b])) if both else (W, b)
            floor = np.maximum(_carried_back(instance, radius, layers, A, a), _of_box(instance, k, layers[-1], A, a))
            floor -= np.concatenate([rounding[k]] * (2 if both else 1))
            low, high = (floor[: len(b)], -floor[len(b) :]) if both else (floor, np.full(len(b), np.inf))
        if k == instance.hidden:
            return Ranges(radius, tuple(layers), low, rounding)
        low, high = np.where(signs[k] > 0, np.maximum(low, 0), low), np.where(signs[k] < 0, np.minimum(high, 0), high)
        if (low > high).any():
            return None
        layers.append(Range(low, high))
    raise AssertionError


def _carried_back(instance: Instance, radius: float, layers: list[Range], A: Array, a: Array) -> Array:
    """Lower bounds (rows,) on A y + a with y the outputs of the last of the layers."""
    coefficients, constant = np.broadcast_to(A, (3, *A.shape)), np.broadcast_to(a, (3, len(a)))
    for j in range(len(layers) - 1, -1, -1):
        layer, left, right = layers[j], instance.left[j], instance.right[j]
        share = coefficients * (right - left)
        below = np.maximum(share, 0)
        above = share - below
        constant = constant + above @ np.where(layer.open, -layer.slope * layer.low, 0.0)
        on_c = coefficients * left + below * layer.nearest + above * layer.slope
        constant = constant + on_c @ (instance.biases[j - 1] if j else instance.c0)
        coefficients = on_c @ (instance.weights[j - 1].T if j else instance.R.T)
    return np.asarray((constant + instance.least(coefficients, radius)).max(axis=0))


def _of_box(instance: Instance, k: int, layer: Range, A: Array, a: Array) -> Array:
    """The same from nothing but the range of every output."""
    left, right = instance.left[k - 1], instance.right[k - 1]
    ends = [left * c + (right - left) * np.maximum(c, 0) for c in (layer.low, layer.high)]
    ends.append(np.where(layer.open, 0.0, ends[0]))
    bottom, top = np.min(ends, axis=0), np.max(ends, axis=0)
    return np.asarray(np.maximum(A, 0) @ bottom + np.minimum(A, 0) @ top + a)
