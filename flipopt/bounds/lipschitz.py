"""Lipschitz bounds of dense networks, and what they prove about the distance to a flip point.

A layer maps a change dy to diag(slope) W^T dy, so its gain is at most the norm of diag(largest slope) W^T. Global
bounds multiply these with the largest slope anywhere (equation (15) of Yousefzadeh and O'Leary 2020, with the norm of
the *transposed* matrix, as row vectors need); local ones with the largest slope that a ball around x can reach.

Norms are those of the input and of every layer: 1, 2 or infinity.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from flipopt.common.checks import Array, as_point
from flipopt.common.errors import InputError
from flipopt.networks.activations import TWO_OVER_SQRT_PI, Activation
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.protocol import Outputs

NORMS = (1, 2, np.inf)
SOFTMAX = 0.5
"""Largest gain of the softmax in all three norms: 2 z (1 - z) <= 1/2."""
OUTWARD = 1 + 1e-10
"""Factor that covers the rounding of the products and sums below, about 1e-13 relative for a thousand neurons."""
ROUNDING = 1e-12
"""What rounding may add to one evaluation of a layer or a logit, relative to its size."""
POWER_DOUBLINGS = 8


@dataclass(frozen=True)
class SpectralNorm:
    """The largest singular value of a matrix: ``estimate`` from below, ``upper`` proved from above."""

    estimate: float
    upper: float


def spectral_norm(W: Array) -> SpectralNorm:
    """The 2-norm of W, by power iteration for the value and a Cholesky factorisation for the proof.

    With G = W^T W (or W W^T), mu I - G has a Cholesky factor only if mu is at least the largest eigenvalue, up to
    rounding errors that are bounded by gamma = (n + 2) eps times the trace and added (Rump 2006).
    """
    W = np.asarray(W, dtype=np.float64)
    if not np.any(W):
        return SpectralNorm(0.0, 0.0)
    G = W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T
    estimate = _largest_eigenvalue(G)
    gamma = (max(W.shape) + 2) * np.finfo(np.float64).eps
    excess = 1e-11
    while not _is_positive(estimate * (1 + excess) * np.eye(len(G)) - G):
        excess *= 4
    mu = estimate * (1 + excess)
    rounding = gamma * (np.trace(G) + mu * len(G) + np.sum(W * W))
    return SpectralNorm(float(np.sqrt(estimate)), float(np.sqrt(mu + rounding)))


def global_bound(net: DenseNetwork, norm: float = 2, outputs: Outputs = "logits") -> float:
    """An upper bound on the norm of the Jacobian dy/dx (or dz/dx) anywhere; (15) when ``norm`` is infinity."""
    _check_norm(norm)
    gain = 1.0
    for k, W in enumerate(net.in_float64.weights):
        slopes = net.activations[k].lipschitz if k < net.n_layers - 1 else np.ones(())
        gain *= _layer_gain(W, np.broadcast_to(slopes, W.shape[1]), norm)
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
    hidden, W = _follow_ball(net, as_point(x, net.n_inputs, "x"), radius, norm), net.in_float64.weights[-1]
    layer = _layer_gain(W, np.ones(net.n_classes), norm)
    gain = min(hidden.gain * layer, _norm(W.T @ hidden.M, norm) + hidden.drift * layer)
    return gain * (SOFTMAX if outputs == "probabilities" else 1.0) * OUTWARD


def distance_lower_bound(net: DenseNetwork, x: Array, norm: float = 2, steps: int = 10) -> float:
    """A proved lower bound on the distance from x (n_inputs,) to any point where another class catches up.

    Within a radius r the lead y_i - y_k cannot fall faster than the local bound L(r) of the ball allows, so no flip
    point is nearer than min(r, lead / L(r)). A good r is found by ``steps`` bisections of its logarithm.
    """
    x = as_point(x, net.n_inputs, "x")
    y = net.logits(x)
    i = int(y.argmax())
    others = np.arange(net.n_classes) != i
    lead = y[i] - y[others] - ROUNDING * np.abs(y).max()
    if lead.min() <= 0:
        return 0.0
    W = net.weights[-1].astype(np.float64)
    difference = W[:, [i]] - W[:, others]

    def nearest(radius: float) -> float:
        """Where the lead could be used up at the earliest, were the slopes everywhere what they are in the ball."""
        reached = _follow_ball(net, x, radius, norm)
        steepest = reached.steepness(difference, difference.T @ reached.M, norm)
        with np.errstate(divide="ignore"):
            return float((lead / steepest).min())

    low, high = nearest(np.inf), nearest(0.0)
    if not np.isfinite(low):
        return low  # constant logits: there is no flip point
    best = low
    for _ in range(steps):
        middle = np.sqrt(low * high)
        here = nearest(middle)
        best = max(best, min(middle, here))
        low, high = (middle, high) if here >= middle else (low, middle)
    return float(best / OUTWARD)


@dataclass(frozen=True)
class _Reached:
    """What a layer makes of a ball around x: M is its Jacobian at x, (width, n_inputs), ``drift`` bounds how far in
    norm the Jacobian gets from M within the ball, and ``gain`` bounds its norm."""

    M: Array
    drift: float
    gain: float

    def steepness(self, W: Array, C: Array, norm: float) -> Array:
        """Bounds on the slope of every column of (layer) W, per unit of change of x; C = W^T M."""
        through = _dual_norm(W, norm)
        return np.minimum(_dual_norm(C.T, norm) + self.drift * through, self.gain * through) * OUTWARD


def _follow_ball(net: DenseNetwork, x: Array, radius: float, norm: float) -> _Reached:
    """Follow the ball of ``radius`` around x to the last hidden layer.

    A pre-activation stays within its steepness times the radius, and within what the box of the layer below allows; the
    range of slopes there gives the drift of the next layer.
    """
    _check_norm(norm)
    if not radius >= 0:
        raise InputError(f"radius: expected a number >= 0, found {radius}")
    net, y = net.in_float64, x
    reached = _Reached(np.eye(net.n_inputs), 0.0, 1.0)
    box: tuple[Array, Array] | None = None
    for W, b, activation in zip(net.weights, net.biases, net.activations, strict=False):
        c, C = y @ W + b, W.T @ reached.M
        reach = _reach(reached.steepness(W, C, norm), radius) + ROUNDING * (1 + np.abs(c))
        low, high = c - reach, c + reach
        if box is not None:
            middle, half = (box[0] + box[1]) / 2 @ W + b, (box[1] - box[0]) / 2 @ np.abs(W) * OUTWARD
            low, high = np.maximum(low, middle - half), np.minimum(high, middle + half)
        y, slope = activation.value_and_slope(c)
        slopes = [np.broadcast_to(end, c.shape) for end in activation.slope_range(low, high)]
        change = np.maximum(slopes[1] - slope, slope - slopes[0]) + ROUNDING
        layer = _layer_gain(W, np.max(np.abs(slopes), axis=0), norm)
        M, drift = slope[:, None] * C, layer * reached.drift + _norm(change[:, None] * C, norm)
        reached = _Reached(M, drift, min(layer * reached.gain, _norm(M, norm) + drift) * OUTWARD)
        box = _value_range(activation, low, high)
    return reached


def _reach(steepness: Array, radius: float) -> Array:
    """steepness * radius, rounded outwards; a neuron that depends on nothing stays put even for an infinite radius."""
    with np.errstate(invalid="ignore"):
        return np.where(steepness > 0, steepness * radius * OUTWARD, 0.0)


def _value_range(activation: Activation, low: Array, high: Array) -> tuple[Array, Array] | None:
    """The box of a layer's outputs; None if it is unbounded. Activations turn only at 0 and at the ends."""
    turns = np.stack([activation.value(c) for c in (low, high, np.clip(0.0, low, high))])
    bottom, top = turns.min(axis=0), turns.max(axis=0)
    if not (np.isfinite(bottom).all() and np.isfinite(top).all()):
        return None
    return bottom - ROUNDING * (1 + np.abs(bottom)), top + ROUNDING * (1 + np.abs(top))


