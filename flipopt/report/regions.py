"""The samples of a region and the lines that join them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.regions import Connectivity

MOST_EDGES = 3000
"""Lines that are drawn; of more a part is chosen at random."""


def draw_regions(
    path: str | Path, connectivity: Connectivity, X: Array | None = None, chain: list[int] | None = None
) -> None:
    """Draw the graph of a region to ``path`` (.png, .pdf, .svg).

    Samples are where the first two principal components of X (k, n_inputs) put them, by default of the samples that
    the graph was made from, or X itself if it has two columns. Colours are those of the components, or of one component
    the number of neighbours. The least connected sample and those that are joined to all others are marked, and the
    samples of a ``chain``.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    X = connectivity.X if X is None else as_rows(X, np.shape(X)[-1] if np.ndim(X) else 0, "X")
    if X.ndim != 2 or len(X) != len(connectivity):
        raise InputError(f"X: expected {len(connectivity)} rows, a sample each, found shape {X.shape}")
    places, shown = _places(X), connectivity.n_components
    figure = Figure(figsize=(6.8, 5.4), layout="constrained")
    axis: Any = figure.subplots()
    edges = _some_edges(connectivity)
    axis.add_collection(
        LineCollection(list(places[edges]), colors="0.55", linewidths=0.4, alpha=_opacity(len(edges)), zorder=1)
    )
    values = connectivity.components if shown > 1 else connectivity.degrees
    points = axis.scatter(*places.T, c=values, cmap="tab10" if shown > 1 else "viridis", s=18, zorder=2)
    if shown == 1:
        figure.colorbar(points, label="samples joined to by a line inside", shrink=0.8)
    _mark(axis, places, connectivity, chain or [])
    words = "one component" if shown == 1 else f"{shown} components"
    axis.set_title(f"{len(X)} samples, {connectivity.share:.0%} of their lines stay inside; {words}", fontsize=10)
    axis.set(xticks=[], yticks=[])
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _places(X: Array) -> Array:
    """(k, 2): X itself if it has two columns, or its first two principal components."""
    if X.shape[1] == 2:
        return X
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    first = (U * s)[:, :2]
    return np.pad(first, ((0, 0), (0, 2 - first.shape[1])))


def _some_edges(connectivity: Connectivity) -> Array:
    """Pairs (edges, 2) that are joined, not too many."""
    pairs = np.column_stack(connectivity.adjacency.nonzero())
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    if len(pairs) <= MOST_EDGES:
        return pairs
    return np.asarray(pairs[np.random.default_rng(0).choice(len(pairs), MOST_EDGES, replace=False)])


def _opacity(edges: int) -> float:
    return float(np.clip(200 / max(edges, 1), 0.15, 0.9))


def _mark(axis: Any, places: Array, connectivity: Connectivity, chain: list[int]) -> None:
    if chain:
        axis.plot(*places[chain].T, color="#b2182b", lw=1.6, zorder=3, label=f"chain of {len(chain) - 1} lines")
    least = connectivity.least_connected
    ring = {"facecolors": "none", "s": 90, "linewidths": 1.6, "zorder": 4}
    label = f"least connected, to {connectivity.degrees[least]}"
    axis.scatter(*places[[least]].T, edgecolors="#b2182b", label=label, **ring)
    if len(connectivity.centres):
        label = f"joined to all others ({len(connectivity.centres)})"
        axis.scatter(*places[connectivity.centres].T, edgecolors="#e08214", label=label, **ring)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize=8)
