"""How alike directions to flips are in two sets of images, and whether opposite changes of pixels are neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter

from flipopt.common.checks import Array
from flipopt.explain import Directions
from flipopt.explain.matching import percent

COMPONENTS = 10
"""Of each set, whose span is compared."""
ENOUGH = 0.9
"""Of the likeness of two halves of one set, for two sets to be much alike."""
LARGEST = 0.02
"""Share of the pixels that count as changed most, upwards and downwards."""
DRAWS, CHANCE = 200, 0.95
"""Pictures with their pixels in a random order, and the share of them that is chance."""


@dataclass(frozen=True)
class Likeness:
    """Of training and test set, each halved at random: the means over two halves of different sets, and of one set.

    Attributes
    ----------
    span, span_within
        Mean squared cosine of the angles between the spans of the first components: 1 if they are the same.
    pixels, pixels_within
        Correlation of the mean absolute changes of pixels.
    components, rows
        How many there are of each half.
    """

    span: float
    span_within: float
    pixels: float
    pixels_within: float
    components: int
    rows: int

    @property
    def holds(self) -> bool:
        return self.span >= ENOUGH * self.span_within and self.pixels >= ENOUGH * self.pixels_within

    @property
    def words(self) -> str:
        """For a sentence."""
        return (
            f"the mean squared cosine between the first {self.components} components is {self.span:.3f} from set to "
            f"set and {self.span_within:.3f} between halves of a set, the correlation of mean absolute changes of "
            f"pixels {self.pixels:.3f} and {self.pixels_within:.3f} ({self.rows} images a half)"
        )


def likeness(train: Directions, test: Directions) -> Likeness | None:
    """All halves have as many images, so that across and within are measured alike; None with fewer than two each."""
    rows = min(len(train.row), len(test.row)) // 2
    if rows < 2:
        return None
    rng = np.random.default_rng(0)
    halves = []
    for some in (train, test):
        order = rng.permutation(len(some.row))
        halves += [(some, some.changes[part]) for part in (order[:rows], order[rows : 2 * rows])]
    count = min(COMPONENTS, rows)
    spans = [_components(changes, count) for _, changes in halves]
    means = [np.abs(some.as_images(changes)).mean(axis=0).ravel() for some, changes in halves]
    within, across = ((0, 1), (2, 3)), ((0, 2), (0, 3), (1, 2), (1, 3))

    def cosine(i: int, j: int) -> float:
        return float(np.square(spans[i] @ spans[j].T).sum() / count)

    def correlation(i: int, j: int) -> float:
        return float(np.corrcoef(means[i], means[j])[0, 1])

    (span, span_within), (pixels, pixels_within) = (
        [float(np.mean([measure(i, j) for i, j in pairs])) for pairs in (across, within)]
        for measure in (cosine, correlation)
    )
    return Likeness(span, span_within, pixels, pixels_within, count, rows)


def _components(changes: Array, count: int) -> Array:
    """The first principal directions (count, n) of changes that all count alike, whatever their length."""
    unit = changes / np.linalg.norm(changes, axis=1, keepdims=True)
    return np.asarray(np.linalg.svd(unit, full_matrices=False)[2][:count])


@dataclass(frozen=True)
class Neighbours:
    """Of the pixels that change most upwards, the share with one that changes most downwards beside it, and that share
    where pixels are in a random order: the mean, and what all but a few draws are below."""

    share: float
    chance: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.share > max(0.5, self.limit)

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"{percent(self.share)} (by chance {percent(self.chance)}, seldom above {percent(self.limit)})"


def neighbours(changes: Sequence[Array]) -> Neighbours:
    """Of changes (height, width, colours), the mean over them."""
    grey = [change.mean(axis=2) for change in changes]
    rng = np.random.default_rng(0)
    drawn = [np.mean([_beside(rng.permutation(one.ravel()).reshape(one.shape)) for one in grey]) for _ in range(DRAWS)]
    share = float(np.mean([_beside(one) for one in grey]))
    return Neighbours(share, float(np.mean(drawn)), float(np.quantile(drawn, CHANCE)))


def _beside(change: Array) -> float:
    """Of the largest changes of a picture (height, width), those with one of the smallest among their 8 neighbours."""
    count = max(1, round(LARGEST * change.size))
    order = np.sort(change, axis=None)
    up, down = change >= order[-count], change <= order[count - 1]
    return float(maximum_filter(down.astype(np.uint8), size=3, mode="constant")[up].mean())
