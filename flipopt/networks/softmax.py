"""The softmax and its derivatives, on arrays whose last axis runs over the classes."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array


def softmax(Y: Array) -> Array:
    """z = exp(y) / sum exp(y), equation (10), shifted so that nothing overflows."""
    shifted = np.exp(Y - Y.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def softmax_vjp(Z: Array, V: Array) -> Array:
    """V dz/dy, with dz/dy = diag(z) - z^T z the first factor of equation (13); symmetric, so also dz/dy V."""
    return np.asarray(Z * (V - (V * Z).sum(axis=-1, keepdims=True)))


def softmax_vjp_tangent(Z: Array, V: Array, dY: Array) -> Array:
    """The derivative of :func:`softmax_vjp` with V fixed when the logits move along dY."""
    dZ = softmax_vjp(Z, dY)
    centred = V - (V * Z).sum(axis=-1, keepdims=True)
    return np.asarray(dZ * centred - Z * (V * dZ).sum(axis=-1, keepdims=True))
