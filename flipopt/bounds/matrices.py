"""Norms of matrices and of what a layer makes of a change, rounded outwards: the ground of every bound."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from flipopt.common.checks import Array
from flipopt.common.errors import InputError

NORMS = (1, 2, np.inf)
DUAL: dict[float, Any] = {1: np.inf, 2: 2, np.inf: 1}
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
    exponent = int(np.frexp(np.abs(W).max())[1])
    W = np.ldexp(W, -exponent)  # exact, and squares neither vanish nor overflow
    G = W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T
    estimate = _largest_eigenvalue(G)
    gamma = (max(W.shape) + 2) * np.finfo(np.float64).eps
    excess = 1e-11
    while not _is_positive(estimate * (1 + excess) * np.eye(len(G)) - G):
        excess *= 4
    mu = estimate * (1 + excess)
    rounding = gamma * (np.trace(G) + mu * len(G) + np.sum(W * W))
    norms = np.sqrt([estimate, mu + rounding])
    return SpectralNorm(*(float(norm) for norm in np.ldexp(norms, exponent)))


def layer_gain(W: Array, slopes: Array, norm: float) -> Array:
    """Upper bounds on the norm of diag(slopes) W^T: a number, or (rows,) for slopes (rows, width)."""
    size = np.abs(W)
    to_inf, to_one = (size.sum(axis=0) * slopes).max(axis=-1), (slopes @ size.T).max(axis=-1)
    if norm != 2:
        return np.asarray(to_inf if norm == np.inf else to_one)
    # Upper bounds on a 2-norm; the proved one of W alone is kept, so a ball costs no factorisation.
    return np.asarray(np.minimum(slopes.max(axis=-1) * _proved_norm(W), np.sqrt(to_inf * to_one)))


def dual_norm(W: Array, norm: float) -> Array:
    """For every column w of W, the largest w . d over changes d of unit ``norm``."""
    return np.asarray(np.linalg.norm(W, ord=DUAL[norm], axis=0))


def check_norm(norm: float) -> None:
    """Only norms that have a proof here."""
    if norm not in NORMS:
        raise InputError(f"norm: expected 1, 2 or inf, found {norm}")


_proved: dict[int, tuple[weakref.ref[Array], float]] = {}


def _proved_norm(W: Array) -> float:
    """spectral_norm(W).upper, computed once for every (read-only) weight matrix that is alive."""
    key = id(W)
    if key not in _proved or _proved[key][0]() is not W:
        _proved[key] = weakref.ref(W, lambda _: _proved.pop(key, None)), spectral_norm(W).upper
    return _proved[key][1]


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
