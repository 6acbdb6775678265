"""Maps that classifiers are made of, each with its first and second derivatives, and the network of a chain of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from flipopt.common.checks import FLOATS, Array
from flipopt.common.errors import InputError
from flipopt.networks.activations import Activation
from flipopt.networks.base import BaseNetwork
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.protocol import Outputs, Pullback
from flipopt.networks.softmax import softmax, softmax_vjp, softmax_vjp_tangent


class Stage(ABC):
    """A map of rows, X (batch, inputs) to Y (batch, outputs), float64; a row of Y depends on the same row of X only."""

    @abstractmethod
    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        """Y, and the map V -> V J at X."""

    @abstractmethod
    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        """J D, and the map V -> the derivative of V J along D: the Hessian of v . y times d, row by row."""


@dataclass(frozen=True)
class Affine(Stage):
    """x W + b, for W (inputs, outputs)."""

    W: Array
    b: Array

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        return times(X, self.W) + self.b, lambda V: times(V, self.W.T)

    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        return times(D, self.W), lambda V: np.zeros(X.shape)

    def then(self, other: Affine) -> Affine:
        """Both as one."""
        return Affine(self.W @ other.W, self.b @ other.W + other.b)


@dataclass(frozen=True)
class Pointwise(Stage):
    """An activation of every entry."""

    activation: Activation

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        Y, slope = self.activation.value_and_slope(X)
        return Y, lambda V: V * slope

    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        bend = self.activation.curvature(X) * D
        return self.activation.slope(X) * D, lambda V: V * bend


@dataclass(frozen=True)
class Power(Stage):
    """c ** degree of every entry: the polynomial kernel after its affine part."""

    degree: int

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        slope = self.degree * X ** max(self.degree - 1, 0)
        return X**self.degree, lambda V: V * slope

    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        p = self.degree
        bend = p * (p - 1) * X ** max(p - 2, 0) * D
        return p * X ** max(p - 1, 0) * D, lambda V: V * bend


@dataclass(frozen=True)
class GaussianKernel(Stage):
    """exp(-gamma |x - s|^2) for every row s of ``centres`` (m, inputs)."""

    centres: Array
    gamma: float

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        K = self._values(X)
        return K, lambda V: self._pulled(V * K, X)

    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        K = self._values(X)
        dK = -2 * self.gamma * K * ((X * D).sum(axis=1, keepdims=True) - times(D, self.centres.T))

        def bend(V: Array) -> Array:
            return np.asarray(self._pulled(V * dK, X) - 2 * self.gamma * (V * K).sum(axis=1, keepdims=True) * D)

        return dK, bend

    def _values(self, X: Array) -> Array:
        return np.asarray(np.exp(-self.gamma * cdist(X, self.centres, "sqeuclidean")))

    def _pulled(self, U: Array, X: Array) -> Array:
        """-2 gamma sum_s u_s (x - s), for U (batch, m)."""
        return np.asarray(-2 * self.gamma * (U.sum(axis=1, keepdims=True) * X - times(U, self.centres)))


class Monomials(Stage):
    """Products of powers of the inputs, for ``powers`` (outputs, inputs): each is a product of ``degree`` factors that
    are inputs or 1."""

    def __init__(self, powers: Array) -> None:
        outputs, inputs = powers.shape
        degree = max(1, int(powers.sum(axis=1).max()))
        factors = np.full((outputs, degree), inputs)  # the number 1 is put behind the inputs
        for k, power in enumerate(powers):
            chosen = np.repeat(np.arange(inputs), power)
            factors[k, : len(chosen)] = chosen
        every, ones = np.arange(outputs), np.ones(outputs)
        self.picks = [csr_array((ones, (column, every)), shape=(inputs + 1, outputs)) for column in factors.T]

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        F = self._factors(X, 1.0)
        others = [_product(F, but=(f,)) for f in range(len(F))]
        return F[0] * others[0], lambda V: self._pulled([V * other for other in others])

    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        F, dF = self._factors(X, 1.0), self._factors(D, 0.0)
        every = range(len(F))
        dY = sum((dF[f] * _product(F, but=(f,)) for f in every), np.zeros_like(F[0]))
        bends = [
            sum((dF[g] * _product(F, but=(f, g)) for g in every if g != f), np.zeros_like(F[0])) for f in every
        ]  # the derivative of the product of all factors but f
        return dY, lambda V: self._pulled([V * bend for bend in bends])

    def _factors(self, X: Array, last: float) -> list[Array]:
        extended = np.column_stack([X, np.full(len(X), last)])
        return [np.asarray(extended @ pick) for pick in self.picks]

    def _pulled(self, parts: list[Array]) -> Array:
        return np.asarray(sum(part @ pick.T for part, pick in zip(parts, self.picks, strict=True)))[:, :-1]


def _product(factors: Sequence[Array], but: tuple[int, ...]) -> Array:
    kept = [factor for f, factor in enumerate(factors) if f not in but]
    return reduce(np.multiply, kept, np.ones_like(factors[0]))


class WorstDuel(Stage):
    """y_i = min over k of d_ik, from the duels d_ik = -d_ki of every pair i < k of ``classes``, in lexical order.

    Whoever wins all its duels has the only positive score, so it wins here and in a vote of the pairs alike, and at a
    tie of two such classes their own duel is 0, where the vote changes too. Only where the duels go round in a circle
    may the vote choose otherwise: here the class with the narrowest defeat wins (the minimax rule of Simpson and
    Kramer), in the vote the one of most wins, whose differences are no function with derivatives.
    """

    def __init__(self, classes: int) -> None:
        self.duel = np.full((classes, classes), -1)
        self.sign = np.ones((classes, classes))
        for p, (i, k) in enumerate(combinations(range(classes), 2)):
            self.duel[i, k] = self.duel[k, i] = p
            self.sign[k, i] = -1

    def linearize(self, X: Array) -> tuple[Array, Pullback]:
        duel, sign = self._chosen(X)

        def pullback(V: Array) -> Array:
            G, rows = np.zeros(X.shape), np.arange(len(X))
            for k in range(duel.shape[1]):  # a pair may be the worst of both of its classes
                G[rows, duel[:, k]] += V[:, k] * sign[:, k]
            return G

        return np.take_along_axis(X, duel, axis=1) * sign, pullback

    def tangent(self, X: Array, D: Array) -> tuple[Array, Pullback]:
        duel, sign = self._chosen(X)
        return np.take_along_axis(D, duel, axis=1) * sign, lambda V: np.zeros(X.shape)

    def _chosen(self, X: Array) -> tuple[Array, Array]:
        """The pair of the worst duel of each class, and 1 or -1 where the class is its first or second, (batch, k)."""
        duels = X[:, self.duel] * self.sign
        duels[:, np.arange(len(self.duel)), np.arange(len(self.duel))] = np.inf
        worst, own = duels.argmin(axis=2), np.arange(len(self.duel))
        return self.duel[own, worst], self.sign[own, worst]


class StagedNetwork(BaseNetwork):
    """The classifier whose logits are what a chain of stages makes of x. It computes in float64."""

    def __init__(self, stages: Sequence[Stage], n_inputs: int) -> None:
        self.stages, self._n_inputs = tuple(stages), n_inputs

    def __repr__(self) -> str:
        names = " > ".join(type(stage).__name__ for stage in self.stages)
        return f"StagedNetwork({self.n_inputs} inputs, {names}, {self.n_classes} classes)"

    @property
    def n_inputs(self) -> int:
        return self._n_inputs

    @cached_property
    def n_classes(self) -> int:
        return int(self._logits(np.zeros((1, self._n_inputs))).shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def astype(self, dtype: Any) -> StagedNetwork:
        """Itself: it has only float64."""
        if np.dtype(dtype) not in FLOATS:
            raise InputError(f"dtype: expected float32 or float64, found {np.dtype(dtype)}")
        if np.dtype(dtype) != self.dtype:
            raise InputError(f"dtype: this network computes in float64 only, found {np.dtype(dtype)}")
        return self

    @cached_property
    def landmarks(self) -> Array | None:
        """Inputs (m, n_inputs) that a Gaussian kernel maps to its centres, of which some are in every class; None if it
        has none. What is affine before it is undone by the shortest x."""
        for k, stage in enumerate(self.stages):
            if isinstance(stage, GaussianKernel):
                before = [other for other in self.stages[:k] if isinstance(other, Affine)]
                inverses = [(np.linalg.pinv(other.W), other.b) for other in reversed(before)]
                points = reduce(lambda S, inverse: (S - inverse[1]) @ inverse[0], inverses, stage.centres)
                return points if len(before) == k else None
        return None

    @property
    def winning(self) -> float:
        """From this score on a class is what the vote of pairs says too: it wins all its duels; -inf without a vote."""
        return 0.0 if isinstance(self.stages[-1], WorstDuel) else -np.inf

    def term_sizes(self, X: Array) -> Array:
        """What the rounding errors of the logits at X (points, n_inputs) are relative to, (points,).

        Sums of terms of either sign, such as those of a kernel machine, have the rounding errors of their largest terms
        however small they are themselves: a running bound in units in the last place, stage by stage.
        """
        Y = X.astype(np.float64)
        E = np.abs(Y)
        for stage in self.stages:
            Y, E = stage.linearize(Y)[0], _rounded(stage, Y, E)
        return np.asarray(E.max(axis=1))

    def _logits(self, X: Array) -> Array:
        return self._after(X, self.stages)

    def _embedding(self, X: Array) -> Array:
        return self._after(X, self.stages[:-1])

    def _after(self, X: Array, stages: Sequence[Stage]) -> Array:
        return reduce(lambda Y, stage: stage.linearize(Y)[0], stages, X.astype(np.float64))

    def _linearize(self, X: Array) -> tuple[Array, Pullback]:
        Y, pullbacks = X.astype(np.float64), []
        for stage in self.stages:
            Y, pullback = stage.linearize(Y)
            pullbacks.append(pullback)
        return Y, lambda V: reduce(lambda G, pullback: pullback(G), reversed(pullbacks), np.asarray(V, np.float64))

    def _hessian_product(self, X: Array, V: Array, D: Array, outputs: Outputs) -> Array:
        """The derivative of the gradient along D: tangents forward, then values and tangents back (Pearlmutter)."""
        Y, dY, kept = X.astype(np.float64), D.astype(np.float64), []
        for stage in self.stages:
            dY, bend = stage.tangent(Y, dY)
            Y, pullback = stage.linearize(Y)
            kept.append((pullback, bend))
        G, dG = V.astype(np.float64), np.zeros(V.shape)
        if outputs == "probabilities":
            Z = softmax(Y)
            G, dG = softmax_vjp(Z, G), softmax_vjp_tangent(Z, G, dY)
        for pullback, bend in reversed(kept):
            G, dG = pullback(G), pullback(dG) + bend(G)
        return dG


def _rounded(stage: Stage, X: Array, E: Array) -> Array:
    """Sizes of the rounding errors of a stage's outputs at X (batch, inputs), whose own are E, in the last place."""
    out = np.abs(stage.linearize(X)[0])
    if isinstance(stage, Affine):
        return np.asarray(times(E, abs(stage.W)) + np.abs(stage.b))
    if isinstance(stage, Power):
        return np.asarray(np.abs(stage.degree * X ** max(stage.degree - 1, 0)) * E + out)
    if isinstance(stage, Pointwise):
        return np.asarray(np.abs(stage.activation.slope(X)) * E + out)
    if isinstance(stage, GaussianKernel):  # |x|^2 - 2 x . s + |s|^2 is one of the ways to compute its exponent
        squares = (E**2).sum(axis=1)[:, None] + (stage.centres**2).sum(axis=1)
        return np.asarray(out * (1 + 2 * stage.gamma * squares))
    return np.asarray(np.maximum(out, E.max(axis=1, keepdims=True)))


def network_of(stages: Sequence[Stage], n_inputs: int) -> DenseNetwork | StagedNetwork:
    """A dense network where the stages are one: affine maps with activations between them. Else one of the stages."""
    merged: list[Stage] = []
    for stage in stages:
        if merged and isinstance(stage, Affine) and isinstance(merged[-1], Affine):
            merged[-1] = merged[-1].then(stage)
        else:
            merged.append(stage)
    affine, between = merged[::2], merged[1::2]
    layers = [stage for stage in affine if isinstance(stage, Affine)]
    arrays = [(layer.W, layer.b) for layer in layers]
    activations = [stage.activation for stage in between if isinstance(stage, Pointwise)]
    if len(layers) == len(affine) == len(between) + 1 and len(activations) == len(between):
        weights, biases = ([np.asarray(part, np.float64) for part in parts] for parts in zip(*arrays, strict=True))
        return DenseNetwork(weights, biases, activations)
    return StagedNetwork(merged, n_inputs)
