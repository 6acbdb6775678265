"""Studies repeated with other models: Figure 2 and Table 5 with their deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_number, as_sequence
from flipopt.common.errors import InputError
from flipopt.common.later import later
from flipopt.common.tables import Table
from flipopt.disagreement.measures import Certainty
from flipopt.disagreement.study import Study


@dataclass(frozen=True, eq=False)
class Curves(Table):
    """Shares of the images by the accuracy of the models, a record a name and an accuracy: Figure 2.

    Attributes
    ----------
    name
        Of a kind of models.
    accuracy
        Of its models, in percent.
    repeats
        Studies of other models of this kind.
    disagree, type_a, type_c
        Mean shares over repeats; the last two NaN without people.
    disagree_deviation, type_a_deviation, type_c_deviation
        Standard deviations over repeats, with their number as divisor.
    """

    name: Array
    accuracy: Array
    repeats: Array
    disagree: Array
    disagree_deviation: Array
    type_a: Array
    type_a_deviation: Array
    type_c: Array
    type_c_deviation: Array

    def plot(self, path: str | Path) -> None:
        """Draw Figure 2 to ``path``; see :func:`flipopt.report.draw_curves`."""
        later("report.disagreement:draw_curves")(path, self)


def curves(studies: Mapping[tuple[str, float], Sequence[Study]]) -> Curves:
    """How disagreement changes with accuracy, of ``studies``: (name, accuracy in percent) to repeats of a study."""
    records: list[list[Any]] = []
    for key, some in studies.items():
        name, accuracy = as_sequence(key, "studies", "a name and an accuracy for each key")
        repeats = _same_images(some)
        record: list[Any] = [str(name), as_number(accuracy, "studies"), len(repeats)]
        for column in ("disagree", "type_a", "type_c"):
            masks = [getattr(one, column) for one in repeats]
            shares = [np.nan if mask is None else mask.mean() for mask in masks]
            record += [np.mean(shares), np.std(shares)]
        records.append(record)
    if not records:
        raise InputError("studies: expected at least one, found none")
    names, *numbers = zip(*records, strict=True)
    return Curves(np.array(names, dtype=object), *(np.array(column) for column in numbers))


def certainty(studies: Sequence[Study]) -> Certainty:
    """Table 5 over repeats of a study with other models: its deviations are those over repeats."""
    repeats = _same_images(studies)
    first = repeats[0]
    levels, groups = first.levels()
    found = np.array([[one.models.share[group].mean() for group in groups] for one in repeats])
    images, unknown = np.array([group.sum() for group in groups]), np.full(len(levels), np.nan)
    return Certainty(levels, images, found.mean(axis=0), found.std(axis=0), unknown, unknown)


def _same_images(studies: Any) -> list[Study]:
    """Studies of the same images with the same people."""
    found = list(as_sequence([studies] if isinstance(studies, Study) else studies, "studies", "studies"))
    if not found or not all(isinstance(one, Study) for one in found):
        raise InputError("studies: expected what study() returns, one or more, found something else")
    first = found[0]
    for one in found[1:]:
        same = (one.labels is None) == (first.labels is None) and one.predicted.shape[1] == first.predicted.shape[1]
        if not same or (first.labels is not None and not np.array_equal(one.labels, first.labels)):
            raise InputError("studies: expected the same images and labels in all repeats, found others")
    return found
