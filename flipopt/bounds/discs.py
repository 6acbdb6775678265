"""What a dense network's logits can be along a line: polynomials with an error that holds on a complex disc.

On the part of a line at centre + u direction, every neuron is enclosed by c(u) = C_0 + C_1 u + ... + C_K u^K + e(u),
where \\|e(u)\\| <= error for all complex \\|u\\| <= 1. On the way through the network:

- An activation phi has phi(c) expanded to order K (bounds/series.py). What is cut off is at most M / (R^K (R - 1)),
  where M bounds phi(c(u)) - phi(C_0) for \\|u\\| <= R (Cauchy's estimates), and c(u) is there within
  rho = sum_k \\|C_k\\| R^k of C_0. Several R are tried. An error e of c becomes one of phi of at most e times the
  steepest slope around C_0.
- A matrix W maps errors by \\|W\\|, or by their 2-norm, which grows less over many layers; the smaller counts.
- A kink that c may pass is met by a line of the mean slope, with an error that holds for real u only.

Because the error is analytic where there is no such kink, its derivative is at most error / (1 - s) for \\|u\\| <= s.

Rounding: with unit roundoff u, a sum of n products is off by at most n u times the sum of their sizes (N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2002, section 3.1), and a coefficient of a recurrence of order K by at
most some K^2 u times the same recurrence with all terms in size: SERIES u covers K up to 12. For erf that recurrence
comes to at most exp(2 r^2) r s, where c moves by r units on the disc and s is the steepest slope there, and for others
to less; with r <= 1 that is MAJORANT r s. Discs with a larger r are refused: their error is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.bounds.matrices import OUTWARD, spectral_norm
from flipopt.bounds.series import is_kinked, is_linear, series, steepness, unit
from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.networks.activations import Activation
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork

RADII = (0.5, 0.8, 1.2, 1.8, 3.0)
"""Discs on which Cauchy's estimate is tried, as shares of where the series of c may grow beyond the unit."""
SMALLEST, LARGEST = 1.25, 1e8
"""Radii R of these discs, at least and at most."""
UNIT = np.finfo(np.float64).eps / 2
SERIES, MAJORANT = 256, 8
"""Of the rounding of series: see above."""
FURTHER_ROWS = 3
"""Rows that the errors take through the matrices beside those of the order + 1 coefficients."""


@dataclass(frozen=True)
class LogitsOnDiscs(Columns):
    """y_k - y_i for all classes k, against a class i of each disc.

    ``coefficients`` are (discs, order + 1, n_classes), ``error`` (discs, n_classes), ``reference``, the class i, and
    ``analytic``, whether the error holds for complex u too, (discs,).
    """

    coefficients: Array
    error: Array
    reference: Array
    analytic: Array


@dataclass(frozen=True)
class _Values(Columns):
    """Pre-activations c: C (discs, order + 1, width), ``error`` (discs, width), the 2-norm of the errors (discs,), and
    whether they hold for complex u (discs,)."""

    C: Array
    error: Array
    norm: Array
    analytic: Array


@dataclass(frozen=True)
class _Outputs(Columns):
    """Outputs y = phi(c): their series V, the errors of c with the ``steepness`` by which they become errors of y, and
    ``own`` errors, what was cut off."""

    V: Array
    error: Array
    norm: Array
    steepness: Array
    own: Array
    analytic: Array


@dataclass(frozen=True)
class _Layer:
    """W and b, W in size, its squares, and a proved bound on its 2-norm."""

    W: Array
    b: Array
    size: Array
    squares: Array
    norm: float

    @classmethod
    def of(cls, W: Array, b: Array) -> _Layer:
        return cls(W, b, np.abs(W), W * W, spectral_norm(W).upper)


