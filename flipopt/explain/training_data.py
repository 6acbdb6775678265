"""Which training points shape a network, and flip points as further ones (002, sections 5 and 6.1).

What is saved here is what ``python -m models train NAME --subset FILE`` and ``--extra FILE`` take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_whole, one_of
from flipopt.common.errors import InputError, StorageError
from flipopt.common.files import write_npz
from flipopt.explain.matching import as_labels, counted, left_out, nearest, percent
from flipopt.networks.protocol import Network
from flipopt.results import FlipTable

SUBSETS = ("nearest", "farthest", "random", "mistakes")


@dataclass(frozen=True, eq=False)
class Influence:
    """Subsets of training data to train on, and so to see which of it matters.

    Attributes
    ----------
    nearest, farthest
        Rows whose flips are the nearest and the farthest, as many of each, in the order of rows.
    random
        As many rows at random, of every true class as many as in ``nearest``.
    mistakes
        Rows that the network gets wrong.
    reach
        Largest distance to a flip in ``nearest``.
    labels
        True classes of all training data, (rows,).
    known
        Rows that have a flip: subsets are chosen among them.
    without_flip
        Rows that are in no subset because no flip is known.
    """

    nearest: Array = field(repr=False)
    farthest: Array = field(repr=False)
    random: Array = field(repr=False)
    mistakes: Array = field(repr=False)
    reach: float
    labels: Array = field(repr=False)
    known: int
    without_flip: int

    def save(self, folder: str | Path) -> list[Path]:
        """Write nearest.npz, farthest.npz, random.npz and mistakes.npz to a folder; a subset without rows has no file.

        A file holds the ``rows``, their ``labels`` and how many rows the data have, ``of``.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{folder}: cannot be made: {error.strerror or error}") from error
        written = []
        for name in SUBSETS:
            rows = getattr(self, name)
            if len(rows):
                written.append(folder / f"{name}.npz")
                write_npz(written[-1], {"rows": rows, "labels": self.labels[rows], "of": np.array(len(self.labels))})
        return written

    def summary(self) -> str:
        """In plain words."""
        share = len(self.nearest) / max(self.known, 1)
        return (
            f"The {counted(len(self.nearest), 'input')} nearest to a flip ({percent(share)} of "
            f"{self.known:,}) are within {self.reach:.3g} of one; as many are the farthest, and as many random "
            f"ones of the same classes. {counted(len(self.mistakes), 'mistake')}.{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def influence(
    flips: FlipTable,
    labels: ArrayLike,
    net: Network | None = None,
    share: float = 0.15,
    radius: float | None = None,
    seed: int = 0,
) -> Influence:
    """Subsets of training data by their distance to a flip, to train networks on and compare.

    Parameters
    ----------
    flips
        Flips of training data from the predicted class; of several of a row the nearest counts.
    labels
        True classes of all training data, (rows,): positions, or names that ``net`` knows.
    net
        The network, for the names of its classes alone.
    share
        How much of what has a flip is taken.
    radius
        In its place: everything within this distance of a flip.
    seed
        Decides the random subset.
    """
    truth = as_labels(labels, None, getattr(net, "class_names", None), None if net is None else net.n_classes)
    found, missing = nearest(flips, len(truth), "labels")
    order = found.row[np.argsort(found.distance, kind="stable")]
    if radius is None:
        if not 0 < as_number(share, "share") <= 1:
            raise InputError(f"share: expected a number above 0 and up to 1, found {share:g}")
        size = min(len(order), max(1, round(share * len(order))))
    else:
        size = int((found.distance <= as_number(radius, "radius", least=0.0)).sum())
    near = np.sort(order[:size])
    rng = np.random.default_rng(as_whole(seed, "seed"))
    return Influence(
        near,
        np.sort(order[len(order) - size :]),
        _alike(near, found.row, truth, rng),
        found.row[found.classes[:, 0] != truth[found.row]],
        float(np.sort(found.distance)[size - 1]) if size else 0.0,
        truth,
        len(found),
        missing,
    )


def _alike(subset: Array, rows: Array, labels: Array, rng: np.random.Generator) -> Array:
    """Rows at random, of every class as many as in ``subset``."""
    classes, counts = np.unique(labels[subset], return_counts=True)
    drawn = [
        rng.choice(rows[labels[rows] == k], count, replace=False) for k, count in zip(classes, counts, strict=True)
    ]
    return np.sort(np.concatenate([*drawn, np.empty(0, dtype=np.int64)]))


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Flip points as training points.

    Attributes
    ----------
    X, labels
        The points, (points, n_inputs), and their classes, (points,).
    row
        The input that each is the flip of, (points,).
    without_flip
        Rows that were left out because no flip is known.
    """

    X: Array = field(repr=False)
    labels: Array = field(repr=False)
    row: Array = field(repr=False)
    without_flip: int

    def save(self, path: str | Path) -> None:
        """Write ``X`` and ``labels`` to an npz file."""
        write_npz(path, {"X": self.X, "labels": self.labels})

    def summary(self) -> str:
        """In plain words."""
        classes = len(np.unique(self.labels))
        return (
            f"{counted(len(self.X), 'flip point')} as training points of {counted(classes, 'class', 'classes')}."
            f"{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def synthetic(
    flips: FlipTable,
    labels: ArrayLike,
    which: Literal["mistakes", "right", "all"] = "mistakes",
    label: Literal["corrected", "kept"] = "corrected",
    net: Network | None = None,
) -> Synthetic:
    """The nearest flips of inputs as further training points, which move the boundary when a network is trained again.

    Parameters
    ----------
    flips
        Flips of inputs from the predicted class; of several of a row the nearest counts.
    labels
        True classes of all inputs, (rows,): positions, or names that ``net`` knows.
    which
        The flips of "mistakes", of inputs that are "right", or of "all".
    label
        "corrected": a flip has the true class of its input. "kept": it has the predicted one, which for inputs that are
        right is the same, and which for mistakes cements them, as somebody with bad intentions might.
    net
        The network, for the names of its classes alone.
    """
    one_of(which, ("mistakes", "right", "all"), "which")
    one_of(label, ("corrected", "kept"), "label")
    truth = as_labels(labels, None, getattr(net, "class_names", None), None if net is None else net.n_classes)
    found, missing = nearest(flips, len(truth), "labels")
    predicted, own = found.classes[:, 0], truth[found.row]
    chosen = {"mistakes": predicted != own, "right": predicted == own, "all": np.ones(len(found), dtype=bool)}[which]
    classes = own if label == "corrected" else predicted
    return Synthetic(found.x[chosen], classes[chosen], found.row[chosen], missing)
