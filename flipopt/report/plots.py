"""Plots of flip points: of one, with what changed and what the network says on the way, and of many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_point, as_rows
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks.wrapping import as_network
from flipopt.paths import Line
from flipopt.report.audit.pictures import Pictures, as_pictures
from flipopt.results import FlipResult, FlipTable

MOST_FEATURES, MOST_IMAGES, MOST_CLASSES = 12, 6, 30
BEYOND = 0.5


def plot_flip(
    flip: FlipResult,
    path: str | Path | None = None,
    *,
    x: ArrayLike | None = None,
    network: Any = None,
    shape: Sequence[int] | None = None,
    image: ArrayLike | None = None,
    features: WaveletFeatures | None = None,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    spreads: ArrayLike | None = None,
) -> Any:
    """A flip point as a matplotlib figure, written to ``path`` if one is given.

    Parameters
    ----------
    flip, path
        The result, and a .png, .pdf or .svg file.
    x
        The input, (n_inputs,); without it only the point itself is drawn.
    network
        With it the probabilities of the two classes on the line from x to the flip, and half as far again, are drawn.
    shape, image, features
        For images: the shape of inputs that are pixels, or for a network on wavelet coefficients its ``features`` and
        the ``image`` of x.
    names, classes
        Of the features and of the classes.
    spreads
        What counts as one spread of each feature, (n_inputs,): 1 / sqrt(weights) of a weighted distance.
    """
    n = len(flip.x)
    start = None if x is None else as_point(np.asarray(x).reshape(-1), n, "x")
    known = np.stack([flip.x] if start is None else [start, flip.x])
    base = None if image is None else np.repeat(np.asarray(image)[None], len(known), axis=0)
    looks = as_pictures(known, (), shape, base, features)
    parts = 1 if looks is None else 3 if start is not None else 1
    line = start is not None and network is not None
    figure = _figure(3.0 * (parts if looks else 1.6) + (4.2 if line else 0), 3.2)
    axes = figure.subplots(1, parts + line, squeeze=False, width_ratios=[1.0 if looks else 1.6] * parts + [1.5] * line)[
        0
    ]
    if looks is not None:
        _draw_images(axes, looks, known)
    else:
        _draw_changes(axes[0], flip, start, names, spreads)
    if line and start is not None:
        _draw_line(axes[-1], flip, start, network, classes)
    figure.suptitle(_title(flip, classes), fontsize=10)
    return _written(figure, path)


def plot_flips(
    flips: FlipTable,
    path: str | Path | None = None,
    *,
    X: ArrayLike | None = None,
    shape: Sequence[int] | None = None,
    images: ArrayLike | None = None,
    features: WaveletFeatures | None = None,
    classes: Sequence[str] | None = None,
) -> Any:
    """The distances of many flips by class, and which classes they lead to, as a matplotlib figure.

    With the inputs X (rows, n_inputs) that the flips are of, and their ``shape`` (or ``features`` and ``images``), the
    nearest are drawn as images: input, flip and difference.
    """
    nearest = flips.nearest()
    found = nearest[np.isfinite(nearest.distance)]
    points = None if X is None else np.atleast_2d(as_rows(X, flips.x.shape[1], "X"))
    if points is not None and len(found) and found.row.max() >= len(points):
        raise InputError(f"X: expected all {found.row.max() + 1} rows that the flips are of, found {len(points)}")
    looks = None if points is None else as_pictures(points, (), shape, images, features)
    if looks is None or points is None:
        figure = _figure(11, 4)
        left, right = figure.subplots(1, 2)
        _draw_distances(left, found, classes)
        _draw_matrix(right, found, classes)
        return _written(figure, path)
    first = found[np.argsort(found.distance, kind="stable")[:MOST_IMAGES]]
    figure = _figure(6.6, 2.1 * max(1, len(first)) + 0.3)
    axes = figure.subplots(max(1, len(first)), 3, squeeze=False)
    for k in range(len(first)):
        _draw_images(axes[k], looks, np.stack([points[first.row[k]], first.x[k]]), int(first.row[k]))
        i, j = (_class(int(c), classes) for c in first.classes[k])
        axes[k][1].set_title(f"“{i}” to “{j}” at {first.distance[k]:.3g}", fontsize=9)
        axes[k][0].set_ylabel(f"row {first.row[k]}", fontsize=9)
    return _written(figure, path)


def _figure(width: float, height: float) -> Any:
    return _displayed()(figsize=(width, height), layout="constrained")


@cache
def _displayed() -> Any:
    """A figure that notebooks show by itself: matplotlib's do only once its own way of plotting has been set up."""
    from matplotlib.figure import Figure

    class Displayed(Figure):
        def _repr_png_(self) -> bytes:
            content = BytesIO()
            self.savefig(content, format="png", dpi=100)
            return content.getvalue()

    return Displayed


def _written(figure: Any, path: str | Path | None) -> Any:
    if path is not None:
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=150)
    return figure


