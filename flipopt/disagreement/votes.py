"""What several raters, models or people, say of the same images."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from flipopt.common.checks import Array, rectangular
from flipopt.common.columns import Columns
from flipopt.common.errors import InputError

MISSING = -1
"""In place of a class: this rater has not seen this image."""
MOST_CLASSES = 2**15


@dataclass(frozen=True, eq=False)
class Votes(Columns):
    """One record an image.

    Attributes
    ----------
    top
        The class that most raters give; of several such the first, (images,).
    share
        Of the raters that saw the image, how many give it: their certainty, (images,).
    split
        How many different classes they give, (images,).
    raters
        How many saw the image, (images,).
    differing
        Pairs of raters that differ, (images,).
    """

    top: Array
    share: Array
    split: Array
    raters: Array
    differing: Array

    @classmethod
    def of(cls, given: Array) -> Votes:
        """Of classes (raters, images), MISSING where a rater has not seen an image; each image has a rater."""
        kinds, codes = np.unique(given, return_inverse=True)
        counts = np.zeros((given.shape[1], len(kinds)), dtype=np.int64)
        np.add.at(counts, (np.arange(given.shape[1]), codes.reshape(given.shape)), 1)
        kinds, counts = (kinds[1:], counts[:, 1:]) if kinds[0] == MISSING else (kinds, counts)
        raters = counts.sum(axis=1)
        differing = (raters**2 - (counts**2).sum(axis=1)) // 2
        return cls(
            kinds[counts.argmax(axis=1)], counts.max(axis=1) / raters, (counts > 0).sum(axis=1), raters, differing
        )

    @property
    def agree(self) -> Array:
        """Whether all give the same class, (images,)."""
        return np.asarray(self.split == 1)

    @property
    def pairs(self) -> Array | None:
        """Share of the pairs of raters that differ, (images,); None if an image has but one rater."""
        if (self.raters < 2).any():
            return None
        return np.asarray(self.differing / (self.raters * (self.raters - 1) / 2))


def pair_disagreement(given: Array) -> Array:
    """Share of the images that both saw on which two raters differ, for all pairs of rows of ``given``, (pairs,).

    Pairs that saw no image in common are left out.
    """
    found = []
    for one, other in combinations(given, 2):
        both = (one != MISSING) & (other != MISSING)
        if both.any():
            found.append(float((one != other)[both].mean()))
    return np.array(found, dtype=np.float64)


def as_ratings(values: Any, name: str, images: int | None, classes: int | None, missing: bool = False) -> Array:
    """Classes (raters, images) of a caller, as integers; MISSING only where ``missing`` says so.

    There must be ``images`` columns, and classes below ``classes``, where those are known.
    """
    of = "a row of classes a rater"
    array = rectangular(values.to_numpy() if hasattr(values, "to_numpy") else values, name, of)
    if array.ndim != 2 or array.dtype.kind not in "iuf" or 0 in array.shape:
        raise InputError(f"{name}: expected {of}, (raters, images), found {array.dtype} {array.shape}")
    if images is not None and array.shape[1] != images:
        raise InputError(f"{name}: expected {images} images, a column each, found {array.shape[1]}")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.rint(array)).all()):
        raise InputError(f"{name}: expected classes as whole numbers, found others")
    least, most = MISSING if missing else 0, (MOST_CLASSES if classes is None else classes) - 1
    bad = np.argwhere((array < least) | (array > most))
    if len(bad):
        rater, image = bad[0]
        or_missing = f", or {MISSING} where there is none" if missing else ""
        raise InputError(
            f"{name}: expected classes from 0 to {most}{or_missing}, found {array[rater, image]:g} of rater {rater} "
            f"for image {image}"
        )
    array = array.astype(np.int64)
    unseen = np.flatnonzero((array == MISSING).all(axis=0))
    if len(unseen):
        raise InputError(f"{name}: expected a label of every image, found none of image {unseen[0]}")
    return array
