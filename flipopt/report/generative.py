"""Pictures of generative regions: the tree of samples in two dimensions, and what they look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.writing import atomic_path
from flipopt.generative import Exploration

ACROSS, DOWN = 4, 4
"""Images beside the tree."""
INSIDE, OUTSIDE, QUERY = "#2166ac", "#d6604d", "#1a1a1a"


def draw_exploration(path: str | Path, exploration: Exploration) -> None:
    """The tree of GB-RRT, rejected expansions, and images of samples, the query's first; to a .png, .pdf or .svg file.

    Latent vectors of more than two numbers are shown in the first two principal components of the samples.
    """
    from matplotlib.figure import Figure

    images = _pictures(exploration.images(ACROSS * DOWN))
    figure = Figure(figsize=(10 if images is not None else 5.6, 5.2), layout="constrained")
    parts: Any = figure.subfigures(1, 2) if images is not None else [figure]
    _tree(parts[0].subplots(), exploration)
    if images is not None:
        axes = parts[1].subplots(DOWN, ACROSS)
        for axis in axes.reshape(-1):
            axis.axis("off")
        for axis, image in zip(axes.reshape(-1), images, strict=False):
            axis.imshow(image, cmap="gray", vmin=0, vmax=1)
        parts[1].suptitle("The query (first) and samples of its region", fontsize=10)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def plane(exploration: Exploration) -> tuple[Array, Array, float]:
    """Samples (k, 2) and rejected expansions (r, 2) in two dimensions, the query at 0, and the share of the samples'
    spread that is seen: of two latent numbers they are these, of more the first two principal components."""
    Z, query = exploration.accepted, exploration.region.query
    spread = Z - Z.mean(axis=0)
    if Z.shape[1] > 1 and len(Z) > 2:
        basis = np.eye(2) if Z.shape[1] == 2 else np.linalg.svd(spread, full_matrices=False)[2][:2]
    else:
        basis = np.eye(2, Z.shape[1])
    whole = float((spread**2).sum())
    shown = float(((spread @ basis.T) ** 2).sum()) / whole if whole > 0 else 1.0
    return (Z - query) @ basis.T, (exploration.rejected - query) @ basis.T, shown


def _tree(axis: Any, exploration: Exploration) -> None:
    Z = exploration.accepted
    places, out, _ = plane(exploration)
    for child, parent in enumerate(exploration.tree[1:], 1):
        axis.plot(*places[[parent, child]].T, color=INSIDE, lw=0.4, alpha=0.5)
    axis.scatter(*out.T, s=5, color=OUTSIDE, lw=0, alpha=0.5, label=f"{len(out):,} rejected")
    axis.scatter(*places.T, s=7, color=INSIDE, lw=0, label=f"{len(Z):,} accepted")
    axis.scatter(0, 0, s=50, marker="*", color=QUERY, zorder=3, label="query")
    what = "latent number" if Z.shape[1] <= 2 else "principal component of the samples"
    axis.set(xlabel=f"first {what}", ylabel=f"second {what}", aspect="equal")
    axis.set_title(
        f"Layer {exploration.region.layer.number}, {len(exploration.region.units):,} of "
        f"{exploration.region.layer.units:,} units keep their sign",
        fontsize=10,
    )
    axis.legend(frameon=False, fontsize=8)


def _pictures(images: Array) -> Array | None:
    """Images from 0 to 1 as (images, height, width) or (images, height, width, 3); None if they are no images."""
    if images.ndim == 4 and images.shape[1] in (1, 3):
        images = images[:, 0] if images.shape[1] == 1 else images.transpose(0, 2, 3, 1)
    elif images.ndim != 3:
        return None
    low, high = (-1.0, 1.0) if images.min() < 0 else (0.0, 1.0)
    return np.clip((images - low) / (high - low), 0, 1)
