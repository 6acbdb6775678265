"""What CONVERGED means at a kink.

Where hidden neurons have c = 0 between two slopes (ReLU, PReLU, ELU with alpha != 1), several smooth pieces of the
network meet and none of their gradients need explain a minimum. There the KKT conditions are asked with the gradient of
a *mixture* of the pieces: every neuron at a kink has a slope s of its own such that

    s is between s_left and s_right,   and   (s_right - s_left) w <= 0,

with w the derivative of lam T o by the neuron's output. The first line alone is stationarity in the sense of Clarke
(F. H. Clarke, Optimization and Nonsmooth Analysis, 1983): some element of the generalised gradient fits. With the
second, the one set of multipliers satisfies the KKT conditions in all the pieces that meet, so that a kink that points
away from x, from which both sides come closer, is not taken for a minimum (flipopt.networks.linear_pieces has the
argument). A neuron that fails the second keeps the slope of the side that the point is counted to. A point is CONVERGED
if its residual with these slopes, or with the plain ones, is within the tolerance; ``kinks`` counts the former.

The slopes are found as follows. First every such neuron's c is a normal with a free multiplier mu of its own. Then mu
is put into the slopes, as far as they go. Then the residual is computed anew with these slopes, so that it holds
whatever was done to find them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.linear_pieces import Piece, at_kinks, kinked_slopes, wrong_way
from flipopt.networks.protocol import Network
from flipopt.verification.multipliers import Objective, Rows, stationarity
from flipopt.verification.tolerances import ACTIVE

EXPLAINED = 1e-10
"""Residual up to which nothing is left for kinks to explain: no tolerance is as small."""


def explain_by_kinks(
    network: Network, X_hat: Array, objective: Objective, rows: Rows, V: Array, residual: Array, lam: Array
) -> Array:
    """How many slopes between the two sides' explain a part of the residual, (points,).

    V (k, n_classes) are the weights of the logits of the first k rows, those of the goals. Residuals (points,) and
    multipliers (rows,) are improved in place.
    """
    count, points = np.zeros(len(X_hat), dtype=int), np.flatnonzero((residual > EXPLAINED) & (residual < np.inf))
    if len(points) == 0 or not (isinstance(network, DenseNetwork) and network.kinked):
        return count
    layers = network.pre_activations(X_hat[points])
    masks = at_kinks(network, layers, ACTIVE)
    some = np.flatnonzero(np.any([mask.any(axis=1) for mask in masks], axis=0))
    plain, masks, points = Piece.at(network, layers).of(some), [mask[some] for mask in masks], points[some]
    part, kept = rows.among(points, len(X_hat))
    less, own, slopes = _between(plain, masks, objective.take(points), part, V[kept[kept < len(V)]])
    better = less < residual[points]
    residual[points[better]], count[points[better]] = less[better], slopes[better]
    lam[kept[better[part.point]]] = own[better[part.point]]
    return count


def _between(
    plain: Piece, masks: list[Array], objective: Objective, rows: Rows, V: Array
) -> tuple[Array, Array, Array]:
    """The residual with slopes between the two sides', (points,), the multipliers, (rows,), and how many slopes."""
    goal, network = rows.point[: len(V)], plain.network

    def normals(piece: Piece) -> Rows:
        own = piece.of(goal).gradients(network.n_layers, V)
        return replace(rows, gradient=np.concatenate([own, rows.gradient[len(V) :]]))

    def weights(lam: Array) -> Array:
        """lam T: what the multipliers say of the logits, (points, n_classes)."""
        v = np.zeros((len(objective.size), network.n_classes))
        np.add.at(v, goal, lam[: len(V), None] * V)
        return v

    lam = stationarity(objective, Rows.join([normals(plain), *_walls(plain, masks)]))[1]
    mu, first = [np.zeros(mask.shape) for mask in masks], len(rows)
    for layer, mask in zip(mu, masks, strict=True):
        layer[mask] = lam[first : first + mask.sum()]
        first += mask.sum()
    piece = kinked_slopes(plain, masks, weights(lam), mu)
    while True:
        residual, lam = stationarity(objective, normals(piece))
        wrong = wrong_way(piece, plain, weights(lam))  # lam may differ from that which the slopes were made for
        if not any(mask.any() for mask in wrong):
            break
        slopes = zip(wrong, plain.slopes, piece.slopes, strict=True)
        piece = Piece(network, tuple(np.where(mask, old, new) for mask, old, new in slopes))
    changed = [(a != b).sum(axis=1) for a, b in zip(piece.slopes, plain.slopes, strict=True)]
    return residual, lam, np.sum(changed, axis=0)


def _walls(plain: Piece, masks: list[Array]) -> list[Rows]:
    """The gradients of c of the neurons at a kink, layer by layer."""
    walls = []
    for k, mask in enumerate(masks):
        point, neuron = np.nonzero(mask)
        gradient = plain.of(point).gradients(k + 1, np.eye(mask.shape[1])[neuron])
        walls.append(Rows(point, np.ones(len(point), dtype=bool), gradient))
    return walls
