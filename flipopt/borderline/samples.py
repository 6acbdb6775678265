"""Samples that pairs are made from: what the network says of them, their labels, and which of them are of a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from flipopt.borderline.forward import forward
from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import InputError
from flipopt.explain.matching import as_labels
from flipopt.flips.faults import examined
from flipopt.flips.request import checked_class
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.runs.threads import in_order

ROWS = 512
"""Points that go to the network together: a convolution of more needs gigabytes."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples X (rows, n_inputs) with the classes that they are counted in, ``labels`` (rows,), and those that the
    network ``predicted`` (rows,), -1 for a row that is not finite, that the network fails at, or that it was not asked
    about."""

    network: Network
    X: Array
    labels: Array
    predicted: Array

    @classmethod
    def of(cls, net: Any, X: Any, labels: Any = None, name: str = "X", among: Sequence[int] | None = None) -> Samples:
        """From what a caller hands in; without labels the classes are the predicted ones.

        With labels the network is asked about samples of the classes ``among`` alone.
        """
        network = as_network(net, X, many=True)
        X = np.atleast_2d(as_points(X, network, name, finite=False))
        names = getattr(network, "class_names", None)
        truth = None if labels is None else as_labels(labels, len(X), names, network.n_classes)
        rows = np.arange(len(X)) if truth is None or among is None else np.flatnonzero(np.isin(truth, among))
        predicted = predictions(network, X, rows)
        return cls(network, X, predicted if truth is None else truth, predicted)

    @classmethod
    def between(cls, net: Any, X: Any, labels: Any, s: Any, t: Any) -> tuple[Samples, int, int]:
        """Samples for two classes, by position or name, which must be different; s must have samples."""
        network = as_network(net, X, many=True)
        s, t = (as_class(network, k, name) for k, name in ((s, "s"), (t, "t")))
        if s == t:
            raise InputError(f"t: expected another class than s, found class {t} for both")
        samples = cls.of(network, X, labels, among=(s, t))
        if len(samples.sources(s)) == 0:
            raise InputError(f"s: expected a class with samples, found {s}, which none of {len(samples)} is in")
        return samples, s, t

    @classmethod
    def both(cls, net: Any, X: Any, labels: Any, s: Any, t: Any) -> tuple[Samples, int, int]:
        """As :meth:`between`, and t must have samples that the network puts there too."""
        samples, s, t = cls.between(net, X, labels, s, t)
        if len(samples.partners(t)) == 0:
            raise InputError(
                f"t: expected a class with samples that the network puts there, found {t}, of which there is none "
                f"among {len(samples)}"
            )
        return samples, s, t

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def embedding(self) -> Array:
        """The last hidden layer at every sample, (rows, width), float64; NaN where there is none."""
        sound = np.flatnonzero(self.predicted >= 0)
        values = embedded(self.network, self.X[sound])
        E = np.full((len(self.X), values.shape[1]), np.nan)
        E[sound] = values
        return E

    def sources(self, s: int) -> Array:
        """Rows of class s, whatever the network says of them."""
        return np.flatnonzero(self.labels == s)

    def partners(self, t: int) -> Array:
        """Rows of class t that the network puts there too."""
        return np.flatnonzero((self.labels == t) & (self.predicted == t))

    def drawn(self, s: int, t: int, count: int | None, rng: np.random.Generator) -> Array:
        """Sources of class s in a random order, so many of them; the first few are the same for every count."""
        order = rng.permutation(self.sources(s))
        return order if count is None else order[: as_whole(count, "count", least=1)]


def predictions(network: Network, X: Array, rows: Array) -> Array:
    """The predicted classes of ``rows`` of X, and -1 for all others and for those that have none, (len(X),)."""
    predicted, quick = np.full(len(X), -1), forward(network)

    def asked(some: Array) -> Array:
        classes, why = examined(quick, X[some].astype(np.float64))
        return np.asarray(np.where(why == "", classes, -1))

    parts = [rows[part] for part in _blocks(len(rows))]
    predicted[rows] = np.concatenate(list(in_order(asked, parts)))
    return predicted


def embedded(network: Network, X: Array) -> Array:
    """The embedding of the rows of X, (rows, width), float64."""
    quick = forward(network)
    parts = in_order(lambda rows: quick.embedding(X[rows].astype(np.float64)), _blocks(len(X)))
    return np.concatenate(list(parts)).astype(np.float64)


def scored(network: Network, X: Array) -> Array:
    """The logits of the rows of X, (rows, n_classes), float64."""
    parts = in_order(lambda rows: network.logits(X[rows].astype(np.float64)), _blocks(len(X)))
    return np.concatenate(list(parts)).astype(np.float64)


def as_class(network: Network, value: Any, name: str) -> int:
    """A class by its position, or by its name where the network has names."""
    names = list(getattr(network, "class_names", None) or ())
    return names.index(value) if isinstance(value, str) and value in names else checked_class(network, value, name)


def pair_generator(seed: Any, s: int, t: int) -> np.random.Generator:
    """Random numbers of a pair of classes, which do not depend on the other pairs of a sweep."""
    return np.random.default_rng([as_whole(seed, "seed"), s, t])


def _blocks(rows: int) -> list[slice]:
    return [slice(first, first + ROWS) for first in range(0, rows, ROWS)] or [slice(0, 0)]
