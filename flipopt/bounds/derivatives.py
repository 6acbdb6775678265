"""Taylor coefficients of erf and tanh at points, and the largest that they are on intervals.

A derivative of erf(u) is a polynomial in u times exp(-u^2), one of tanh(u) a polynomial in t = tanh(u). Both are
extreme where the next derivative is 0, at points that are found once, so a bound on an interval is the largest of a
few values.
"""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np
from numpy.polynomial import Polynomial

from flipopt.bounds.matrices import OUTWARD, ROUNDING
from flipopt.bounds.series import series
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.activations import TWO_OVER_SQRT_PI, Activation, Erf, Identity, Tanh

SMOOTH = (Erf, Tanh, Identity)
"""Activations that are known here."""
REAL = 1e-7
"""What the imaginary part of a root may be for the root to count as real; those of these polynomials all are."""


def coefficients(activation: Activation, c: Array, order: int) -> list[Array]:
    """phi^(k)(c) / k! for k = 0, ..., order, in the shape of c (rows, width)."""
    line = np.zeros((order + 1, *c.shape))
    line[0], line[1] = c, 1.0
    return list(series(activation, line))


def largest(activation: Activation, low: Array, high: Array, k: int) -> Array:
    """An upper bound on |phi^(k)| / k! on the intervals [low, high], (rows, width), for k of at least 1."""
    if isinstance(activation, Identity):
        return np.full_like(low, float(k == 1))
    sigma = _unit(activation)
    low, high = low / sigma, high / sigma
    most = np.maximum(_size(activation, low, k), _size(activation, high, k))
    for u, value in _extremes(type(activation), k):
        most = np.where((low <= u) & (u <= high), np.maximum(most, value), most)
    return np.asarray((most + ROUNDING * _top(type(activation), k)) * OUTWARD / (factorial(k) * sigma**k))


def largest_of_all(activation: Activation, k: int) -> float | Array:
    """An upper bound on |phi^(k)| / k! for k of at least 1: a number, or one for each neuron."""
    if isinstance(activation, Identity):
        return float(k == 1)
    return _top(type(activation), k) * OUTWARD / (factorial(k) * _unit(activation) ** k)


def _unit(activation: Activation) -> float | Array:
    return activation.sigma if isinstance(activation, Erf) else 1.0


@cache
def _polynomial(kind: type[Activation], k: int) -> Polynomial:
    """Of the derivative k of erf(u) without 2 / sqrt(pi) exp(-u^2), or of tanh(u) as a function of t."""
    if kind is Erf:
        u = Polynomial([0.0, 1.0])
        return Polynomial([1.0]) if k == 1 else _polynomial(kind, k - 1).deriv() - 2 * u * _polynomial(kind, k - 1)
    if kind is Tanh:
        slope = Polynomial([1.0, 0.0, -1.0])
        return slope if k == 1 else _polynomial(kind, k - 1).deriv() * slope
    raise InputError(f"network: no derivatives are known of {kind.__name__}")


def _size(activation: Activation, u: Array, k: int) -> Array:
    """The derivative k of erf or tanh at u, in absolute value."""
    polynomial = _polynomial(type(activation), k)
    if isinstance(activation, Erf):
        return np.asarray(TWO_OVER_SQRT_PI * np.abs(polynomial(np.clip(u, -30, 30))) * np.exp(-u * u))
    return np.asarray(np.abs(polynomial(np.tanh(u))))


@cache
def _extremes(kind: type[Activation], k: int) -> list[tuple[float, float]]:
    """Points u where the derivative k is extreme, and how large it is there."""
    roots = _polynomial(kind, k + 1).roots()
    roots = np.sort(roots[np.abs(roots.imag) < REAL].real)
    if kind is Tanh:
        roots = np.arctanh(roots[np.abs(roots) < 1 - REAL])
    values = _size(kind(), roots, k)
    return [(float(u), float(value)) for u, value in zip(roots, values, strict=True)]


@cache
def _top(kind: type[Activation], k: int) -> float:
    """The largest derivative k in absolute value; a derivative vanishes at infinity."""
    return max(value for _, value in _extremes(kind, k))
