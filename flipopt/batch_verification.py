"""The check of :mod:`flipopt.verification` for many flip points at once.

It computes the same figures from fresh evaluations of the network. The residual is that of explicit multipliers of the
right sign, so it is an upper bound of the true one however they were found: what passes here passes there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.checks import Array
from flipopt.dual import multipliers
from flipopt.networks.protocol import RowPullback, linearize_rows
from flipopt.problem import FlipBatch
from flipopt.verification import ACTIVE, ON_BOUNDARY

ROUNDS = 10
"""In which the features whose bounds take up a part of the gradient are found."""


@dataclass(frozen=True)
class BatchVerification:
    """What the check found, (problems,) each; see :class:`~flipopt.verification.Verification`."""

    boundary_gap: Array
    class_margin: Array
    bound_violation: Array
    kkt_residual: Array

    @property
    def on_boundary(self) -> Array:
        """Where every constraint holds."""
        return np.asarray(
            (self.boundary_gap <= ON_BOUNDARY) & (self.class_margin >= -ON_BOUNDARY) & (self.bound_violation == 0)
        )


def verify_batch(batch: FlipBatch, X_hat: Array) -> BatchVerification:
    """Check the points ``X_hat`` (problems, n_inputs)."""
    shared, rows = batch.template, np.arange(len(batch))
    i, j = batch.classes.T
    Y, pullback = linearize_rows(batch.network, X_hat)
    leads = batch.leads(Y)
    # The scale of a row is the larger of its two logits, as in |y_i - y_j| <= eps max(1, |y_i|).
    scale = np.maximum(1.0, np.maximum(np.abs(Y[rows, i])[:, None], np.abs(Y)))
    relative = leads / scale
    gap = np.abs(relative[rows, j])
    relative[rows, j] = np.inf
    outside = np.maximum(shared.lower - X_hat, X_hat - shared.upper).max(axis=1)
    frozen = (np.abs(X_hat - batch.X) * shared.frozen).max(axis=1)
    return BatchVerification(
        boundary_gap=gap,
        class_margin=relative.min(axis=1),
        bound_violation=np.maximum(np.maximum(outside, frozen), 0.0),
        kkt_residual=_residual(batch, X_hat, relative <= ACTIVE, pullback),
    )


def _residual(batch: FlipBatch, X_hat: Array, active: Array, pullback: RowPullback) -> Array:
    """Relative distance of the objective's gradient from the cone of active rows and bounds, (problems,)."""
    shared = batch.template
    i, j = batch.classes.T
    order = np.argsort(~active, axis=1, kind="stable")[:, : max(int(active.sum(axis=1).max(initial=0)), 1)]
    slots = np.concatenate([j[:, None], order], axis=1)
    use = np.concatenate([np.ones((len(batch), 1), dtype=bool), np.take_along_axis(active, order, axis=1)], axis=1)
    points, slot = np.nonzero(use)
    V = np.zeros((len(points), active.shape[1]))
    V[np.arange(len(points)), i[points]] = 1.0
    V[np.arange(len(points)), slots[points, slot]] = -1.0
    N = np.zeros((*use.shape, X_hat.shape[1]))
    N[points, slot] = pullback(V, points) * ~shared.frozen
    g = shared.weights * (X_hat - batch.X)
    low, high = _edges(batch, X_hat)
    absorbed = np.zeros(X_hat.shape, dtype=bool)
    for _ in range(ROUNDS):
        M = N * ~absorbed[:, None]
        lam = multipliers(np.matmul(M, M.transpose(0, 2, 1)), np.matmul(M, g[:, :, None])[:, :, 0], use)
        left = g - np.matmul(lam[:, None], N)[:, 0]
        now = (low & (left > 0)) | (high & (left < 0))
        if (now == absorbed).all():
            break
        absorbed = now
    size = np.linalg.norm(g, axis=1)
    residual = np.linalg.norm(left * ~absorbed, axis=1) / np.where(size > 0, size, 1.0)
    return np.where(size > 0, np.nan_to_num(residual, nan=np.inf), 0.0)


def _edges(batch: FlipBatch, X_hat: Array) -> tuple[Array, Array]:
    """Masks (problems, n_inputs) of the features that touch their lower and their upper bound."""
    low, high = batch.template.lower, batch.template.upper
    width = high - low
    edge = np.where(np.isfinite(width), np.minimum(ACTIVE, 1e-3 * width), ACTIVE)
    return X_hat - low <= edge, high - X_hat <= edge
