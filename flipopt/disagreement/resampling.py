"""Intervals by drawing images, and models, again and again (the percentile bootstrap of Efron 1979)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flipopt.common.checks import Array
from flipopt.disagreement.measures import Ballots

LEVEL = 0.95
ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
UNKNOWN = (np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class Resampling:
    """Resamples of the images of a study, and of its models.

    Attributes
    ----------
    ballots
        What models say.
    blocks
        Which images are drawn together, (images,) from 0 on.
    times, seed
        How many resamples, and what decides them.
    """

    ballots: Ballots
    blocks: Array
    times: int
    seed: int

    def images(self) -> Iterator[Array]:
        """How often every image is in a resample, (images,)."""
        rng, blocks = np.random.default_rng([self.seed, 0]), int(self.blocks.max()) + 1
        for _ in range(self.times):
            drawn = np.bincount(rng.integers(blocks, size=blocks), minlength=blocks)
            yield drawn[self.blocks].astype(np.float64)

    def models(self) -> Iterator[Array]:
        """How often every model is in a resample, (models,)."""
        rng, models = np.random.default_rng([self.seed, 1]), len(self.ballots.each)
        for _ in range(self.times):
            yield np.bincount(rng.integers(models, size=models), minlength=models).astype(np.float64)

    @cached_property
    def _shares(self) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """Every measure in every resample of images, and of images and models."""
        everyone = self.ballots.counted(np.ones(len(self.ballots.each)))
        fixed: dict[str, list[float]] = {name: [] for name in everyone}
        both: dict[str, list[float]] = {name: [] for name in everyone}
        for images, models in zip(self.images(), self.models(), strict=True):
            total = images.sum()
            for name, values in everyone.items():
                fixed[name].append(float(images @ values / total))
            for name, values in self.ballots.counted(models).items():
                both[name].append(float(images @ values / total))
        return fixed, both

    def share(self, measure: str, value: float, models: bool) -> tuple[float, float]:
        """The interval of a share, over images, or over images and models.

        A resample of models has some of them twice, and so fewer that can disagree: its intervals are moved so that
        the mean of the resamples is ``value``, what all models have.
        """
        found = np.array(self._shares[models][measure])
        if len(found) == 0:
            return UNKNOWN
        low, high = np.quantile(found, ENDS) + ((value - found.mean()) if models else 0.0)
        return float(np.clip(low, 0, value)), float(np.clip(high, value, 1))

    def mean(self, values: Array, chosen: Array) -> tuple[float, float]:
        """The interval of the mean over models and ``chosen`` images, of values (models, images)."""
        found = []
        for images, models in zip(self.images(), self.models(), strict=True):
            weights = images * chosen
            if weights.sum() > 0:
                found.append(float(models @ values @ weights / (models.sum() * weights.sum())))
        return self._ends(found)

    def certainty(self, chosen: Array) -> tuple[float, float]:
        """The interval of the mean certainty of the models on ``chosen`` images, moved as a share is."""
        value, found = self.ballots.certainty(np.ones(len(self.ballots.each)))[chosen].mean(), []
        for images, models in zip(self.images(), self.models(), strict=True):
            weights = images * chosen
            if weights.sum() > 0:
                found.append(float(self.ballots.certainty(models) @ weights / weights.sum()))
        low, high = self._ends(found)
        moved = value - np.mean(found) if found else 0.0
        return min(low + moved, value), float(np.clip(high + moved, value, 1))

    @staticmethod
    def _ends(found: list[float]) -> tuple[float, float]:
        if not found:
            return UNKNOWN
        low, high = np.quantile(found, ENDS)
        return float(low), float(high)
