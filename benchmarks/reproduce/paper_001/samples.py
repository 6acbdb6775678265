"""What several studies of the ship and plane networks look at: images with their closest flips, figures as words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

import flipopt as fo
from benchmarks.reproduce.desk import Case, Desk, Images
from benchmarks.reproduce.record import Claim, Number, Picture, Sheet
from flipopt.common.checks import Array
from flipopt.explain.statistics import wilson
from flipopt.paths.lines import lines_between

NETWORK, SHIP = "cifar-200", 1
SEEDS = (0, 1)
"""Of the network that is looked at, and of a second one that only confirms claims."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
HALF_GREY = 0.5 / 255
"""What rounding to grey levels hides."""
T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """What a part of a study found; fields as in a record."""

    numbers: Sequence[Number] = ()
    claims: Sequence[Claim] = ()
    pictures: Sequence[Picture] = ()
    sheets: Sequence[Sheet] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Flipped:
    """Images of a network with their closest flips, entry k that of image k.

    Attributes
    ----------
    case, images, flips
        The network, the images that have a verified flip, and those.
    numbers
        Where the images are in their set, (images,).
    without
        Images that were left out because no flip of theirs was verified.
    """

    case: Case
    images: Images
    flips: fo.FlipTable
    numbers: Array
    without: int

    def __len__(self) -> int:
        return len(self.images)

    @property
    def distance(self) -> Array:
        """To the closest flip, (images,)."""
        return np.asarray(self.flips.distance)

    @property
    def predicted(self) -> Array:
        """Classes of the images, (images,)."""
        return np.asarray(self.flips.classes[:, 0])

    @cached_property
    def wrong(self) -> Array:
        """Which are mistakes, (images,) bool."""
        return np.asarray(self.predicted != self.images.labels)

    def take(self, rows: Array | slice) -> Flipped:
        """Some of them; the first of a set are as good as random ones, as its classes are mixed."""
        flips = self.flips[rows]
        flips = replace(flips, row=np.arange(len(flips)))
        return Flipped(self.case, self.images.take(rows), flips, self.numbers[rows], self.without)


def flipped(desk: Desk, case: Case, part: Literal["train", "test"]) -> Flipped:
    """All images of a set with their closest flips; one run of a set for all studies."""
    images = case.train if part == "train" else case.test
    flips = desk.flips(f"{NETWORK}-seed{case.seed}-{part}", case, images.X)
    sound = flips[flips.success]
    found = replace(sound, row=np.arange(len(sound)))
    return Flipped(case, images.take(sound.row), found, sound.row, len(images) - len(sound))


def scores(case: Case, A: Array, B: Array, alpha: Array) -> Array:
    """Softmax of ship at (1 - alpha) a + alpha b, (lines, k), for the rows of A and B and alpha (k,)."""
    lines = lines_between(case.network, A, B, 0.0)
    Y = lines.logits(np.repeat(np.arange(len(A)), len(alpha)), np.tile(alpha, len(A)))
    ship: Array = expit(Y[:, SHIP] - Y[:, 1 - SHIP])
    return ship.reshape(len(A), len(alpha))


def pixel_exits(directions: Array, images: Array, slack: float = 0.0) -> Array:
    """How far images (rows, \\*shape) may go in directions of pixels (rows, \\*shape) before one leaves [0, 1].

    A pixel may be beyond by ``slack``.
    """
    pixels, D = images.reshape(len(images), -1) / 255, directions.reshape(len(images), -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(D > 0, (1 + slack - pixels) / D, np.where(D < 0, (pixels + slack) / -D, np.inf))
    return np.asarray(room.min(axis=1, initial=np.inf))


def quantiles(values: ArrayLike) -> dict[str, float | int]:
    """Of the finite values, by name, with their mean and number."""
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return {"count": 0}
    named = zip(QUANTILES, np.quantile(finite, QUANTILES), strict=True)
    return {**{f"{q:.0%}": float(v) for q, v in named}, "mean": float(finite.mean()), "count": len(finite)}


def known(value: float) -> float | None:
    """The value; None where it is not a number."""
    return value if np.isfinite(value) else None


def middle(values: ArrayLike) -> float:
    """The median of the finite values; NaN of none."""
    return quantiles(values).get("50%", np.nan)


def spread(values: ArrayLike, form: str = ".3g") -> str:
    """The median and the range of nine in ten, in words."""
    found = quantiles(values)
    if not found["count"]:
        return "unknown"
    return f"{found['50%']:{form}} in the median ({found['5%']:{form}} to {found['95%']:{form}} for nine in ten)"


def share(which: ArrayLike) -> str:
    """The share of True in percent, with its interval at 95%."""
    flags = np.asarray(which, dtype=bool)
    if not len(flags):
        return "none of none"
    low, high = wilson(int(flags.sum()), len(flags))
    return f"{100 * flags.mean():.1f}% ({100 * low:.1f} to {100 * high:.1f})"


def by_seed(found: Mapping[int, T], say: Callable[[T], str]) -> str:
    """A sentence with a part for every seed."""
    return "; ".join(f"seed {seed}: {say(part)}" for seed, part in found.items()) + "."


def holds(found: Mapping[int, T], test: Callable[[T], bool]) -> dict[str, bool]:
    """What a claim holds for, a seed each."""
    return {f"seed {seed}": bool(test(part)) for seed, part in found.items()}
