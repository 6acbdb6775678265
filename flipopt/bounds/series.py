"""Taylor series of activations along a line, and how steep activations are around a point of the complex plane.

A series is an array (order + 1, ...): c(u) = C[0] + C[1] u + ... Recurrences are those of automatic differentiation (A.
Griewank and A. Walther, Evaluating Derivatives, 2008, chapter 13): if v' = w c', then k v_k = sum_j j c_j w_(k - j).
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.activations import (
    ELU,
    TWO_OVER_SQRT_PI,
    Activation,
    Erf,
    Identity,
    Leaky,
    PReLU,
    Softplus,
    Tanh,
)

KNOWN = (Erf, Tanh, ELU, PReLU, Identity, Softplus, Leaky)
"""Activations with a series here; ReLU is a PReLU."""


def known(activation: Activation) -> bool:
    """Whether there is a series of it here."""
    return known(activation.inner) if isinstance(activation, Leaky) else isinstance(activation, KNOWN)


def is_kinked(activation: Activation) -> bool:
    """Whether it is made of two analytic functions, one on either side of c = 0."""
    return is_kinked(activation.inner) if isinstance(activation, Leaky) else isinstance(activation, PReLU | ELU)


def is_linear(activation: Activation) -> bool:
    """Whether it is piecewise linear."""
    return is_linear(activation.inner) if isinstance(activation, Leaky) else isinstance(activation, PReLU | Identity)


def unit(activation: Activation) -> float | Array:
    """The change of c over which the activation bends; infinite where it does not."""
    if isinstance(activation, Leaky):
        return unit(activation.inner)
    if is_linear(activation):
        return np.inf
    return activation.parameter_value if isinstance(activation, Erf | Softplus) else 1.0


def series(activation: Activation, C: Array) -> Array:
    """That of phi(c(u)) from C, in its shape; for an activation of two sides by the one that C[0] is on."""
    match activation:
        case Leaky():
            return np.asarray((1 - activation.leak) * series(activation.inner, C) + activation.leak * C)
        case PReLU():
            return np.asarray(activation.slope(C[0]) * C)
        case Identity():
            return C
        case Erf():
            return _erf(activation, C)
        case Tanh():
            return _tanh(C)
        case Softplus():
            return _softplus(activation, C)
        case ELU():
            left = activation.alpha * _exp(np.concatenate([np.minimum(C[:1], 0.0), C[1:]]))
            left[0] = activation.value(np.minimum(C[0], 0.0))
            return np.where(C[0] >= 0, C, left)
    raise InputError(f"network: no Taylor series are known of {type(activation).__name__}")


def steepness(activation: Activation, c: Array, radius: Array) -> Array:
    """An upper bound on the slope in size over the complex numbers within ``radius`` of the real ``c``.

    Infinite where there is a pole. For an activation of two sides it is that of the function of c's own side.
    """
    match activation:
        case Leaky():
            leak = np.asarray(activation.leak)
            return np.asarray(np.abs(1 - leak) * steepness(activation.inner, c, radius) + np.abs(leak))
        case PReLU() | Identity():
            return np.abs(activation.slope(c))
        case Erf():
            # |exp(-z^2)| = exp(-Re z^2), and Re z^2 = x^2 - y^2 is least on the rim of the disc.
            q, r = np.abs(c) / activation.sigma, radius / activation.sigma
            least = np.where(q <= 2 * r, q * q / 2 - r * r, (q - r) ** 2)
            with np.errstate(over="ignore"):
                return np.asarray(TWO_OVER_SQRT_PI / activation.sigma * np.exp(-least))
        case Tanh():
            # |cosh(x + i y)|^2 = cosh(x)^2 - sin(y)^2
            with np.errstate(over="ignore"):
                size = np.cosh(np.maximum(np.abs(c) - radius, 0.0)) ** 2 - np.sin(np.minimum(radius, np.pi / 2)) ** 2
            return np.where(size > 0, 1 / np.where(size > 0, size, 1.0), np.inf)
        case Softplus():
            # 1 / |1 + exp(-z)|, with the real part of exp(-z) positive while |Im z| <= pi / 2
            q, r = c / activation.width, radius / activation.width
            return np.where(r <= np.pi / 2, np.exp(np.minimum(q + r, 0.0)), np.inf)
        case ELU():
            with np.errstate(over="ignore"):
                left = np.abs(activation.alpha) * np.exp(np.minimum(c, 0.0) + radius)
            return np.where(c >= 0, 1.0, left)
    raise InputError(f"network: no bounds on complex slopes are known of {type(activation).__name__}")


def _erf(activation: Erf, C: Array) -> Array:
    """v' = s c' with s = 2 / (sigma sqrt(pi)) exp(-c^2 / sigma^2), so that s' = -2 c c' / sigma^2 s; compiled."""
    from flipopt.kernels.series import erf_series  # brings in numba, which takes half a second

    rows = np.moveaxis(C.reshape(len(C), -1, C.shape[-1]), 0, 1)
    return np.moveaxis(erf_series(rows, activation.sigma), 1, 0).reshape(C.shape)


def _tanh(C: Array) -> Array:
    """v' = w c' with w = 1 - v^2."""
    V, w = np.empty_like(C), np.empty_like(C)
    V[0] = np.tanh(C[0])
    w[0] = 1 - V[0] ** 2
    for k in range(1, len(C)):
        V[k] = _derived(w, C, k)
        w[k] = -_convolved(V, V, k)
    return V


def _softplus(activation: Softplus, C: Array) -> Array:
    """v' = width s q' with q = c / width and s = 1 / (1 + exp(-q)), whose own s' = (s - s^2) q'."""
    q = C / activation.width
    s, p = np.empty_like(C), np.empty_like(C)
    s[0] = activation.slope(C[0])
    p[0] = s[0] - s[0] ** 2
    for k in range(1, len(C)):
        s[k] = _derived(p, q, k)
        p[k] = s[k] - _convolved(s, s, k)
    return _integral(activation.value(C[0]), activation.width * s, q)


def _exp(H: Array) -> Array:
    """exp(h(u)): g' = g h'."""
    G = np.empty_like(H)
    np.exp(H[0], out=G[0])
    for k in range(1, len(H)):
        G[k] = _derived(G, H, k)
    return G


def _integral(value: Array, w: Array, C: Array) -> Array:
    """v with v(0) = value and v' = w c'."""
    return np.stack([value, *(_derived(w, C, k) for k in range(1, len(C)))])


def _derived(w: Array, C: Array, k: int) -> Array:
    """v_k of v' = w c'."""
    total = C[k] * w[0]
    for j in range(1, k):
        total += (j / k) * C[j] * w[k - j]
    return np.asarray(total)


def _convolved(a: Array, b: Array, k: int) -> Array:
    """(a b)_k."""
    total = a[0] * b[k]
    for j in range(1, k + 1):
        total += a[j] * b[k - j]
    return np.asarray(total)
