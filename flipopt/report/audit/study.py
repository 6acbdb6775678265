"""What an audit looks at: a network, inputs, their flip points, and what things are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_sequence
from flipopt.common.errors import InputError
from flipopt.explain.matching import ON_BOUNDARY, as_labels
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks.points import as_points, by_position
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.problem import scale_of
from flipopt.report.audit.pictures import Pictures, as_pictures
from flipopt.results import FlipTable


@dataclass(frozen=True, eq=False)
class Given:
    """What a caller hands in, checked; arrays have an entry a row of X along their first axis.

    Attributes
    ----------
    network, X
        The classifier, and the inputs (entries, n_inputs), which may hold NaN.
    labels
        True classes (entries,), or None.
    classes, features, units
        Names of the classes, of the inputs' features and of their units, which may be empty.
    spreads
        What counts as one spread of every feature, (n_inputs,): by the weights of the distance, or by the inputs.
    options
        How distances were measured and which points were allowed: norm, weights, bounds, frozen, ...
    pictures
        Inputs and flip points as images; None if they are none.
    """

    network: Network
    X: Array
    labels: Array | None
    classes: tuple[str, ...]
    features: tuple[str, ...]
    units: tuple[str, ...]
    spreads: Array
    options: dict[str, Any]
    pictures: Pictures | None

    @classmethod
    def read(
        cls,
        network: Any,
        X: Any,
        labels: Any = None,
        images: Any = None,
        features: WaveletFeatures | None = None,
        shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        **options: Any,
    ) -> Given:
        """From the arguments of :func:`flipopt.report.write_report`."""
        net = as_network(network, X, many=True)
        points = np.atleast_2d(as_points(X, net, "X", finite=False)).astype(np.float64)
        if len(points) == 0:
            raise InputError("X: expected at least one row, found none")
        n, own = net.n_inputs, getattr(net, "class_names", None) or tuple(map(str, range(net.n_classes)))
        classes = _names(own if class_names is None else class_names, net.n_classes, "class_names")
        known = getattr(net, "feature_names", None) or _columns(X, n) or tuple(f"x{k}" for k in range(n))
        return cls(
            net,
            points,
            None if labels is None else as_labels(labels, len(points), classes, net.n_classes),
            classes,
            _names(known if feature_names is None else feature_names, n, "feature_names"),
            _names(("",) * n if units is None else units, n, "units"),
            _spreads(points, options.get("weights"), net),
            by_position(options, net),
            as_pictures(points, tuple(getattr(net, "input_shape", ())), shape, images, features),
        )

    def __len__(self) -> int:
        return len(self.X)

    @property
    def row(self) -> Array:
        """What the page calls every entry, (entries,)."""
        return np.arange(len(self))

    @cached_property
    def sound(self) -> Array:
        """Which inputs are numbers, (entries,) bool."""
        return np.asarray(np.isfinite(self.X).all(axis=1))

    @cached_property
    def probabilities(self) -> Array:
        """Softmax of every input, (entries, n_classes); NaN where it is not sound."""
        Z = np.full((len(self), self.network.n_classes), np.nan)
        if self.sound.any():
            Z[self.sound] = self.network.probabilities(self.X[self.sound])
        return Z

    @cached_property
    def predicted(self) -> Array:
        """The network's class, (entries,); -1 where an input is not sound."""
        return np.where(self.sound, np.nan_to_num(self.probabilities).argmax(axis=1), -1)

    @cached_property
    def softmax(self) -> Array:
        """Of the predicted class, (entries,)."""
        return np.where(self.sound, np.nan_to_num(self.probabilities).max(axis=1), np.nan)

    @cached_property
    def wrong(self) -> Array | None:
        """Which sound inputs have another label than the predicted class, (entries,) bool; None without labels."""
        return None if self.labels is None else (self.predicted != self.labels) & self.sound

    @property
    def truth(self) -> Any:
        """The labels as analyses of the network read them: by its own names of classes where it has them."""
        return named_by(self.network, self.labels)