def _layer_gain(W: Array, slopes: Array, norm: float) -> float:
    """An upper bound on the norm of diag(slopes) W^T."""
    size = np.abs(W)
    to_inf, to_one = float((size.sum(axis=0) * slopes).max()), float((size @ slopes).max())
    if norm != 2:
        return to_inf if norm == np.inf else to_one
    # Upper bounds on a 2-norm; the proved one of W alone is kept, so a ball costs no factorisation.
    return float(min(slopes.max() * _proved_norm(W), np.sqrt(to_inf * to_one)))


_proved: dict[int, tuple[weakref.ref[Array], float]] = {}


def _proved_norm(W: Array) -> float:
    """spectral_norm(W).upper, computed once for every (read-only) weight matrix that is alive."""
    key = id(W)
    if key not in _proved or _proved[key][0]() is not W:
        _proved[key] = weakref.ref(W, lambda _: _proved.pop(key, None)), spectral_norm(W).upper
    return _proved[key][1]


def _norm(A: Array, norm: float) -> float:
    """An upper bound on the norm of A: exact for 1 and infinity, the Frobenius norm for 2."""
    if norm == 2:
        return float(np.linalg.norm(A))
    return float(np.abs(A).sum(axis=1 if norm == np.inf else 0).max())


def _dual_norm(W: Array, norm: float) -> Array:
    """For every column w of W, the largest w . d over changes d of unit ``norm``."""
    order: Any = {1: np.inf, 2: 2, np.inf: 1}[norm]
    return np.asarray(np.linalg.norm(W, ord=order, axis=0))


def _largest_eigenvalue(G: Array) -> float:
    """Rayleigh quotient after 2^POWER_DOUBLINGS power steps from a fixed start: a lower bound, by repeated squaring."""
    v, P = np.random.default_rng(0).standard_normal(len(G)), G
    for _ in range(POWER_DOUBLINGS):
        P = P / np.linalg.norm(P)
        v = P @ v
        P = P @ P
    v /= np.linalg.norm(v)
    return float(v @ (G @ v))


def _is_positive(A: Array) -> bool:
    try:
        cholesky(A, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _check_norm(norm: float) -> None:
    if norm not in NORMS:
        raise InputError(f"norm: expected 1, 2 or inf, found {norm}")
