"""Images, their flip points, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.writing import atomic_path
from flipopt.features.wavelets import WaveletFeatures
from flipopt.results import FlipResult


def draw_flips(
    path: str | Path,
    images: Array,
    features: WaveletFeatures | None,
    flips: Sequence[FlipResult],
    classes: Sequence[str],
) -> None:
    """One row an image: the image, its flip point, and the difference; written to ``path`` (.png, .pdf, .svg).

    ``images`` are (rows, \\*shape), uint8 or in [0, 1]. The coefficients that are not features stay the image's own;
    without ``features`` the flip points are pixels.
    """
    from matplotlib.figure import Figure

    pixels = images / 255 if images.dtype == np.uint8 else images
    moved = [_as_image(flip.x, image, features) for flip, image in zip(flips, pixels, strict=True)]
    largest = max(float(np.abs(after - before).max()) for after, before in zip(moved, pixels, strict=True))
    figure = Figure(figsize=(6.6, 2.1 * len(flips) + 0.3), layout="constrained")
    axes = figure.subplots(len(flips), 3, squeeze=False)
    shades: Any = None
    for row, (flip, before, after) in enumerate(zip(flips, pixels, moved, strict=True)):
        source, target = (classes[k] for k in flip.classes[:2])
        change = after - before
        grey = change if change.ndim == 2 else change.mean(axis=2)
        for axis, image in zip(axes[row], (before, np.clip(after, 0, 1)), strict=False):
            axis.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        shades = axes[row][2].imshow(grey, cmap="RdBu_r", vmin=-largest, vmax=largest)
        axes[row][0].set_ylabel(f"“{source}”", rotation=0, ha="right", va="center")
        axes[row][1].set_title(f"flips to “{target}” at {flip.distance:.3f}", fontsize=9)
    for axis, title in zip(axes[0], ("image", None, "difference"), strict=True):
        if title:
            axis.set_title(title, fontsize=9)
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
    figure.colorbar(shades, ax=axes[:, 2], shrink=0.8, label="change of pixel")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _as_image(x: Array, image: Array, features: WaveletFeatures | None) -> Array:
    return x.reshape(image.shape) if features is None else features.inverse_transform(x, image)
