"""Image features: a few wavelet coefficients, chosen by a pivoted QR factorisation of the training set.

The map from pixels to coefficients is linear, so a flip point found in feature space is a set of pixel changes,
and pixel bounds are linear constraints on features (:meth:`WaveletFeatures.pixel_constraints`).
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pywt
from scipy.linalg import qr

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import read_npz, write_npz
from flipopt.common.limits import limits, require_within
from flipopt.common.quoting import brief

FORMAT = "flipopt-wavelet-features-1"
BLOCK_FLOATS = 2**25
"""How many numbers a block of the streamed QR holds (256 MB in float64)."""


@dataclass(frozen=True)
class WaveletTransform:
    """The full discrete wavelet transform of images of one shape, flattened to vectors.

    Attributes
    ----------
    shape
        Of one image: (height, width) for grey, (height, width, channels) for colour.
    wavelet, level, mode
        As PyWavelets names them.
    dimensions
        2 transforms every channel on its own; 3 transforms across the channels too. In 3-D, 3 channels are
        extended to 4, so a 32 x 32 x 3 image has 4096 coefficients.
    """

    shape: tuple[int, ...]
    wavelet: str
    level: int
    mode: str
    dimensions: int

    def __post_init__(self) -> None:
        if len(self.shape) not in (2, 3) or min(self.shape) < 1:
            raise InputError(f"shape: expected (height, width) or (height, width, channels), found {self.shape}")
        if self.dimensions not in (2, 3) or self.dimensions > len(self.shape):
            raise InputError(f"dimensions: expected 2 (or 3 for colour images), found {self.dimensions}")
        if self.wavelet not in pywt.wavelist(kind="discrete"):
            raise InputError(f"wavelet: expected a discrete wavelet of PyWavelets, found {self.wavelet!r}")
        if self.mode not in pywt.Modes.modes:
            raise InputError(f"mode: expected one of {', '.join(pywt.Modes.modes)}, found {self.mode!r}")
        if not 1 <= self.level <= self.deepest:
            raise InputError(f"level: expected 1 to {self.deepest} for shape {self.shape}, found {self.level}")

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(1, 1 + self.dimensions))

    @property
    def deepest(self) -> int:
        """Halvings until the longest transformed side is gone."""
        return max(1, int(np.ceil(np.log2(max(self.shape[: self.dimensions])))))

    @cached_property
    def _layout(self) -> list[tuple[str | None, tuple[int, ...]]]:
        """Band name (None: the approximation) and shape of every coefficient array, in flattening order."""
        return [(band, array.shape[1:]) for band, array in self._bands(np.zeros((1, *self.shape)))]

    @property
    def n_pixels(self) -> int:
        return int(np.prod(self.shape))

    @property
    def n_coefficients(self) -> int:
        return sum(int(np.prod(shape)) for _, shape in self._layout)

    def _bands(self, images: Array) -> Iterator[tuple[str | None, Array]]:
        """Coefficient arrays, coarse to fine."""
        with warnings.catch_warnings():
            # A short axis (3 channels) is at its end before the long ones are; PyWavelets thinks that a mistake.
            warnings.filterwarnings("ignore", message="Level value", category=UserWarning)
            approximation, *details = pywt.wavedecn(images, self.wavelet, self.mode, self.level, axes=self.axes)
        yield None, approximation
        for detail in details:
            yield from sorted(detail.items())

    def analyse(self, images: Array) -> Array:
        """Coefficients (batch, n_coefficients) of images (batch, \\*shape)."""
        return np.concatenate([band.reshape(len(images), -1) for _, band in self._bands(images)], axis=1)

    def synthesise(self, coefficients: Array) -> Array:
        """Images (batch, \\*shape) of coefficients (batch, n_coefficients); inverts :meth:`analyse`."""
        ends = np.cumsum([int(np.prod(shape)) for _, shape in self._layout])
        parts = np.split(coefficients, ends[:-1], axis=1)
        bands = [(name, part.reshape(-1, *shape)) for part, (name, shape) in zip(parts, self._layout, strict=True)]
        per_level = 2**self.dimensions - 1
        details = [dict(bands[start : start + per_level]) for start in range(1, len(bands), per_level)]
        images: Array = pywt.waverecn([bands[0][1], *details], self.wavelet, self.mode, axes=self.axes)
        # An odd side was extended by one; the surplus is cut off again.
        return np.asarray(images[(slice(None), *(slice(side) for side in self.shape))])


def default_level(shape: tuple[int, ...], wavelet: str, mode: str, dimensions: int) -> int:
    """The deepest level that needs no more coefficients than level 1 does (2 for 28 x 28, 5 for 32 x 32)."""
    first = WaveletTransform(shape, wavelet, 1, mode, dimensions)
    level = 1
    while level < first.deepest:
        deeper = WaveletTransform(shape, wavelet, level + 1, mode, dimensions)
        if deeper.n_coefficients > first.n_coefficients:
            break
        level += 1
    return level


def pivoted_columns(blocks: Iterator[Array], k: int) -> Array:
    """The first k pivots of the QR factorisation with column pivoting of a tall matrix given in blocks of rows.

    With A = Q R, the columns of R have the inner products of A's columns, so pivoting R instead of A chooses the
    same columns. R is updated block by block (TSQR), and A is never held.
    """
    r: Array | None = None
    for block in blocks:
        stacked = block if r is None else np.concatenate([r, block])
        r = qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][: block.shape[1]]
    assert r is not None
    _, pivots = qr(r, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    return np.asarray(pivots[:k], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class WaveletFeatures:
    """k wavelet coefficients of an image.

    Attributes
    ----------
    wavelet_transform
        The transform they are coefficients of.
    selected
        Their indices (k,) among the flattened coefficients, most significant first.
    """

    wavelet_transform: WaveletTransform
    selected: Array

    def __post_init__(self) -> None:
        selected = np.array(self.selected, dtype=np.int64)
        n = self.wavelet_transform.n_coefficients
        if selected.ndim != 1 or not 1 <= len(selected) <= n or len(np.unique(selected)) != len(selected):
            raise InputError(f"selected: expected 1 to {n} different indices, found shape {selected.shape}")
        if selected.min() < 0 or selected.max() >= n:
            raise InputError(f"selected: expected indices in 0..{n - 1}, found {selected.min()}..{selected.max()}")
        selected.setflags(write=False)
        object.__setattr__(self, "selected", selected)

    @classmethod
    def fit(
        cls,
        images: Array,
        n_features: int,
        wavelet: str = "haar",
        level: int | None = None,
        mode: str = "periodization",
        dimensions: int | None = None,
    ) -> WaveletFeatures:
        """Choose ``n_features`` coefficients by pivoted QR of the coefficients of ``images``.

        Parameters
        ----------
        images
            (batch, height, width) or (batch, height, width, channels); uint8, or floats in [0, 1].
        n_features
            How many coefficients to keep.
        wavelet, mode
            As PyWavelets names them.
        level
            Depth of the transform; by default the deepest that needs no extra coefficients.
        dimensions
            2 or 3; by default 2 for grey and 3 for colour images.
        """
        images = np.asarray(images)
        if images.ndim not in (3, 4) or len(images) == 0:
            raise InputError(f"images: expected (batch, height, width[, channels]), found {images.shape}")
        shape = images.shape[1:]
        dimensions = len(shape) if dimensions is None else dimensions
        level = default_level(shape, wavelet, mode, dimensions) if level is None else level
        transform = WaveletTransform(shape, wavelet, level, mode, dimensions)
        n = transform.n_coefficients
        if not 1 <= n_features <= n:
            raise InputError(f"n_features: expected 1 to {n}, found {n_features}")
        rows = max(n, BLOCK_FLOATS // n)
        blocks = (transform.analyse(_pixels(images[at : at + rows])) for at in range(0, len(images), rows))
        return cls(transform, pivoted_columns(blocks, n_features))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image."""
        return self.wavelet_transform.shape

    @property
    def n_features(self) -> int:
        return len(self.selected)

    def transform(self, images: Array) -> Array:
        """Features (k,) of one image, or (batch, k) of a batch; float32 images give float32 features."""
        images, single = self._as_batch(images)
        features = self.wavelet_transform.analyse(images)[:, self.selected]
        return features[0] if single else features

    def inverse_transform(self, features: Array, base: Array | None = None) -> Array:
        """Images (\\*shape) or (batch, \\*shape) of features (k,) or (batch, k).

        ``base``, an image or a batch of them, supplies the coefficients that are not among the features; without
        it they are zero.
        """
        features = np.asarray(features)
        single = features.ndim == 1
        features = np.atleast_2d(features)
        if features.ndim != 2 or features.shape[1] != self.n_features:
            raise InputError(
                f"features: expected ({self.n_features},) or (batch, {self.n_features}), found {features.shape}"
            )
        coefficients = self._other_coefficients(base, len(features), features.dtype)
        coefficients[:, self.selected] = features
        images = self.wavelet_transform.synthesise(coefficients)
        return images[0] if single else images

    def _other_coefficients(self, base: Array | None, rows: int, dtype: np.dtype[Any]) -> Array:
        n = self.wavelet_transform.n_coefficients
        if base is None:
            return np.zeros((rows, n), dtype=dtype)
        images, _ = self._as_batch(base)
        if len(images) not in (1, rows):
            raise InputError(f"base: expected one image or {rows}, found {len(images)}")
        return np.broadcast_to(self.wavelet_transform.analyse(images), (rows, n)).astype(dtype)

    @cached_property
    def basis(self) -> Array:
        """(k, n_pixels): the pixels of each unit feature, so that pixels = offset + features @ basis."""
        return self.inverse_transform(np.eye(self.n_features)).reshape(self.n_features, -1)

    def pixel_constraints(
        self, base: Array | None = None, lower: float = 0.0, upper: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Pixel bounds as linear constraints on the features f.

        Returns
        -------
        A, lo, hi
            (n_pixels, k), (n_pixels,), (n_pixels,): lower <= pixels <= upper if and only if lo <= A f <= hi, where
            the coefficients that are not features are those of the image ``base`` (or zero).
        """
        if not lower < upper:
            raise InputError(f"upper: expected a number above lower = {lower}, found {upper}")
        offset = self.inverse_transform(np.zeros(self.n_features), base).reshape(-1)
        return self.basis.T, lower - offset, upper - offset

    def save(self, path: str | Path) -> None:
        """Write to an npz file; :meth:`load` reads it."""
        settings = {"format": FORMAT, **asdict(self.wavelet_transform)}
        write_npz(path, {"settings": np.array(json.dumps(settings)), "selected": self.selected})

    @classmethod
    def load(cls, path: str | Path) -> WaveletFeatures:
        """Read what :meth:`save` wrote."""
        arrays = read_npz(path, required=("settings", "selected"))
        try:
            settings = json.loads(str(arrays["settings"]))
            if settings.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            settings["shape"] = tuple(int(side) for side in settings["shape"])
            require_within(8 * math.prod(settings["shape"]), limits().text, "bytes of an image")  # one is transformed
            return cls(WaveletTransform(**settings), arrays["selected"])
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
            raise FileFormatError(f"{path}: not a WaveletFeatures file: {brief(error)}") from error

    def _as_batch(self, images: Array) -> tuple[Array, bool]:
        """Pixels as a batch of floats, and whether a single image was given; flat pixel rows are accepted."""
        pixels = _pixels(np.asarray(images))
        shape = self.shape
        for lead in ((), pixels.shape[:1]):
            if pixels.shape in ((*lead, *shape), (*lead, self.wavelet_transform.n_pixels)):
                return pixels.reshape(-1, *shape), lead == ()
        raise InputError(f"images: expected {shape} or (batch, *{shape}), found {pixels.shape}")


def _pixels(images: Array) -> Array:
    """uint8 images become floats in [0, 1]; float32 and float64 stay as they are."""
    if images.dtype == np.uint8:
        return images / np.float64(255)
    if images.dtype not in (np.float32, np.float64):
        raise InputError(f"images: expected uint8, float32 or float64, found {images.dtype}")
    if not np.isfinite(images).all():
        raise InputError("images: expected finite pixels, found NaN or infinity")
    return images
