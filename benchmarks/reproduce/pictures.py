"""What pictures of several studies have in common: figures that are written whole, images, changes of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.writing import atomic_path

BLUE, RED, QUIET = "#2166ac", "#b2182b", "0.75"
DPI, LIBRARY_DPI = 120, 150
"""Points an inch: ours, and those of flipopt.report."""
COLOURS = 256
"""Of a picture that is made smaller."""


def figure(width: float, height: float) -> Any:
    """An empty figure, sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Any, path: Path) -> None:
    """A figure as a .png, whole or not at all."""
    with atomic_path(path) as temporary:
        drawn.savefig(temporary, dpi=DPI)


def smaller(path: Path) -> None:
    """Write a drawing anew with few colours and at our size: what the library draws is made for print."""
    from PIL import Image

    with Image.open(path) as drawn:
        width, height = (round(side * DPI / LIBRARY_DPI) for side in drawn.size)
        resized = drawn.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
        reduced = resized.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
    with atomic_path(path) as temporary:
        reduced.save(temporary, optimize=True)


def show_image(axis: Any, image: ArrayLike, title: str = "") -> None:
    """Pixels (height, width, 3), uint8 or in [0, 1]; what is beyond is cut off."""
    pixels = np.asarray(image)
    axis.imshow(pixels if pixels.dtype == np.uint8 else np.clip(pixels, 0, 1))
    _bare(axis, title)


def show_change(axis: Any, change: Array, title: str = "") -> None:
    """A change of pixels (height, width, 3), the mean of its colours: blue is darker, red lighter, each at its most."""
    grey = change.mean(axis=2)
    largest = float(np.abs(grey).max()) or 1.0
    axis.imshow(grey, cmap="RdBu_r", vmin=-largest, vmax=largest)
    _bare(axis, f"{title}\n± {largest:.2g}")


def _bare(axis: Any, title: str) -> None:
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=9)
