"""Images that people are shown: from files, and as pictures of a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import read_npy, read_npz
from flipopt.common.quoting import listed

NAMES = ("images", "X", "features")
"""Of the array in a .npz file."""
LONGEST_SIDE = 1024
MOST_PIXELS = 2**28


def read_images(path: str | Path, shape: Sequence[int] | None = None) -> Array:
    """Images of a .npy file, or a .npz file with an array images or X, as :func:`as_pixels` makes them."""
    path = Path(path)
    if path.suffix == ".npy":
        values = read_npy(path)
    elif path.suffix == ".npz":
        arrays = read_npz(path)
        name = next((name for name in NAMES if name in arrays), None)
        if name is None:
            raise FileFormatError(f"{path}: expected an array images or X, found {listed(arrays) or 'none'}")
        values = arrays[name]
    else:
        raise FileFormatError(f"{path}: expected .npy or .npz")
    return as_pixels(values, str(path), shape)


def as_pixels(values: Any, name: str, shape: Sequence[int] | None = None) -> Array:
    """Images (k, height, width) or (k, height, width, 3) as uint8.

    ``values`` are bytes, or numbers from 0 to 1, of that shape, with channels first, or as rows of pixels with the
    ``shape`` of one.
    """
    array = np.asarray(values)
    if shape is not None and array.ndim == 2:
        sides = tuple(int(side) for side in shape)
        if min(sides) < 1 or int(np.prod(sides)) != array.shape[1]:
            raise InputError(f"{name}: expected rows of {'x'.join(map(str, sides))} pixels, found {array.shape[1]}")
        array = array.reshape(len(array), *sides)
    if array.ndim == 4 and array.shape[1] in (1, 3) and array.shape[3] not in (1, 3):
        array = np.moveaxis(array, 1, 3)
    array = array[..., 0] if array.ndim == 4 and array.shape[3] == 1 else array
    if not (array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)) or 0 in array.shape:
        raise InputError(
            f"{name}: expected images (k, height, width) or (k, height, width, 3), or rows of pixels with their shape, "
            f"found {array.dtype} {array.shape}"
        )
    if max(array.shape[1:3]) > LONGEST_SIDE or array.size > MOST_PIXELS:
        raise InputError(
            f"{name}: expected sides up to {LONGEST_SIDE} and {MOST_PIXELS:,} pixels in all, found {array.shape}"
        )
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "f" or not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
        span = f" from {array.min():g} to {array.max():g}" if array.dtype.kind in "iuf" else ""
        raise InputError(f"{name}: expected bytes, or numbers from 0 to 1, found {array.dtype}{span}")
    return np.round(255 * array).astype(np.uint8)


def png(image: Array) -> bytes:
    """An image (height, width) or (height, width, 3), uint8, as a PNG file."""
    from PIL import Image  # which matplotlib needs and brings

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, "PNG")
    return file.getvalue()
