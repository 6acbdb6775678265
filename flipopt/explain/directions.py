"""Which features, and which combinations of them, flip decisions: the directions to flips (002, sections 4 and 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from flipopt.common.checks import Array, as_floats, as_number, as_whole, one_of
from flipopt.common.errors import InputError
from flipopt.explain.matching import as_rows_like, counted, left_out, nearest, percent
from flipopt.features.wavelets import WaveletFeatures
from flipopt.results import FlipTable
from flipopt.runs.threads import blocks

Method = Literal["pca", "qr"]
ROWS = 1024
"""Changes that are turned into images together, so that memory stays flat."""
SHARES = (0.9, 0.95, 0.99)
"""Of the squared changes, for which components are counted."""


@dataclass(frozen=True, eq=False)
class Directions:
    """The changes that lead to flips, and the few directions that make up most of them.

    Attributes
    ----------
    method
        "pca" or "qr".
    row, changes
        Rows of X with a flip, (rows,), and x_hat - x of each, (rows, n), in units of ``scale``.
    values
        "pca": singular values of the matrix of changes. "qr": the diagonal of R, without signs. Largest first.
    share
        Of the squared changes that each component explains beyond those before it; they add up to 1.
    components
        A direction of unit length a row, (k, n): singular vectors, their largest entry positive, or with "qr" the
        features in the order in which they were chosen.
    order
        Indices of the features (n,), the most important first: by the size of their changes, or with "qr" in the order
        of the pivots, each the feature whose change is least explained by the features before it.
    rank, condition
        Singular values above ``tolerance`` times the largest one, and the largest over the smallest of all (infinite if
        that is 0).
    mean, largest
        The mean change of each feature and its largest absolute one, (n,).
    never
        Features, (k,) indices, whose changes are all below ``negligible`` times the largest change of any feature.
    sparsity
        Share of the entries of ``changes`` that are.
    tolerance, negligible, unit, centred, scale
        As they were given.
    features
        The map to pixels, or the shape of images; None if there is none.
    without_flip
        Rows that were left out because no flip is known, and those at a distance of 0, which have no direction.
    """

    method: Method
    row: Array = field(repr=False)
    changes: Array = field(repr=False)
    values: Array = field(repr=False)
    share: Array = field(repr=False)
    components: Array = field(repr=False)
    order: Array = field(repr=False)
    rank: int
    condition: float
    mean: Array = field(repr=False)
    largest: Array = field(repr=False)
    never: Array = field(repr=False)
    sparsity: float
    tolerance: float
    negligible: float
    unit: bool
    centred: bool
    scale: Array = field(repr=False)
    features: WaveletFeatures | tuple[int, ...] | None = field(repr=False)
    without_flip: int

    def needed(self, share: float) -> int:
        """The number of components that explain so much of the squared changes."""
        return int(np.searchsorted(np.cumsum(self.share), as_number(share, "share", least=0.0) - 1e-12)) + 1

    def images(self, count: int = 3) -> Array:
        """The first components as changes of pixels, (count, \\*shape); needs ``features``."""
        return self.as_images(self.components[: as_whole(count, "count")])

    def as_images(self, changes: Array) -> Array:
        """Changes (k, n) as changes of pixels, (k, \\*shape): the linear part of the map from features."""
        changes = changes * self.scale
        if isinstance(self.features, WaveletFeatures):
            return self.features.inverse_transform(changes)
        if self.features is None:
            raise InputError("features: expected WaveletFeatures or the shape of images, found none")
        return changes.reshape(len(changes), *self.features)

    def unchanged_pixels(self) -> Array:
        """Pixels no flip changes by more than ``negligible`` times the largest change of any: a mask (\\*shape)."""
        some = blocks(len(self.changes), most=ROWS)
        largest = np.max([np.abs(self.as_images(self.changes[part])).max(axis=0, initial=0.0) for part in some], axis=0)
        return np.asarray(largest <= self.negligible * largest.max())

    def summary(self) -> str:
        """In plain words."""
        if len(self.row) == 0:
            return f"No flips: which features matter cannot be said.{left_out(self.without_flip)}"
        n = len(self.largest)
        needed, shares = (_listed([f(share) for share in SHARES]) for f in (lambda p: str(self.needed(p)), percent))
        what = "directions" if self.method == "pca" else "features"
        return (
            f"Of {n} features {len(self.never)} never matter (no change above {self.negligible:g} of the largest). "
            f"The changes that flip {counted(len(self.row), 'input')} have rank {self.rank} of "
            f"{min(n, len(self.row))}; {needed} {what} make up {shares} of their squares."
            f"{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def directions(
    flips: FlipTable,
    X: ArrayLike,
    features: WaveletFeatures | tuple[int, ...] | None = None,
    method: Method = "pca",
    of: int | None = None,
    *,
    unit: bool = False,
    centred: bool = False,
    scale: ArrayLike | None = None,
    tolerance: float = 1e-6,
    negligible: float = 1e-3,
) -> Directions:
    """The directions from inputs to their nearest flips: their rank, and the few that make up most of them.

    Parameters
    ----------
    flips, X
        Flip points of rows of X (rows, n); of several of a row the nearest counts.
    features
        The map from images to features, or the shape of images, by which directions are shown as images.
    method
        "pca": singular vectors of the matrix of changes. "qr": features, chosen by its pivoted QR factorisation.
    of
        A class: only flips from it.
    unit
        Whether all changes count alike, whatever their length. By default far flips weigh more.
    centred
        Whether the mean change is taken off first, as in textbooks on PCA. By default it is not: it is a direction that
        flips decisions too, for one side of a plane the only one.
    scale
        What counts as one unit of each feature, (n,), for features in different units.
    tolerance
        Below which singular values are as good as 0, relative to the largest. The default is the accuracy to which
        flip points are verified.
    negligible
        Below which changes are as good as none, relative to the largest.
    """
    one_of(method, ("pca", "qr"), "method")
    points = as_rows_like(X, flips)
    n = points.shape[1]
    units, tolerance = _scale(scale, n), as_number(tolerance, "tolerance", least=0.0)
    if of is not None:
        flips = flips[flips.classes[:, 0] == as_whole(of, "of")]
    found, missing = nearest(flips, len(points), "X")
    row, D = _changes(found, points, units, unit)
    mean, largest = (D.mean(axis=0) if len(D) else np.zeros(n)), np.abs(D).max(axis=0, initial=0.0)
    R = _triangle(D - mean if centred else D)
    singular = np.linalg.svd(R, compute_uv=False)
    values, share, components, order = _pca(R, largest) if method == "pca" else _pivots(R)
    least = as_number(negligible, "negligible", least=0.0) * largest.max(initial=0.0)
    return Directions(
        method=method,
        row=row,
        changes=D,
        values=values,
        share=share,
        components=components,
        order=order,
        rank=int((singular > tolerance * singular.max(initial=0.0)).sum()),
        condition=_condition(singular),
        mean=mean,
        largest=largest,
        never=np.flatnonzero(largest <= least),
        sparsity=float((np.abs(D) <= least).mean()) if D.size else np.nan,
        tolerance=tolerance,
        negligible=negligible,
        unit=unit,
        centred=centred,
        scale=units,
        features=_map(features, n),
        without_flip=missing + len(found) - len(row),
    )


def directions_by_class(flips: FlipTable, X: ArrayLike, **options: Any) -> dict[int, Directions]:
    """The directions of flips from each class that there are any of; ``options`` are those of :func:`directions`."""
    found, _ = nearest(flips, len(as_rows_like(X, flips)), "X")
    return {int(k): directions(flips, X, of=int(k), **options) for k in np.unique(found.classes[:, 0])}


def _changes(flips: FlipTable, X: Array, scale: Array, unit: bool) -> tuple[Array, Array]:
    """Rows of X with a flip that is not x itself, and the changes that lead to it, in units of ``scale``."""
    D = (flips.x - X[flips.row]) / scale
    lengths = np.linalg.norm(D, axis=1)
    moved = np.isfinite(lengths) & (lengths > 0)
    D = D[moved]
    return flips.row[moved], D / lengths[moved, None] if unit else D


def _triangle(D: Array) -> Array:
    """A matrix with the inner products of D's columns and no more rows than columns: R of its QR factorisation."""
    rows, n = D.shape
    return np.asarray(linalg.qr(D, mode="r", check_finite=False)[0][:n]) if rows > n else D


