"""Networks whose activations have a kink at c = 0: their linear pieces, and slopes between those of the two sides.

Let s be the slope of a neuron, w the derivative of v . y by its output, and mu a multiplier of its c. The Lagrangian
changes by s w + mu for a unit of c. At a point with c = 0, going to the other side of the kink changes s and with it
mu, but not their sum, delta = s w + mu. The point can be no worse on the right than it is if mu = delta - s_right w
pushes to the right, mu >= 0, and on the left if delta - s_left w <= 0. Together:

    s_right w <= delta <= s_left w.

If this holds for every neuron at a kink, one set of multipliers satisfies the KKT conditions in all pieces that meet
there. Equivalently delta = s w with a slope s between the two, and (s_right - s_left) w <= 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork


@dataclass(frozen=True, eq=False)
class Piece:
    """A dense network with a fixed slope for every hidden neuron, hence affine: y(k) = s(k) c(k).

    ``slopes`` are (n(k),) for each of the m - 1 hidden layers; or (rows, n(k)) for many pieces at once, and then every
    argument has a row for each of them too.
    """

    network: DenseNetwork
    slopes: tuple[Array, ...]

    @classmethod
    def at(cls, network: DenseNetwork, layers: list[Array]) -> Piece:
        """That of a point with the pre-activations ``layers``; or those of many points."""
        return cls(network, tuple(a.slope(c) for a, c in zip(network.activations, layers, strict=False)))

    def of(self, rows: Array) -> Piece:
        """Those of many pieces that are at ``rows``, which may repeat."""
        return Piece(self.network, tuple(slope[rows] for slope in self.slopes))

    def layers(self, x: Array) -> list[Array]:
        """c(1), ..., c(m) at x (n_inputs,) if the slopes hold everywhere, as in a piecewise linear network's piece."""
        net, y, layers = self.network, x, []
        for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True)):
            layers.append(y @ W + b)
            y = self.slopes[k] * layers[-1] if k < len(self.slopes) else y
        return layers

    def gradients(self, layer: int, V: Array) -> Array:
        """The gradients of V c(layer), (rows, n_inputs), for V (rows, n(layer)); layers count from 1 to m."""
        G = times(V, self.network.weights[layer - 1].T)
        for k in range(layer - 2, -1, -1):  # the chain rule (11)-(12)
            G = times(G * self.slopes[k], self.network.weights[k].T)
        return G

    def sensitivities(self, v: Array, mu: list[Array] | None = None) -> list[Array]:
        """w(k) = d(v . y)/dy(k), (n(k),) for every hidden layer; multipliers mu(k) of c(k) add to s(k) w(k)."""
        W, w = self.network.weights, []
        g = times(v, W[-1].T)
        for k in range(len(self.slopes) - 1, -1, -1):
            w.append(g)
            g = times(self.slopes[k] * g + (0.0 if mu is None else mu[k]), W[k].T)
        return w[::-1]


def at_kinks(network: DenseNetwork, layers: list[Array], near: float) -> list[Array]:
    """Masks (n(k),) of hidden neurons whose c, of ``layers``, is within ``near`` of a kink, in the layer's scale.

    The masks of many points are (points, n(k)).
    """
    masks = []
    for c, (left, right) in zip(layers, network.one_sided_slopes, strict=False):
        masks.append((left != right) & (np.abs(c) <= near * np.maximum(1.0, np.abs(c).max(axis=-1, keepdims=True))))
    return masks


