"""Samples that pairs are made from: what the network says of them, their labels, and which of them are of a class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import InputError
from flipopt.explain.matching import as_labels
from flipopt.flips.faults import examined
from flipopt.flips.request import checked_class
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network

ROWS = 512
"""Points that go to the network together: a convolution of more needs gigabytes."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples X (rows, n_inputs) with the classes that they are counted in, ``labels`` (rows,), and those that the
    network ``predicted`` (rows,), -1 for a row that is not finite or that the network fails at."""

    network: Network
    X: Array
    labels: Array
    predicted: Array

    @classmethod
    def of(cls, net: Any, X: Any, labels: Any = None, name: str = "X") -> Samples:
        """From what a caller hands in; without labels the classes are the predicted ones."""
        network = as_network(net, X, many=True)
        X = np.atleast_2d(as_points(X, network, name, finite=False))
        names = getattr(network, "class_names", None)
        truth = None if labels is None else as_labels(labels, len(X), names, network.n_classes)
        parts = [examined(network, X[rows].astype(np.float64)) for rows in _blocks(len(X))]
        classes, why = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        predicted = np.where(why == "", classes, -1)
        return cls(network, X, predicted if truth is None else truth, predicted)

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def embedding(self) -> Array:
        """The last hidden layer at every sample, (rows, width), float64; NaN where there is none."""
        sound = np.flatnonzero(self.predicted >= 0)
        parts = [embedded(self.network, self.X[sound])]
        E = np.full((len(self.X), parts[0].shape[1]), np.nan)
        E[sound] = parts[0]
        return E

    def pair(self, s: Any, t: Any) -> tuple[int, int]:
        """Two different classes by position or name, of which s must have samples."""
        s, t = (as_class(self.network, k, name) for k, name in ((s, "s"), (t, "t")))
        if s == t:
            raise InputError(f"t: expected another class than s, found class {t} for both")
        if len(self.sources(s)) == 0:
            raise InputError(f"s: expected a class with samples, found {s}, which none of {len(self)} is in")
        return s, t

    def sampled_pair(self, s: Any, t: Any) -> tuple[int, int]:
        """As :meth:`pair`, and t must have samples that the network puts there too."""
        s, t = self.pair(s, t)
        if len(self.partners(t)) == 0:
            raise InputError(
                f"t: expected a class with samples that the network puts there, found {t}, of which there is none "
                f"among {len(self)}"
            )
        return s, t

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


def embedded(network: Network, X: Array) -> Array:
    """The embedding of the rows of X, (rows, width), float64."""
    parts = [network.embedding(X[rows].astype(np.float64)) for rows in _blocks(len(X))]
    return np.concatenate(parts).astype(np.float64)


def scored(network: Network, X: Array) -> Array:
    """The logits of the rows of X, (rows, n_classes), float64."""
    parts = [network.logits(X[rows].astype(np.float64)) for rows in _blocks(len(X))]
    return np.concatenate(parts).astype(np.float64)


def as_class(network: Network, value: Any, name: str) -> int:
    """A class by its position, or by its name where the network has names."""
    names = list(getattr(network, "class_names", None) or ())
    return names.index(value) if isinstance(value, str) and value in names else checked_class(network, value, name)


def pair_generator(seed: Any, s: int, t: int) -> np.random.Generator:
    """Random numbers of a pair of classes, which do not depend on the other pairs of a sweep."""
    return np.random.default_rng([as_whole(seed, "seed"), s, t])


def _blocks(rows: int) -> list[slice]:
    return [slice(first, first + ROWS) for first in range(0, rows, ROWS)] or [slice(0, 0)]
