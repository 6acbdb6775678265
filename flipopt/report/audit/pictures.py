"""Inputs, flip points and their difference as small pictures within a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.features.wavelets import WaveletFeatures

LONGEST_SIDE = 64
"""Pixels of a picture's longer side; larger images are thinned out."""
GAP = 1
"""Pixels between images of a sheet, which are clear."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """How inputs of a network look.

    Attributes
    ----------
    shape
        Of one image as the inputs hold it: (height, width), (height, width, channels) or (channels, height, width).
    low, high
        Values that are drawn black and white.
    features
        The map to pixels of a network on wavelet coefficients; None if the inputs are pixels.
    base
        The images (entries, \\*shape) in [0, 1] whose other coefficients the features go with; None: they are 0.
    """

    shape: tuple[int, ...]
    low: float = 0.0
    high: float = 1.0
    features: WaveletFeatures | None = None
    base: Array | None = None

    def images(self, X: Array, entries: Sequence[int] | Array) -> Array:
        """Pixels of points X (k, n_inputs) that belong to ``entries`` (k,): (k, height, width[, 3])."""
        if self.features is not None:
            images = self.features.inverse_transform(X, None if self.base is None else self.base[np.asarray(entries)])
            return np.asarray(images)
        return as_seen(X.reshape(-1, *self.shape))

    def changes(self, D: Array) -> Array:
        """The pixels of changes D (k, n_inputs), (k, height, width[, 3]): the map to pixels is linear."""
        if self.features is not None:
            return np.asarray(self.features.inverse_transform(D))
        return as_seen(D.reshape(-1, *self.shape))

    def png(self, image: Array) -> str:
        """An image (height, width[, 3]) as a data URI."""
        return _uri(self._bytes(image))

    def sheet(self, images: Array, columns: int) -> str:
        """Images (k, height, width[, 3]) in rows of so many, the last one filled up with nothing, as a data URI."""
        tiles = np.stack([self._bytes(image) for image in images])
        height, width = tiles.shape[1:3]
        rows = -(-len(tiles) // columns)
        pixels = np.zeros((rows * columns, height + GAP, width + GAP, 4), dtype=np.uint8)
        pixels[: len(tiles), :height, :width, :3] = tiles if tiles.ndim == 4 else tiles[..., None]
        pixels[: len(tiles), :height, :width, 3] = 255
        square = pixels.reshape(rows, columns, height + GAP, width + GAP, 4).swapaxes(1, 2)
        return _uri(square.reshape(rows * (height + GAP), -1, 4)[:-GAP, :-GAP])

    def _bytes(self, image: Array) -> Array:
        scaled = np.clip((image - self.low) / ((self.high - self.low) or 1.0), 0, 1)
        return np.round(255 * _thinned(scaled)).astype(np.uint8)


def as_seen(images: Array) -> Array:
    """Channels last and one channel left out: (k, height, width) or (k, height, width, 3)."""
    if images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[3] not in (1, 3):
        images = np.moveaxis(images, 1, 3)
    return images[..., 0] if images.ndim == 4 and images.shape[3] == 1 else images


def difference_png(change: Array, largest: float | None = None) -> str:
    """A change of pixels (height, width[, 3]): blue is less and red is more, white is none."""
    grey = _thinned(change if change.ndim == 2 else change.mean(axis=2))
    size = float(np.abs(grey).max()) if largest is None else largest
    share = np.clip(grey / (size or 1.0), -1, 1)
    return _uri(np.round(127.5 * (share + 1)).astype(np.uint8), _palette("RdBu_r"))


def amount_png(values: Array, largest: float) -> str:
    """Amounts (height, width) from 0 to ``largest`` as a data URI: the more, the brighter, from violet to yellow."""
    share = np.clip(_thinned(values) / (largest or 1.0), 0, 1)
    return _uri(np.round(255 * share).astype(np.uint8), _palette("viridis"))


def _palette(name: str) -> list[int]:
    from matplotlib import colormaps

    return [int(value) for value in (255 * colormaps[name](np.arange(256))[:, :3]).round().reshape(-1)]


def _thinned(image: Array) -> Array:
    step = -(-max(image.shape[:2]) // LONGEST_SIDE)
    return image[::step, ::step]


def _uri(pixels: Array, palette: list[int] | None = None) -> str:
    from PIL import Image  # which matplotlib needs and brings

    picture = Image.fromarray(pixels)
    if palette is not None:
        picture.putpalette(palette)
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def as_pictures(
    X: Array,
    input_shape: tuple[int, ...],
    shape: Sequence[int] | None,
    images: Any,
    features: WaveletFeatures | None,
) -> Pictures | None:
    """How the inputs X (entries, n_inputs) look; None if nothing says that they are images."""
    pixels = None if images is None else _in_unit(np.asarray(images))
    if pixels is not None and len(pixels) != len(X):
        raise InputError(f"images: expected {len(X)}, one a row of X, found {len(pixels)}")
    if features is not None:
        if pixels is not None and pixels[0].size != int(np.prod(features.shape)):
            raise InputError(f"images: expected shape {features.shape} each, found {pixels.shape[1:]}")
        return Pictures(features.shape, features=features, base=pixels)
    sides = tuple(int(side) for side in shape) if shape is not None else _image_shape(input_shape)
    if shape is None and pixels is not None and sides is None:
        sides = pixels.shape[1:]
    if sides is None:
        return None
    if int(np.prod(sides)) != X.shape[1] or len(sides) not in (2, 3):
        where = "images" if shape is None and pixels is not None else "shape"
        raise InputError(f"{where}: expected height x width[ x channels] of {X.shape[1]} pixels, found {sides}")
    some = X[np.isfinite(X).all(axis=1)]
    low, high = (float(some.min()), float(some.max())) if len(some) else (0.0, 1.0)
    return Pictures(sides, min(low, 0.0) if low > -0.01 else low, max(high, 1.0) if high < 1.01 else high)


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a network's inputs if it is that of grey or colour images."""
    if len(shape) == 2 or (len(shape) == 3 and (shape[0] in (1, 3) or shape[2] in (1, 3))):
        return shape
    return None


def _in_unit(images: Array) -> Array:
    if images.dtype.kind not in "biuf" or images.ndim not in (2, 3, 4):
        raise InputError(
            f"images: expected pixels (rows, height, width[, channels]), found {images.dtype} {images.shape}"
        )
    return np.asarray(images / 255 if images.dtype == np.uint8 else images, dtype=np.float64)