def kinked_slopes(piece: Piece, kinks: list[Array], v: Array, mu: list[Array]) -> Piece:
    """The piece with a slope between left and right for the neurons at ``kinks`` that reproduces mu as far as it can.

    ``mu`` are multipliers of c, (n(k),) a layer. From the last layer backwards: what is chosen in a layer changes w in
    those before it only. A neuron whose kink is the wrong way round, (s_right - s_left) w > 0, keeps its slope.
    """
    net, slopes = piece.network, list(piece.slopes)
    g = times(v, net.weights[-1].T)
    for k in range(len(slopes) - 1, -1, -1):
        left, right = net.one_sided_slopes[k]
        low, high = right * g, left * g
        own = kinks[k] & (low < high)
        delta = np.clip(slopes[k] * g + mu[k], low, high)
        slopes[k] = np.where(own, delta / np.where(own, g, 1.0), slopes[k])
        g = times(slopes[k] * g, net.weights[k].T)
    return Piece(net, tuple(slopes))


def wrong_way(piece: Piece, plain: Piece, v: Array) -> list[Array]:
    """Masks of the neurons whose slope is not the plain one although (s_right - s_left) w > 0."""
    masks = []
    for k, w in enumerate(piece.sensitivities(v)):
        left, right = piece.network.one_sided_slopes[k]
        masks.append((piece.slopes[k] != plain.slopes[k]) & ((right - left) * w > 0))
    return masks


@dataclass(frozen=True, eq=False)
class Held:
    """Hidden neurons that a Newton step holds at their kinks: c = 0 as further equations.

    ``layers`` are c at the point, and ``masks`` (n(k),) tell which neurons are held. The side that rounding puts such a
    neuron on does not matter: delta is the same on both, and its own curvature counts only where its c changes.
    """

    network: DenseNetwork
    layers: list[Array]
    masks: list[Array]

    @classmethod
    def near(cls, network: DenseNetwork, x: Array, distance: float) -> Held:
        """Those that are within ``distance`` of a kink at x (n_inputs,)."""
        layers = network.pre_activations(x)
        return cls(network, layers, at_kinks(network, layers, distance))

    @property
    def c(self) -> Array:
        """Of the neurons, (k,)."""
        return np.concatenate([c[mask] for c, mask in zip(self.layers, self.masks, strict=False)])

    @property
    def gradients(self) -> Array:
        """Of their c, (k, n_inputs)."""
        rows = [self._piece.gradients(k + 1, np.eye(len(mask))[mask]) for k, mask in enumerate(self.masks)]
        return np.concatenate(rows)

    def hessian(self, x: Array, mu: Array) -> Array:
        """Of mu . c, (n_inputs, n_inputs), for mu (k,)."""
        H = np.zeros((len(x), len(x)))
        for k, weights in enumerate(self._by_layer(mu)):
            if k and np.any(weights):  # c(1) is affine
                H += self.network.up_to(k + 1).hessian(x, weights)
        return H

    def moved(self, x: Array, v: Array, mu: Array) -> Held:
        """After a step to x with multipliers v (n_classes,) and mu (k,).

        Those whose side the step changed are held from now on; those whose delta is not between the two sides are let
        go: their multipliers push off the kink.
        """
        piece, layers, masks = self._piece, self.network.pre_activations(x), []
        by_layer = self._by_layer(mu)
        for k, w in enumerate(piece.sensitivities(v, by_layer)):
            left, right = self.network.one_sided_slopes[k]
            delta = piece.slopes[k] * w + by_layer[k]
            between = (right * w <= delta) & (delta <= left * w)
            crossed = (left != right) & ((self.layers[k] >= 0) != (layers[k] >= 0))
            masks.append(np.where(self.masks[k], between, crossed))
        return Held(self.network, layers, masks)

    @property
    def _piece(self) -> Piece:
        """The slopes at the point."""
        return Piece.at(self.network, self.layers)

    def _by_layer(self, mu: Array) -> list[Array]:
        """mu of every hidden neuron, 0 where it is not held."""
        whole = [np.zeros(len(mask)) for mask in self.masks]
        parts = np.split(mu, np.cumsum([mask.sum() for mask in self.masks])[:-1])
        for layer, mask, part in zip(whole, self.masks, parts, strict=True):
            layer[mask] = part
        return whole
