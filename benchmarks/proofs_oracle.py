"""Small piecewise linear networks, and their closest flips by going through all linear pieces."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
from scipy.optimize import nnls

import flipopt as fo
from flipopt.common.checks import Array

Bounds = tuple[Array, Array]


def network(
    seed: int, widths: tuple[int, ...] = (2, 4, 3, 3), alpha: float = 0.0, bias: float = 0.5
) -> fo.DenseNetwork:
    """A random one, with ReLU or PReLU; without biases many logits tie."""
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [bias * rng.standard_normal(width) for width in widths[1:]]
    return fo.DenseNetwork(W, b, fo.PReLU(alpha) if alpha else fo.ReLU())


def rescaled(net: fo.DenseNetwork, factors: list[float]) -> fo.DenseNetwork:
    """The same classes everywhere: a factor for the outputs of each layer."""
    W, b, total = [], [], 1.0
    for matrix, vector, factor in zip(net.weights, net.biases, factors, strict=True):
        W.append(matrix * factor)
        total *= factor
        b.append(vector * total)
    return fo.DenseNetwork(W, b, net.activations)


def distance_by_pieces(
    net: fo.DenseNetwork,
    x: Array,
    weights: Array | None = None,
    free: Array | None = None,
    bounds: Bounds | None = None,
) -> float:
    """The least distance over all sign patterns and classes; infinite where there is no flip."""
    root = np.ones(net.n_inputs) if weights is None else np.sqrt(weights)
    mask = np.ones(net.n_inputs, dtype=bool) if free is None else free
    i, best = int(net.predict(x)), np.inf
    E = np.eye(net.n_inputs)[mask]
    walls = np.empty((0, net.n_inputs)) if bounds is None else np.vstack([E, -E])
    limits = np.empty(0) if bounds is None else np.concatenate([E @ bounds[0], -E @ bounds[1]])
    for signs in product((1, -1), repeat=sum(net.widths[1:-1])):
        A, a = np.eye(net.n_inputs), np.zeros(net.n_inputs)
        rows, sides, begin = [], [], 0
        for W, b, (left, right) in zip(net.weights, net.biases, net.one_sided_slopes, strict=False):
            own = np.array(signs[begin : begin + len(b)])
            A, a = A @ W, a @ W + b
            rows.append(own[:, None] * A.T)
            sides.append(-own * a)
            slope = np.where(own > 0, right, left)
            A, a, begin = A * slope, a * slope, begin + len(b)
        A, a = A @ net.weights[-1], a @ net.weights[-1] + net.biases[-1]
        for k in range(net.n_classes):
            if k != i:
                lead = A[:, k] - A[:, i]
                G = np.vstack([*rows, lead[None], walls])
                h = np.concatenate([*sides, [a[i] - a[k]], limits])
                best = min(best, least_distance((G * mask) / root, h - G @ x))
    return best


def least_distance(G: Array, h: Array) -> float:
    """The least |d| with G d >= h, by non-negative least squares: Lawson and Hanson (1974), chapter 23.

    In units of the distance, which a first solve tells: far points are a matter of the last digits otherwise. Where the
    two do not agree, as happens with many constraints through one point, by going through all active sets.
    """
    if (h <= 0).all():
        return 0.0
    unit = _least_distance(G, h)
    if unit == np.inf:
        return unit
    again = _least_distance(G, h / unit) if unit > 0 else np.inf  # 0 is none, as there is something to reach
    return unit * again if abs(again - 1) < 1e-6 else _by_active_sets(G, h)


def _least_distance(G: Array, h: Array) -> float:
    E, f = np.vstack([G.T, h]), np.append(np.zeros(G.shape[1]), 1.0)
    u, _ = nnls(E, f)
    r = E @ u - f
    return np.inf if abs(r[-1]) < 1e-9 else float(np.linalg.norm(r[:-1] / r[-1]))


def _by_active_sets(G: Array, h: Array) -> float:
    """The shortest of all shortest solutions of up to n of the equations that satisfies every inequality."""
    best, sizes = np.inf, np.linalg.norm(G, axis=1)
    for count in range(1, G.shape[1] + 1):
        for some in map(list, combinations(range(len(h)), count)):
            d = np.linalg.lstsq(G[some], h[some])[0]
            length = float(np.linalg.norm(d))
            if length < best and (h - G @ d <= 1e-12 * (np.abs(h) + sizes * length)).all():
                best = length
    return best