@dataclass(frozen=True, eq=False)
class Study(Given):
    """An entry an input that was asked about.

    Attributes
    ----------
    flips
        The nearest flip of each, an entry each; ``flips.row`` is what the page calls the input.
    """

    flips: FlipTable

    @classmethod
    def of(cls, given: Given, flips: FlipTable) -> Study:
        """Of the rows that there are flips of."""
        nearest, X = flips.nearest(), given.X
        if len(nearest) == 0 or nearest.row.max() >= len(X) or nearest.x.shape[1] != X.shape[1]:
            raise InputError(f"flips: expected flips of rows of X, shape {X.shape}, found {len(nearest)} of others")
        looks = given.pictures
        if looks is not None and looks.base is not None:
            looks = replace(looks, base=looks.base[nearest.row])
        labels = None if given.labels is None else given.labels[nearest.row]
        names = given.classes, given.features, given.units
        return cls(given.network, X[nearest.row], labels, *names, given.spreads, given.options, looks, nearest)

    @property
    def row(self) -> Array:
        return self.flips.row

    @cached_property
    def found(self) -> Array:
        """Which have a point on the boundary, (entries,) bool."""
        there = [status in ON_BOUNDARY for status in self.flips.status]
        return np.array(there, dtype=bool) & np.isfinite(self.flips.distance) & self.sound

    @property
    def searched(self) -> bool:
        """Whether it was tried to prove that flips are the closest."""
        return bool(np.isfinite(self.flips.lower_bound).any())

    @property
    def proved(self) -> Array:
        """Which flips are proved to be the closest, to a millionth, (entries,) bool."""
        return np.asarray(self.flips.proved & self.found)

    @property
    def distance(self) -> Array:
        """To the flip, (entries,); NaN where none was found."""
        return np.where(self.found, self.flips.distance, np.nan)

    @property
    def other(self) -> Array:
        """The class beyond the flip, (entries,); -1 where none was found."""
        return np.where(self.found, self.flips.classes[:, 1], -1)

    @cached_property
    def change(self) -> Array:
        """From the input to its flip, (entries, n_inputs); 0 where there is none."""
        return np.where(self.found[:, None], self.flips.x - self.X, 0.0)

    @cached_property
    def by_distance(self) -> Array:
        """Entries with a flip, nearest first."""
        order = np.argsort(self.distance, kind="stable")
        return order[self.found[order]]

    @property
    def measure(self) -> str:
        """What a distance is, in words."""
        if self.options.get("weights") is not None:
            return "2-norm of the changes, each in spreads of its feature"
        norm = self.options.get("norm", 2)
        return {1: "1-norm of the change of the inputs", 2: "2-norm of the change of the inputs"}.get(
            norm, "largest change of an input"
        )

    @cached_property
    def numbered(self) -> FlipTable:
        """The flips with entries for rows, as analyses of X and the labels need them."""
        return replace(self.flips, row=np.arange(len(self)))

    def named(self, entries: Sequence[int] | Array) -> list[int]:
        """The row numbers of entries, as people have them."""
        return [int(self.row[k]) for k in entries]


def named_by(network: Network, labels: Array | None) -> Any:
    """Classes (rows,) by the network's own names, where it has them: 1 may be the name of class 0."""
    names = getattr(network, "class_names", None)
    return labels if labels is None or names is None else np.array(names, dtype=object)[labels]


def _names(values: Any, count: int, name: str) -> tuple[str, ...]:
    """So many names, as text."""
    names = tuple(str(value) for value in as_sequence(values, name, "names"))
    if len(names) != count:
        raise InputError(f"{name}: expected {count} names, found {len(names)}")
    return names


def _columns(X: Any, n_inputs: int) -> tuple[str, ...] | None:
    """The columns of a table, if they are names of the inputs."""
    names = tuple(str(label) for label in getattr(X, "columns", ()))
    return names if len(names) == n_inputs else None


def _spreads(X: Array, weights: Any, network: Network) -> Array:
    if weights is not None:
        return np.broadcast_to(1 / np.sqrt(as_points(weights, network, "weights")), X.shape[1])
    sound = X[np.isfinite(X).all(axis=1)]
    return np.asarray(1 / np.sqrt(scale_of(sound))) if len(sound) else np.ones(X.shape[1])
