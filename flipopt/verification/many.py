"""The check of :mod:`flipopt.verification.one` for many flip points at once.

It computes the same figures from fresh evaluations of the network. The residual is that of explicit multipliers of the
right sign, so it is an upper bound of the true one however they were found: what passes here passes there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.linear_pieces import Piece, at_kinks, kinked_slopes, wrong_way
from flipopt.networks.protocol import linearize_rows
from flipopt.problem import FlipBatch
from flipopt.verification.one import ACTIVE, ON_BOUNDARY

ROUNDS = 10
"""In which the features whose bounds take up a part of the gradient are found."""
KINKS = 1e-10
"""Residual above which neurons at a kink are looked for: no tolerance is as small."""


@dataclass(frozen=True)
class BatchVerification:
    """What the check found, (problems,) each; see :class:`~flipopt.verification.one.Verification`."""

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
    shared, rows = batch.setting, np.arange(len(batch))
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
    goal = _Goal.of(batch, relative <= ACTIVE)
    residual = _residual(batch, X_hat, goal.normals(pullback(goal.V, goal.points)), goal.use)[0]
    network, unsure = batch.network, np.flatnonzero((residual > KINKS) & (residual < np.inf))
    if len(unsure) and isinstance(network, DenseNetwork) and network.kinked:
        part = batch.take(unsure), X_hat[unsure], _Goal.of(batch.take(unsure), relative[unsure] <= ACTIVE)
        residual[unsure] = np.minimum(residual[unsure], _kinked(network, *part))
    return BatchVerification(
        boundary_gap=gap,
        class_margin=relative.min(axis=1),
        bound_violation=np.maximum(np.maximum(outside, frozen), 0.0),
        kkt_residual=residual,
    )


@dataclass(frozen=True)
class _Goal:
    """The rows of the goal that may have a multiplier: the target's in the first slot, active other classes after it.

    Attributes
    ----------
    use
        The slots that are in use, (problems, slots).
    points, slot
        Problem and slot of each of them, (rows,).
    V
        Its row as a function of the logits, (rows, n_classes).
    """

    use: Array
    points: Array
    slot: Array
    V: Array

    @classmethod
    def of(cls, batch: FlipBatch, active: Array) -> _Goal:
        i, j = batch.classes.T
        order = np.argsort(~active, axis=1, kind="stable")[:, : max(int(active.sum(axis=1).max(initial=0)), 1)]
        slots = np.concatenate([j[:, None], order], axis=1)
        use = np.concatenate([np.ones((len(batch), 1), dtype=bool), np.take_along_axis(active, order, axis=1)], axis=1)
        points, slot = np.nonzero(use)
        V = np.zeros((len(points), active.shape[1]))
        V[np.arange(len(points)), i[points]] = 1.0
        V[np.arange(len(points)), slots[points, slot]] = -1.0
        return cls(use, points, slot, V)

    def normals(self, rows: Array) -> Array:
        """The gradients ``rows`` (rows, n_inputs) in their slots, (problems, slots, n_inputs)."""
        N = np.zeros((*self.use.shape, rows.shape[1]))
        N[self.points, self.slot] = rows
        return N

    def combined(self, lam: Array) -> Array:
        """What multipliers lam (problems, slots) say of the logits, (problems, n_classes)."""
        v = np.zeros((len(self.use), self.V.shape[1]))
        np.add.at(v, self.points, lam[self.points, self.slot][:, None] * self.V)
        return v


def _residual(batch: FlipBatch, X_hat: Array, N: Array, use: Array, free: Array | None = None) -> tuple[Array, Array]:
    """Relative distance of the objective's gradient from the cone of the rows N and of the bounds, (problems,), and the
    multipliers of N, (problems, slots); ``free`` slots may have either sign."""
    shared = batch.setting
    if shared.frozen.any():
        N = N * ~shared.frozen
    g = shared.weights * (X_hat - batch.X)
    low, high = _edges(batch, X_hat)
    absorbed = np.zeros(X_hat.shape, dtype=bool)
    for _ in range(ROUNDS):
        M = N * ~absorbed[:, None] if absorbed.any() else N  # N may be large
        lam = _multipliers(np.matmul(M, M.transpose(0, 2, 1)), np.matmul(M, g[:, :, None])[:, :, 0], use, free)
        left = g - np.matmul(lam[:, None], N)[:, 0]
        now = (low & (left > 0)) | (high & (left < 0))
        if (now == absorbed).all():
            break
        absorbed = now
    size = np.linalg.norm(g, axis=1)
    residual = np.linalg.norm(left * ~absorbed, axis=1) / np.where(size > 0, size, 1.0)
    return np.where(size > 0, np.nan_to_num(residual, nan=np.inf), 0.0), lam


def _multipliers(K: Array, q: Array, use: Array, free: Array | None) -> Array:
    from flipopt.kernels.projections import multipliers

    lam, signless = np.zeros_like(q), np.arange(q.shape[1]) == 0 if free is None else free
    multipliers(*map(np.ascontiguousarray, (K, q, use)), signless, lam)
    return lam


def _kinked(network: DenseNetwork, batch: FlipBatch, X_hat: Array, goal: _Goal) -> Array:
    """The residual with slopes between the two sides' for neurons at a kink, (problems,).

    As in :mod:`flipopt.verification.one`: the kinks' own multipliers are put into slopes, as far as they go, and the
    residual is computed anew with these, so that it holds whatever was done to find them.
    """
    layers = network.pre_activations(X_hat)
    kinks, plain = at_kinks(network, layers, ACTIVE), Piece.at(network, layers)
    rows = plain.of(goal.points).gradients(network.n_layers, goal.V)
    C, neurons = _kink_normals(plain, kinks)
    N = np.concatenate([goal.normals(rows), C], axis=1)
    slots = goal.use.shape[1]
    free = np.arange(N.shape[1]) >= slots
    free[0] = True
    lam = _residual(batch, X_hat, N, np.concatenate([goal.use, neurons >= 0], axis=1), free)[1]
    mu = np.zeros((len(batch), sum(mask.shape[1] for mask in kinks)))
    problem, slot = np.nonzero(neurons >= 0)
    mu[problem, neurons[problem, slot]] = lam[problem, slots + slot]
    by_layer = np.split(mu, np.cumsum([mask.shape[1] for mask in kinks])[:-1], axis=1)
    piece = kinked_slopes(plain, kinks, goal.combined(lam[:, :slots]), by_layer)
    while True:
        rows = piece.of(goal.points).gradients(network.n_layers, goal.V)
        residual, lam = _residual(batch, X_hat, goal.normals(rows), goal.use)
        wrong = wrong_way(piece, plain, goal.combined(lam))
        if not any(mask.any() for mask in wrong):
            return residual
        slopes = zip(wrong, plain.slopes, piece.slopes, strict=True)
        piece = Piece(network, tuple(np.where(mask, old, new) for mask, old, new in slopes))


def _kink_normals(plain: Piece, kinks: list[Array]) -> tuple[Array, Array]:
    """Gradients of c of the neurons at ``kinks`` in slots, (problems, slots, n_inputs), and the neurons, counted over
    all layers, (problems, slots); -1 in slots that are empty."""
    every = np.concatenate(kinks, axis=1)
    slots = int(every.sum(axis=1).max(initial=0))
    neurons, place = np.full((len(every), slots), -1), np.cumsum(every, axis=1) - 1
    C, first = np.zeros((len(every), slots, plain.network.n_inputs)), 0
    for k, mask in enumerate(kinks):
        problem, e = np.nonzero(mask)
        own = place[problem, first + e]
        neurons[problem, own] = first + e
        C[problem, own] = plain.of(problem).gradients(k + 1, np.eye(mask.shape[1])[e])
        first += mask.shape[1]
    return C, neurons


def _edges(batch: FlipBatch, X_hat: Array) -> tuple[Array, Array]:
    """Masks (problems, n_inputs) of the features that touch their lower and their upper bound."""
    low, high = batch.setting.lower, batch.setting.upper
    width = high - low
    edge = np.where(np.isfinite(width), np.minimum(ACTIVE, 1e-3 * width), ACTIVE)
    return X_hat - low <= edge, high - X_hat <= edge
