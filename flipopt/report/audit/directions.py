"""The features, and the directions made of them, that flip decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.explain.directions import Directions
from flipopt.explain.directions import directions as explain_directions
from flipopt.report.audit.pictures import Pictures, difference_png
from flipopt.report.audit.section import Grid, Section, counted, number, share
from flipopt.report.audit.study import Study

TITLE = "The features and directions that flip decisions"
MOST_FEATURES, MOST_DIRECTIONS, LOADINGS, MOST_SHARES = 15, 6, 4, 60
MOST_CLASSES = 12
"""Classes with a picture of their own."""


def directions(study: Study) -> Section:
    """Which features flips change, and the few directions that explain most of the changes."""
    scale = None if study.pictures is not None else study.spreads
    found = explain_directions(study.numbered, np.nan_to_num(study.X), scale=scale)
    how = _how(study)
    if len(found.row) == 0:
        return Section("directions", TITLE, "No flip point was found, so nothing can be said.", how)
    facts: dict[str, Any] = {"flips": len(found.row)}
    if study.pictures is None:
        facts |= {"features": _features(study, found), "directions": _loadings(study, found)}
    else:
        facts |= {"where": _where(study, study.pictures, found), "pictures": _pictures(study.pictures, found)}
    return Section(
        "directions", TITLE, _answer(study, found), how, facts, {"shares": found.share[:MOST_SHARES].round(4)}
    )


def _how(study: Study) -> str:
    unit = "" if study.pictures is not None else ", each feature in its spreads"
    return (
        f"Directions are the singular vectors of the changes from inputs to their flips{unit} (principal components, "
        "the mean not taken off); a share is that of the squared changes."
    )


def _answer(study: Study, found: Directions) -> str:
    n, rank = len(found.largest), min(found.changes.shape)
    never = (
        f"{len(found.never):,} of {counted(n, 'input')} never change by more than a thousandth of the largest change"
    )
    if len(found.never) == 0:
        never = f"each of the {counted(n, 'input')} changes in some flip"
    few = f"{counted(found.needed(0.9), 'direction')} of {rank:,} explain 90% of the changes"
    if study.pictures is not None:
        return f"{few[0].upper()}{few[1:]}; {never}."
    sizes, largest = np.abs(found.changes).mean(axis=0), np.abs(found.changes).argmax(axis=1)
    top = int(sizes.argmax())
    return (
        f"“{study.features[top]}” changes most, by {number(float(sizes[top]), 2)} spreads on average, and is the "
        f"largest change of {share(float((largest == top).mean()))} of flips; {few}, and {never}."
    )


def _features(study: Study, found: Directions) -> Grid:
    sizes, largest = np.abs(found.changes).mean(axis=0), np.abs(found.changes).argmax(axis=1)
    up = (found.changes > 0).mean(axis=0)
    rows = tuple(
        (
            study.features[f],
            number(float(sizes[f]), 2),
            number(float(found.largest[f]), 2),
            share(float((largest == f).mean())),
            share(float(up[f])),
        )
        for f in np.argsort(-sizes, kind="stable")[:MOST_FEATURES]
    )
    return Grid(("feature", "mean change, spreads", "largest", "is the largest of a flip", "upwards"), rows)


def _loadings(study: Study, found: Directions) -> Grid:
    rows = []
    for k, direction in enumerate(found.components[:MOST_DIRECTIONS]):
        top = np.argsort(-np.abs(direction), kind="stable")[:LOADINGS]
        words = ", ".join(f"{study.features[f]} {direction[f]:+.2f}" for f in top if abs(direction[f]) > 0.005)
        rows.append((f"{k + 1}", share(float(found.share[k])), words))
    return Grid(("direction", "share", "made of"), tuple(rows), worded=True)


def _where(study: Study, looks: Pictures, found: Directions) -> list[dict[str, str]]:
    """The mean size of the change of every pixel, over all flips and for the classes with most of them."""
    pixels = np.abs(looks.changes(found.changes))
    classes = study.predicted[found.row]
    often = [int(c) for c in np.argsort(-np.bincount(classes), kind="stable")[:MOST_CLASSES] if (classes == c).any()]
    groups: list[tuple[str, Array]] = [("all", np.ones(len(pixels), dtype=bool))]
    groups += [(f"“{study.classes[c]}”", classes == c) for c in sorted(often)]
    return [{"words": words, "image": difference_png(pixels[mine].mean(axis=0))} for words, mine in groups]


def _pictures(looks: Pictures, found: Directions) -> list[dict[str, str]]:
    images = looks.changes(found.components[:MOST_DIRECTIONS])
    return [
        {"words": f"{k + 1}: {share(float(found.share[k]))}", "image": difference_png(image)}
        for k, image in enumerate(images)
    ]
