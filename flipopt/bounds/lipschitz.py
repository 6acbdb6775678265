"""Lipschitz bounds of dense networks, and what they prove about the distance to a flip point.

A layer maps a change dy to diag(slope) W^T dy, so its gain is at most the norm of diag(largest slope) W^T. Global
bounds multiply these with the largest slope anywhere (equation (15) of Yousefzadeh and O'Leary 2020, with the norm of
the *transposed* matrix, as row vectors need); local ones with the largest slope that a ball around x can reach.

Norms are those of the input and of every layer: 1, 2 or infinity.
"""

from __future__ import annotations

import numpy as np

from flipopt.bounds.balls import Balls
from flipopt.bounds.lower import lower
from flipopt.bounds.matrices import OUTWARD, check_norm, layer_gain
from flipopt.common.checks import Array, as_point
from flipopt.common.errors import InputError
from flipopt.networks.activations import TWO_OVER_SQRT_PI
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.protocol import Outputs

SOFTMAX = 0.5
"""Largest gain of the softmax in all three norms: 2 z (1 - z) <= 1/2."""


def global_bound(net: DenseNetwork, norm: float = 2, outputs: Outputs = "logits") -> float:
    """An upper bound on the norm of the Jacobian dy/dx (or dz/dx) anywhere; (15) when ``norm`` is infinity."""
    check_norm(norm)
    gain = 1.0
    for k, W in enumerate(net.in_float64.weights):
        slopes = net.activations[k].lipschitz if k < net.n_layers - 1 else np.ones(())
        gain *= float(layer_gain(W, np.broadcast_to(slopes, W.shape[1]), norm))
    return gain * (SOFTMAX if outputs == "probabilities" else 1.0) * OUTWARD


def homotopy_bounds(net: DenseNetwork, tau: float) -> tuple[float, float]:
    """Bound (16): where (15) lies at the start of a homotopy, t = 0, in the infinity norm.

    There the largest slope of every neuron is in [tau, 1]; for erf, sigma is in [2/sqrt(pi), 2/(tau sqrt(pi))].
    """
    _check_tau(tau)
    return _products(net, [(tau, 1.0)] * (net.n_layers - 1))


def path_bounds(net: DenseNetwork, tau: float) -> tuple[float, float]:
    """Where (15) stays along the whole of a homotopy to ``net``, for every t from 0 to 1, in the infinity norm.

    The largest slope of a neuron goes from a value in [tau, 1], as in (16), to the trained one L without leaving
    [min(tau, L), max(1, L)]. With parameters per neuron a layer counts with the least and the largest L among them.
    """
    _check_tau(tau)
    slopes = [(float(np.min(a.lipschitz)), float(np.max(a.lipschitz))) for a in net.activations]
    return _products(net, [(min(tau, least), max(1.0, largest)) for least, largest in slopes])


def _check_tau(tau: float) -> None:
    if not 0 < tau <= 1:
        raise InputError(f"tau: expected a number in (0, 1], found {tau}")


def _products(net: DenseNetwork, slopes: list[tuple[float, float]]) -> tuple[float, float]:
    """The norms of all W^T multiplied with the lower and with the upper end of every hidden layer's slopes."""
    product = float(np.prod([np.abs(W.astype(np.float64)).sum(axis=0).max() for W in net.weights]))
    least, largest = (float(np.prod([ends[side] for ends in slopes])) for side in (0, 1))
    return least * product / OUTWARD, largest * product * OUTWARD


def sigma_range(tau: float) -> tuple[float, float]:
    """The erf widths whose largest slope is 1 and tau: the ends of the range in (16)."""
    return TWO_OVER_SQRT_PI, TWO_OVER_SQRT_PI / tau


def local_bound(net: DenseNetwork, x: Array, radius: float, norm: float = 2, outputs: Outputs = "logits") -> float:
    """An upper bound on the norm of the Jacobian over the ball of ``radius`` around x (n_inputs,)."""
    check_norm(norm)
    if not radius >= 0:
        raise InputError(f"radius: expected a number >= 0, found {radius}")
    balls = Balls.at(net.in_float64, as_point(x, net.n_inputs, "x")[None], norm)
    gain = float(balls.gain(np.array([radius], dtype=np.float64))[0])
    return gain * (SOFTMAX if outputs == "probabilities" else 1.0) * OUTWARD


def distance_lower_bound(net: DenseNetwork, x: Array, norm: float = 2, steps: int = 10) -> float:
    """:func:`flipopt.bounds.lower` of one input x (n_inputs,), by Lipschitz bounds alone."""
    return float(lower(net, as_point(x, net.n_inputs, "x"), norm, steps, method="lipschitz"))