class Discs:
    """Enclosures of one network's logits, to a given order of at least 1."""

    def __init__(self, network: DenseNetwork, order: int) -> None:
        self.network, self.order = network.in_float64, order
        *hidden, (W, b) = zip(self.network.weights, self.network.biases, strict=True)
        self._hidden = [_Layer.of(*layer) for layer in hidden]
        self._leads = [_Layer.of(W - W[:, [i]], b - b[i]) for i in range(self.network.n_classes)]

    def enclose(self, centre: Array, direction: Array) -> LogitsOnDiscs:
        """The logits at centre + u direction, (discs, n_inputs) each, for u in the unit disc."""
        with np.errstate(over="ignore", invalid="ignore"):  # a disc that is far too large is undecided
            y = self._points(centre, direction)
            for layer, activation in zip(self._hidden, self.network.activations, strict=True):
                y = _activated(activation, self._through(layer, y))
            return self._against(times(y.V[:, 0], self.network.weights[-1]) + self.network.biases[-1], y)

    def _points(self, centre: Array, direction: Array) -> _Outputs:
        """The points of the line, without any error."""
        V = np.zeros((len(centre), self.order + 1, centre.shape[1]))
        V[:, 0], V[:, 1] = centre, direction
        none, every = np.zeros(centre.shape), np.ones(len(centre), dtype=bool)
        return _Outputs(V, none, np.zeros(len(centre)), none, none, every)

    @staticmethod
    def _through(layer: _Layer, y: _Outputs) -> _Values:
        """W^T y + b."""
        count, terms, width = y.V.shape
        C = times(y.V.reshape(count * terms, width), layer.W).reshape(count, terms, -1)
        C[:, 0] += layer.b
        carried, own = y.steepness * y.error, y.own + (width + SERIES) * UNIT * np.abs(y.V).sum(axis=1)
        by_size = times(np.concatenate([carried, own]), layer.size)
        by_norm = np.sqrt(times(y.steepness**2, layer.squares)) * y.norm[:, None]
        rounding = 4 * UNIT * (np.abs(C[:, 0]) + np.abs(layer.b))
        error = (np.minimum(by_size[:count], by_norm) + by_size[count:]) * OUTWARD + rounding
        together = np.minimum(y.steepness.max(axis=1) * y.norm + _norm(own), _norm(carried + own))
        norm = np.minimum(layer.norm * together * OUTWARD + _norm(rounding), _norm(error))
        return _Values(C, error, norm, y.analytic)

    def _against(self, Y: Array, y: _Outputs) -> LogitsOnDiscs:
        """The logits less that of the class that is ahead at the centre, whose logits are Y (discs, n_classes)."""
        reference = Y.argmax(axis=1)
        result = LogitsOnDiscs(np.empty((len(Y), self.order + 1, Y.shape[1])), np.empty_like(Y), reference, y.analytic)
        for i in np.unique(reference):
            rows = np.flatnonzero(reference == i)
            c = self._through(self._leads[i], y.take(rows))
            result.coefficients[rows], result.error[rows] = c.C, c.error
            result.error[rows, i] = 0.0
        return result


def _activated(activation: Activation, c: _Values) -> _Outputs:
    C, size = c.C, np.abs(c.C[:, 1:])
    centre, within = C[:, 0], size.sum(axis=1)
    V = np.moveaxis(series(activation, np.moveaxis(C, 1, 0)), 0, 1)
    steep = steepness(activation, centre, within + c.error)
    rounding = MAJORANT * SERIES * UNIT * within * steep
    own = np.where(within <= unit(activation), _cut_off(activation, centre, size) + rounding, np.inf)
    y = _Outputs(V, c.error, c.norm, steep, own, c.analytic)
    return _past_kinks(activation, c, within + c.error, y) if is_kinked(activation) else y


def _cut_off(activation: Activation, centre: Array, size: Array) -> Array:
    """Bounds on what the series of phi(c) leaves out for \\|u\\| <= 1, (discs, width)."""
    if is_linear(activation):
        return np.zeros_like(centre)
    order, least = size.shape[1], np.full(centre.shape, np.inf)
    powers = np.arange(1, order + 1)
    growth = ((size / unit(activation)).max(axis=2) ** (1 / powers)).max(axis=1)  # no |C_k| exceeds growth^k units
    for share in RADII:
        R = np.clip(share / np.maximum(growth, 1 / LARGEST), SMALLEST, LARGEST)
        rho = np.einsum("dk,dkn->dn", R[:, None] ** powers, size)
        least = np.fmin(least, rho * steepness(activation, centre, rho) / (R**order * (R - 1))[:, None])
    return least * OUTWARD


def _past_kinks(activation: Activation, c: _Values, reach: Array, y: _Outputs) -> _Outputs:
    """Neurons that may pass their kink: phi(c) = phi(C_0) + m (c - C_0) + u, with the mean m of the slopes in reach."""
    centre = c.C[:, 0]
    passing = np.abs(centre) <= reach
    low, high = activation.slope_range(centre - reach, centre + reach)
    m = (low + high) / 2
    line = m[:, None] * c.C
    line[:, 0] = activation.value(centre)
    return _Outputs(
        np.where(passing[:, None], line, y.V),
        y.error,
        y.norm,
        np.where(passing, np.abs(m), y.steepness),
        np.where(passing, (high - low) / 2 * reach * OUTWARD, y.own),
        y.analytic & ~passing.any(axis=1),
    )


def _norm(rows: Array) -> Array:
    return np.asarray(np.linalg.norm(rows, axis=1))
