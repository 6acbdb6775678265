"""Flips of airplanes and ships (section 6.2), in groups, as changes of pixels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchmarks.reproduce.desk import Case, Desk, Images
from flipopt.common.checks import Array
from flipopt.explain import Directions, directions

LEVELS = 255
PLANE, SHIP = 0, 1


@dataclass(frozen=True, eq=False)
class Moved:
    """Images and their flips to the other of two classes.

    Attributes
    ----------
    images
        Which.
    directions
        From them to their nearest flips; its rows are those of the images that have one.
    """

    images: Images
    directions: Directions

    @property
    def pixels(self) -> Array:
        """Changes of pixels in levels, (flips, \\*shape)."""
        changes = self.directions.changes
        if len(changes) == 0:
            return np.empty((0, *self.images.images.shape[1:]))
        return np.asarray(LEVELS * self.directions.as_images(changes))

    @property
    def norms(self) -> Array:
        """Sums of the absolute changes, (flips,)."""
        return np.asarray(np.abs(self.pixels).sum(axis=(1, 2, 3)))

    @property
    def found(self) -> Images:
        """The images that have a flip."""
        return self.images.take(self.directions.row)


@dataclass(frozen=True, eq=False)
class Groups:
    """Of a network: its mistakes in the test set, by the right class and together, and right answers of both sets."""

    mistakes: Moved
    planes: Moved
    ships: Moved
    test: Moved
    train: Moved

    @property
    def by_class(self) -> tuple[tuple[str, Moved], tuple[str, Moved]]:
        return ("airplanes taken for ships", self.planes), ("ships taken for airplanes", self.ships)


def groups_of(desk: Desk, case: Case, sample: int) -> Groups:
    """Flips of all mistakes in the test set, and of so many right answers of both sets, drawn at random."""
    right, trained = (case.predicted(images) == images.labels for images in (case.test, case.train))
    parts = [
        case.test.take(np.flatnonzero(~right)),
        case.test.take(_some(np.flatnonzero(right), sample)),
        case.train.take(_some(np.flatnonzero(trained), sample)),
    ]
    images = Images(*(np.concatenate([getattr(part, of) for part in parts]) for of in ("images", "labels", "X")))
    flips = desk.flips(f"{case.name}-directions", case, images.X)
    ends = np.cumsum([0, *map(len, parts)])
    mistakes, test, train = (np.arange(low, high) for low, high in pairwise(ends))

    def moved(rows: Array) -> Moved:
        own = flips[np.isin(flips.row, rows)]
        own = replace(own, row=np.searchsorted(rows, own.row))
        return Moved(images.take(rows), directions(own, images.X[rows], features=case.features))

    planes, ships = (moved(mistakes[parts[0].labels == label]) for label in (PLANE, SHIP))
    return Groups(moved(mistakes), planes, ships, moved(test), moved(train))


def _some(rows: Array, count: int) -> Array:
    """So many of them, or all, in order."""
    return np.sort(np.random.default_rng(0).choice(rows, min(count, len(rows)), replace=False))
