"""Whether chains have mixed: R-hat and effective sample sizes.

Split R-hat without ranks, and the effective size of several chains with Geyer's initial monotone sequence, as in
Vehtari, Gelman, Simpson, Carpenter and Buerkner, Bayesian Analysis 16, 2021, sections 3.1 and 3.2.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError

LEAST = 4
"""Draws of a chain."""


def split_rhat(X: Array) -> Array:
    """R-hat of each variable of chains X (chains, draws, d), (d,): the two halves of a chain count as chains.

    Near 1 if they agree. 1 for variables that never change, where all chains are at the same place, else infinity.
    """
    halves = _halves(X)
    within, total = _variances(halves)
    moved = np.ptp(X, axis=(0, 1)) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(moved, np.sqrt(total / within), 1.0)


def effective_size(X: Array) -> Array:
    """How many independent draws the mean of chains X (chains, draws, d) is worth, (d,)."""
    halves = _halves(X)
    chains, draws, _ = halves.shape
    within, total = _variances(halves)
    covariance = _autocovariances(halves).mean(axis=0)  # (draws, d)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - covariance * draws / (draws - 1)) / total
    rho[0] = 1.0
    pairs = rho[: draws // 2 * 2].reshape(-1, 2, rho.shape[1]).sum(axis=1)
    positive = np.minimum.accumulate(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    tau = np.maximum(2 * monotone.sum(axis=0) - 1, 1 / np.log10(chains * draws))
    return np.where(np.isfinite(total) & (total > 0), chains * draws / tau, 1.0)


def _halves(X: Array) -> Array:
    if X.ndim != 3 or X.shape[1] < LEAST:
        raise InputError(f"X: expected chains (chains, draws, d) of at least {LEAST} draws, found shape {X.shape}")
    half = X.shape[1] // 2
    return np.concatenate([X[:, :half], X[:, -half:]])


def _variances(halves: Array) -> tuple[Array, Array]:
    """W, and the estimate of the whole variance from within and between, (d,) each."""
    draws = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return within, (draws - 1) / draws * within + between


def _autocovariances(X: Array) -> Array:
    """Of chains (chains, draws, d) at every lag, by Fourier transform, in that shape."""
    draws = X.shape[1]
    spectrum = np.fft.rfft(X - X.mean(axis=1, keepdims=True), 2 * draws, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, 2 * draws, axis=1)[:, :draws] / draws)
