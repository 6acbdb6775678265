r"""Taylor expansions of smooth dense networks on balls in the 2-norm, with what is not linear held by matrices.

Within the ball ``|d| <= r`` around x a layer's pre-activations change by A^T d + w(d), with A their Jacobian at x. A
matrix K *dominates* a vector f(d) if f f^T <= K (in the order of symmetric matrices) for all d of the ball. Then

- ``|f_j|`` is at most the root of K_jj, and W^T K W dominates W^T f;
- if L dominates g, the elementwise product K o L dominates that of f and g (I. Schur, 1911): powers of f too;
- K / s + L / (1 - s) dominates f + g for any 0 < s < 1, and diag(t) sum(t) any f with ``|f_j| <= t_j``.

So r^2 A^T A dominates A^T d, and a layer's activations, as Taylor polynomials of their pre-activations, have their w
dominated from one layer to the next; what follows in the series is at most t_j by a bound on the next derivative. The
products see what norms of neurons one by one do not: that no d is along the gradients of many neurons at a time. A ball
costs two products of matrices a layer, however many neurons there are to bound.

Rounding: ROUNDING covers that of an evaluation of a layer or of a matrix, relative to the sizes that add up in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.bounds.derivatives import SMOOTH, coefficients, largest, largest_of_all
from flipopt.bounds.matrices import OUTWARD, ROUNDING
from flipopt.bounds.relaxation import first_in_span
from flipopt.bounds.series import unit
from flipopt.common.checks import Array
from flipopt.networks.activations import Activation
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork

ORDER = 6
"""Of the Taylor polynomials."""
RADII = 6
"""Radii that are tried for each input."""
BENT = 0.4
"""The first is where a layer's pre-activations change by this share of what bends its activation; the mean of a layer
decides, in the layer that has the largest. Deep networks are proved to about there."""
STRIDE = 1.25
"""Factor between the first two radii; it is squared each time until one proves its ball and another does not."""
FAR = 20.0
"""Change of a pre-activation, in terms of what bends its activation, beyond which a ball is given up."""
MEMORY = 2**25
"""Bytes of the matrices of a block of rows."""
WIDEST = 3000
"""Neurons of a layer up to which its matrices are held."""
SPARE = 12
"""Matrices of the widest layer that a ball needs at a time, at most."""


def is_smooth(net: DenseNetwork) -> bool:
    """Whether there is an expansion here: hidden layers with erf or tanh, at least one, and none too wide."""
    return (
        net.n_layers > 1
        and max(net.widths[1:]) <= WIDEST
        and all(isinstance(activation, SMOOTH) for activation in net.activations)
    )


def rows_at_once(net: DenseNetwork) -> int:
    """Inputs of a block, such that their matrices fit."""
    squares = [width**2 for width in net.widths[1:]]
    return max(1, MEMORY // (8 * (sum(squares) + SPARE * max(squares))))


def operations(net: DenseNetwork) -> float:
    """Floating-point operations of one input."""
    return RADII * sum(2.0 * W.size * sum(W.shape) for W in net.weights)


def smooth_lower(net: DenseNetwork, X: Array, low: Array, high: Array) -> Array:
    """Distances (rows,) free of flips, at least ``low`` (rows,), which are such distances already.

    For a network in float64 at X (rows, n_inputs). ``high`` (rows,) is where a linearisation has the first flip, beyond
    which nothing can be proved here.
    """
    expansion = Expansion.at(net, X)
    best, least, most = low.copy(), low.copy(), high.copy()
    radius = np.clip(expansion.bent, low, high)
    for step in range(RADII):
        some = np.flatnonzero((least > 0) & np.isfinite(most) & (least < most))
        if len(some) == 0:
            break
        holds = expansion.of(some).margin(radius[some]) > 0
        best[some] = np.where(holds, np.maximum(best[some], radius[some]), best[some])
        least[some] = np.where(holds, radius[some], least[some])
        most[some] = np.where(holds, most[some], radius[some])
        middle, stride = np.sqrt(least) * np.sqrt(most), STRIDE ** (2.0**step)
        radius = np.where(radius <= least, np.minimum(middle, least * stride), np.maximum(middle, most / stride))
    return best


@dataclass(frozen=True, eq=False)
class _Layer:
    """What no radius enters, of a layer at many inputs.

    Attributes
    ----------
    c, taylor
        Pre-activations, (rows, width), and Taylor coefficients of the activation there, the same each.
    products
        A^T A, (rows, width, width), which dominates A^T d for |d| <= 1.
    sizes
        Norms of the columns of A, (rows, width).
    at_x, for_one
        Bounds on rounding of c, and for |d| = 1 on that of A^T d, (rows, width) each.
    """

    activation: Activation
    W: Array
    c: Array
    taylor: list[Array]
    products: Array
    sizes: Array
    at_x: Array
    for_one: Array

    def activated(self, K: Array, radius: Array, reach: Array) -> Array:
        """What dominates the part of the activations that is not linear in d, (rows, width, width).

        K dominates that of the pre-activations, which change by up to ``reach`` (rows, width).
        """
        from flipopt.kernels.dominance import polynomials  # brings in numba, which takes half a second

        square, rest = radius[:, None] ** 2 * _diagonal(self.products), _diagonal(K)
        of_linear, of_rest = _shares([np.sqrt(part.sum(axis=1)) for part in (square, rest)])
        change = square * of_linear[:, None] + rest * of_rest[:, None]
        sizes = [np.sqrt(rest)] + [np.sqrt(change) ** k for k in range(2, ORDER + 1)]
        F = [np.abs(f) * size for f, size in zip(self.taylor[1:], sizes, strict=True)]
        shares = _shares([np.linalg.norm(f, axis=1) for f in F])
        F = [f * np.sqrt(share)[:, None] for f, share in zip(self.taylor[1:], shares, strict=True)]
        Y = polynomials(self.products, K, np.stack([radius**2 * of_linear, of_rest], axis=1), np.stack(F, axis=1))
        return _plus_bounded(Y, self._after(reach))

    def _after(self, reach: Array) -> Array:
        """What follows after the Taylor polynomial, and the rounding of this, (rows, width)."""
        beyond = largest(self.activation, self.c - reach, self.c + reach, ORDER + 1) * reach ** (ORDER + 1)
        rounding = np.abs(self.taylor[0])
        for k in range(1, ORDER + 1):
            rounding = rounding + largest_of_all(self.activation, k) * reach**k
        return np.asarray(beyond * OUTWARD + ROUNDING * rounding)

    def of(self, rows: Array) -> _Layer:
        """Some of the rows."""
        taylor = [f[rows] for f in self.taylor]
        arrays = (self.products, self.sizes, self.at_x, self.for_one)
        return _Layer(self.activation, self.W, self.c[rows], taylor, *(array[rows] for array in arrays))


@dataclass(frozen=True, eq=False)
class Expansion:
    """A network's expansions at inputs: its hidden layers, and the leads of the inputs' classes over all others.

    Attributes
    ----------
    leads
        Of the class i, (rows, n_classes), less their rounding; infinite for i itself.
    V
        The last layer's columns of i less those of the others, (rows, width, n_classes).
    steepness, for_one
        Norms of the gradients of the leads, and bounds on their rounding, (rows, n_classes).
    """

    layers: list[_Layer]
    leads: Array
    V: Array
    steepness: Array
    for_one: Array

    @classmethod
    def at(cls, net: DenseNetwork, X: Array) -> Expansion:
        """At X (rows, n_inputs), for a network in float64."""
        layers: list[_Layer] = []
        A, y, sizes = np.broadcast_to(first_in_span(net, 2), (len(X), *first_in_span(net, 2).shape)), X, None
        for k, activation in enumerate(net.activations):
            W, b = net.weights[k], net.biases[k]
            c, at_x = times(y, W) + b, ROUNDING * (times(np.abs(y), np.abs(W)) + np.abs(b))
            A = A if k == 0 else _times(A * layers[-1].taylor[1][:, None], W)
            products = _gram(A)
            reach = np.sqrt(_diagonal(products)) * OUTWARD
            carried = reach if sizes is None else times(sizes, np.abs(W))
            taylor = coefficients(activation, c, ORDER)
            layers.append(_Layer(activation, W, c, taylor, products, reach, at_x, ROUNDING * carried))
            y, sizes = taylor[0], np.abs(taylor[1]) * reach
        return cls._with_leads(net, layers, A, y)

    @classmethod
    def _with_leads(cls, net: DenseNetwork, layers: list[_Layer], A: Array, y: Array) -> Expansion:
        W, b, rows, slopes = net.weights[-1], net.biases[-1], np.arange(len(y)), np.abs(layers[-1].taylor[1])
        Y = times(y, W) + b
        i = Y.argmax(axis=1)
        V = W.T[i][:, :, None] - W[None]
        leads = Y[rows, i][:, None] - Y
        sizes = times(np.abs(y), np.abs(W)) + np.abs(b)
        leads = leads - ROUNDING * (sizes + sizes[rows, i][:, None])
        leads[rows, i] = np.inf
        gradients = np.matmul(A * layers[-1].taylor[1][:, None], V)
        for_one = ROUNDING * np.matmul((slopes * layers[-1].sizes)[:, None], np.abs(V))[:, 0]
        return cls(layers, leads, V, np.linalg.norm(gradients, axis=1) * OUTWARD, for_one)

    def of(self, rows: Array) -> Expansion:
        """Some of the rows."""
        return Expansion(
            [layer.of(rows) for layer in self.layers],
            *(array[rows] for array in (self.leads, self.V, self.steepness, self.for_one)),
        )

    @property
    def bent(self) -> Array:
        """A radius to start from, (rows,)."""
        shares = [(layer.sizes * _bend(layer.activation)).mean(axis=1) for layer in self.layers]
        with np.errstate(divide="ignore"):
            return np.asarray(BENT / np.max(shares, axis=0))

    def margin(self, radius: Array) -> Array:
        """A lower bound on all leads in the balls of ``radius`` (rows,), or minus infinity: (rows,)."""
        Y, fails = self._beyond_linear(radius)
        y = np.sqrt(_diagonal(Y))
        rest = (np.matmul(Y, self.V) * self.V).sum(axis=1) + ROUNDING * np.matmul(y[:, None], np.abs(self.V))[:, 0] ** 2
        loss = radius[:, None] * (self.steepness + self.for_one) + np.sqrt(np.maximum(rest, 0.0)) * OUTWARD
        return np.where(fails, -np.inf, (self.leads - loss).min(axis=1))

    def _beyond_linear(self, radius: Array) -> tuple[Array, Array]:
        """Y (rows, width, width), which dominates what is not linear in the last hidden layer's activations.

        And the rows where a ball reaches too far, (rows,).
        """
        fails, Y = np.zeros(len(radius), dtype=bool), None
        for layer in self.layers:
            K = np.zeros_like(layer.products) if Y is None else _carried(Y, layer.W)
            K = _plus_bounded(K, layer.at_x + radius[:, None] * layer.for_one)
            reach = radius[:, None] * layer.sizes + np.sqrt(_diagonal(K)) * OUTWARD
            fails = fails | ~(reach * _bend(layer.activation) < FAR).all(axis=1)
            K[fails], reach[fails] = 0.0, 0.0
            Y = layer.activated(K, np.where(fails, 0.0, radius), reach)
        assert Y is not None
        return Y, fails


def _bend(activation: Activation) -> float | Array:
    """One over the change of c over which it bends."""
    return np.asarray(1 / np.asarray(unit(activation)))


def _times(A: Array, W: Array) -> Array:
    """A W for A (rows, k, n)."""
    return times(A.reshape(-1, A.shape[2]), W).reshape(*A.shape[:2], -1)


def _gram(A: Array) -> Array:
    """A^T A with what its rounding may take off, (rows, n, n)."""
    K = np.matmul(A.transpose(0, 2, 1), A)
    return _rounded(K, np.sqrt(_diagonal(K)))


def _diagonal(K: Array) -> Array:
    """(rows, n), a view that can be written to."""
    return np.asarray(np.einsum("rii->ri", K))


def _carried(Y: Array, W: Array) -> Array:
    """W^T Y W for Y (rows, n, n), symmetric, and W (n, m)."""
    K = np.matmul(np.ascontiguousarray(W.T), np.matmul(Y, W))
    return _rounded(K, times(np.sqrt(_diagonal(Y)), np.abs(W)))


def _rounded(K: Array, sizes: Array) -> Array:
    """K, symmetric and no less than it is without rounding: its errors are at most ROUNDING sizes sizes^T."""
    K = (K + K.transpose(0, 2, 1)) / 2
    _diagonal(K)[...] += ROUNDING * sizes * sizes.sum(axis=1, keepdims=True)
    return K


def _plus_bounded(K: Array, t: Array) -> Array:
    """Of f + g, with f dominated by K, which is overwritten, and |g_j| <= t_j."""
    sizes = np.sqrt(_diagonal(K).sum(axis=1)), t.sum(axis=1)
    of_f, of_g = _shares(list(sizes))
    K *= of_f[:, None, None]
    _diagonal(K)[...] += t * (sizes[1] * of_g)[:, None]
    return K


def _shares(sizes: list[Array]) -> list[Array]:
    """Factors 1 / s of matrices that dominate what is added up: sum s = 1, s in proportion to ``sizes`` (rows,)."""
    total = np.sum(sizes, axis=0)
    return [np.where(size > 0, total / np.where(size > 0, size, 1.0), 0.0) for size in sizes]