def _pca(R: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    """Singular values, shares explained, singular vectors as rows, and features by their largest change."""
    _, values, V = np.linalg.svd(R, full_matrices=False)
    most = np.abs(V).argmax(axis=1, keepdims=True) if len(V) else np.empty((0, 1), dtype=int)
    V = V * np.where(np.take_along_axis(V, most, axis=1) < 0, -1.0, 1.0)
    return values, _normalised(values**2), V, np.argsort(-weight, kind="stable")


def _pivots(D: Array) -> tuple[Array, Array, Array, Array]:
    """|diag R|, shares explained, chosen features as unit vectors, and all features in the order of the pivots.

    What k columns leave unexplained are the rows of R after the k-th, so that row k is what the k-th explains.
    """
    if len(D) == 0:
        return np.empty(0), np.empty(0), np.empty((0, D.shape[1])), np.arange(D.shape[1])
    R, order = linalg.qr(D, mode="r", pivoting=True, check_finite=False)
    R = R[: min(D.shape)]
    return np.abs(np.diag(R)), _normalised((R**2).sum(axis=1)), np.eye(D.shape[1])[order[: len(R)]], np.asarray(order)


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _normalised(squares: Array) -> Array:
    total = squares.sum()
    return np.asarray(squares / total) if total > 0 else np.zeros_like(squares)


def _condition(values: Array) -> float:
    if len(values) == 0:
        return float("nan")
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")


def _scale(scale: ArrayLike | None, n: int) -> Array:
    array = as_floats(1.0 if scale is None else scale, "scale").astype(np.float64)
    if array.shape not in ((), (n,)) or not (array > 0).all():
        raise InputError(f"scale: expected {n} positive numbers, found shape {array.shape} and least {array.min():g}")
    return np.broadcast_to(array, (n,)).copy()


def _map(features: Any, n: int) -> WaveletFeatures | tuple[int, ...] | None:
    if features is None:
        return None
    if isinstance(features, WaveletFeatures):
        shape: tuple[int, ...] = (features.n_features,)
    elif isinstance(features, tuple | list) and all(isinstance(side, int | np.integer) for side in features):
        shape = features = tuple(int(side) for side in features)
    else:
        raise InputError(f"features: expected WaveletFeatures or a shape, found {type(features).__name__}")
    if int(np.prod(shape)) != n:
        raise InputError(f"features: expected {n} of them, as the flips have, found {int(np.prod(shape))}")
    return features  # type: ignore[no-any-return]
