"""Does the distance to the closest flip foretell where models, and people, disagree?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.disagreement.study import Study, networks_on
from flipopt.explain import statistics
from flipopt.explain.matching import nearest
from flipopt.flips.many import closest_flip_points

MEAN = "mean over models"


def distances(models: Any, images: Any, progress: bool = False, **options: Any) -> Array:
    """How far every image is from the closest flip of every model, (models, images); NaN where none is known.

    ``options`` are those of :func:`flipopt.closest_flip_points`, such as ``bounds``, ``norm`` or ``executor``.
    """
    nets, rows = networks_on(models, images)
    found = np.full((len(nets), len(rows[0])), np.nan)
    for number, (net, X) in enumerate(zip(nets, rows, strict=True)):
        flips, _ = nearest(closest_flip_points(net, X, progress=progress, **options), len(X), "images")
        found[number, flips.row] = flips.distance
    return found


@dataclass(frozen=True, eq=False)
class ByDistance(Table):
    """How well a short distance to a flip tells images on which models, or people, disagree; a record a model.

    An area is that under the ROC curve: how often an image on which they disagree is nearer to a flip than one on which
    they agree, 0.5 by chance. NaN where they disagree on no image, or on all. The intervals take images for
    independent, which those of a line are not: they are then too narrow.

    Attributes
    ----------
    model
        Whose distance it is, by its number; the last record is that of the mean over models.
    images
        With a distance.
    models_area, models_low, models_high
        For disagreement of models, with a 95% interval (Newcombe 2006).
    people_area, people_low, people_high
        For disagreement of people; NaN without them.
    """

    model: Array
    images: Array
    models_area: Array
    models_low: Array
    models_high: Array
    people_area: Array
    people_low: Array
    people_high: Array

    def summary(self) -> str:
        """In plain words."""
        areas = {
            "models": (self.models_area[-1], self.models_low[-1], self.models_high[-1]),
            "people": (self.people_area[-1], self.people_low[-1], self.people_high[-1]),
        }
        return " ".join(
            f"Where {who} disagree an image is nearer to flips than where they agree in {area:.0%} of pairs (95% "
            f"interval {low:.0%} to {high:.0%})."
            if np.isfinite(area)
            else f"Whether it is nearer where {who} disagree cannot be said."
            for who, (area, low, high) in areas.items()
        )

    def __str__(self) -> str:
        return self.summary()


def by_distance(study: Study, distances: ArrayLike) -> ByDistance:
    """Distances (models, images), as :func:`distances` finds them, as predictors of who disagrees in a study.

    The mean over models is that of the models that have a distance.
    """
    D = as_floats(distances, "distances", finite=False).astype(np.float64)
    if D.shape != study.predicted.shape:
        raise InputError(f"distances: expected shape {study.predicted.shape}, as the study has, found {D.shape}")
    known = np.isfinite(D)
    mean = np.full(D.shape[1], np.nan)
    mean[known.any(axis=0)] = np.nanmean(np.where(known, D, np.nan)[:, known.any(axis=0)], axis=0)
    records = [_record(values, study) for values in (*D, mean)]
    names = np.array([*map(str, range(len(D))), MEAN], dtype=object)
    return ByDistance(names, *(np.array(column) for column in zip(*records, strict=True)))


def _record(values: Array, study: Study) -> tuple[float, ...]:
    known = np.isfinite(values)
    record: list[float] = [int(known.sum())]
    for disagree in (study.disagree, study.people_disagree):
        if disagree is None:
            record += [np.nan] * 3
            continue
        which = disagree[known]
        area = statistics.auc(-values[known], which)
        record += [area, *statistics.auc_interval(area, int(which.sum()), int((~which).sum()))]
    return tuple(record)