def _class(k: int, classes: Sequence[str] | None) -> str:
    return str(k) if classes is None else str(classes[k])


def _title(flip: FlipResult, classes: Sequence[str] | None) -> str:
    names = " and ".join(f"“{_class(k, classes)}”" for k in flip.classes)
    return f"{names} tie at {flip.distance:.4g}: {flip.status.message}"


def _draw_images(axes: Any, looks: Pictures, points: Array, row: int = 0) -> None:
    """The point, or input, flip and difference."""
    images = looks.images(points, [row] * len(points))
    for axis, image, title in zip(axes, images, ("input", "flip") if len(images) > 1 else ("flip",), strict=False):
        axis.imshow(np.clip(image, looks.low, looks.high), cmap="gray", vmin=looks.low, vmax=looks.high)
        axis.set_title(title, fontsize=9)
    if len(images) > 1:
        change = images[1] - images[0]
        grey = change if change.ndim == 2 else change.mean(axis=2)
        largest = float(np.abs(grey).max()) or 1.0
        axes[2].imshow(grey, cmap="RdBu_r", vmin=-largest, vmax=largest)
        axes[2].set_title(f"difference, ± {largest:.2g}", fontsize=9)
    for axis in axes[: len(images) + (len(images) > 1)]:
        axis.set_xticks([])
        axis.set_yticks([])


def _draw_changes(
    axis: Any, flip: FlipResult, start: Array | None, names: Sequence[str] | None, spreads: ArrayLike | None
) -> None:
    """The features that change most, or without the input the largest of the point, as bars."""
    values = (flip.x if start is None else flip.x - start) / (1.0 if spreads is None else np.asarray(spreads))
    top = np.argsort(-np.abs(values), kind="stable")[:MOST_FEATURES][::-1]
    labels = [f"x{k}" if names is None else str(names[k]) for k in top]
    axis.barh(range(len(top)), values[top], color=["#c0392b" if values[k] > 0 else "#2e6da4" for k in top])
    axis.set_yticks(range(len(top)), labels, fontsize=8)
    axis.axvline(0, color="0.4", lw=0.8)
    unit = "" if spreads is None else ", in spreads"
    axis.set_xlabel(f"{'value at the flip' if start is None else 'change'}{unit}", fontsize=9)


def _draw_line(axis: Any, flip: FlipResult, start: Array, network: Any, classes: Sequence[str] | None) -> None:
    line = Line(as_network(network, start), start, flip.x, beyond=BEYOND)
    along, Z = line.alphas(81), line.probabilities(81)
    kept = along >= 0
    for k in flip.classes[:2]:
        axis.plot(along[kept] * flip.distance, Z[kept, k], label=f"“{_class(k, classes)}”")
    axis.axvline(flip.distance, color="0.4", ls="--", lw=0.8)
    axis.set_xlabel("distance from the input", fontsize=9)
    axis.set_ylabel("probability", fontsize=9)
    axis.set_ylim(-0.02, 1.02)
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)


def _draw_distances(axis: Any, found: FlipTable, classes: Sequence[str] | None) -> None:
    """Box plots of the distances by the class that the inputs have."""
    kinds = np.unique(found.classes[:, 0])[:MOST_CLASSES]
    axis.set_xlabel("distance to the nearest flip")
    if len(kinds) == 0:
        axis.set_title("no flip points")
        return
    groups = [found.distance[found.classes[:, 0] == k] for k in kinds]
    axis.boxplot(groups, orientation="horizontal", whis=(5, 95), showfliers=False, widths=0.6)
    axis.set_yticks(range(1, len(kinds) + 1), [_class(int(k), classes) for k in kinds], fontsize=8)
    axis.invert_yaxis()
    axis.grid(alpha=0.3, axis="x")
    axis.set_title(f"{len(found)} flips; boxes by class, whiskers at 5 and 95%", fontsize=10)


def _draw_matrix(axis: Any, found: FlipTable, classes: Sequence[str] | None) -> None:
    """How many inputs of class i flip to class j first."""
    kinds = np.unique(found.classes)[:MOST_CLASSES]
    if len(kinds) == 0:
        axis.axis("off")
        return
    counts = np.array([[((found.classes == (i, j)).all(axis=1)).sum() for j in kinds] for i in kinds])
    axis.imshow(counts, cmap="Blues")
    labels = [_class(int(k), classes) for k in kinds]
    axis.set_xticks(range(len(kinds)), labels, fontsize=8, rotation=45 if max(map(len, labels)) > 3 else 0)
    axis.set_yticks(range(len(kinds)), labels, fontsize=8)
    for i, j in np.argwhere(counts > 0):
        axis.text(
            j,
            i,
            counts[i, j],
            ha="center",
            va="center",
            fontsize=8,
            color="white" if counts[i, j] > 0.6 * counts.max() else "black",
        )
    axis.set(xlabel="class beyond the flip", ylabel="class of the input")
    axis.set_title("where the nearest flips lead", fontsize=10)
