"""Images of a generator as people and classifiers take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.report.audit.pictures import Pictures, as_seen

NEARLY = 0.01
"""By what share of a range of pixels a generator may miss it."""


def value_range(image: Array) -> tuple[float, float]:
    """0 to 1 or -1 to 1 where the pixels of an image are within it, else the least and the largest of them."""
    low, high = float(image.min()), float(image.max())
    if high <= 1 + NEARLY and low >= -NEARLY:
        return 0.0, 1.0
    return (-1.0, 1.0) if high <= 1 + NEARLY and low >= -1 - NEARLY else (low, high)


def in_unit(images: Array, span: tuple[float, float]) -> Array:
    """Pixels of that range as ones from 0 to 1."""
    return np.asarray(np.clip((images - span[0]) / ((span[1] - span[0]) or 1.0), 0, 1))


def as_pictures(
    image_shape: tuple[int, ...], shape: Sequence[int] | None, span: tuple[float, float]
) -> Pictures | None:
    """How images of a shape are drawn; None if they are not of grey or colour pixels.

    ``shape`` says it of images that come as a row of numbers.
    """
    sides = tuple(int(side) for side in shape) if shape is not None else image_shape
    if int(np.prod(sides)) != int(np.prod(image_shape)) or (shape is not None and not drawn(sides)):
        pixels = int(np.prod(image_shape))
        raise InputError(f"shape: expected height x width[ x channels] of {pixels} pixels, found {sides}")
    return Pictures(sides, *span) if drawn(sides) else None


def drawn(sides: tuple[int, ...]) -> bool:
    """Whether these are the sides of an image of grey or colour pixels."""
    return len(sides) == 2 or (len(sides) == 3 and (sides[0] in (1, 3) or sides[2] in (1, 3)))


def as_drawn(images: Array, pictures: Pictures) -> Array:
    """Images (k, \\*image_shape), or other numbers a pixel, as (k, height, width[, 3])."""
    return as_seen(images.reshape(len(images), *pictures.shape))


def grey(values: Array, pictures: Pictures) -> Array:
    """Numbers a pixel (\\*image_shape), as their means over the channels, (height, width)."""
    drawn = as_drawn(values[None], pictures)[0]
    return drawn if drawn.ndim == 2 else np.asarray(drawn.mean(axis=2))
