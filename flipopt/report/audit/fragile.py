"""The inputs that flip most easily, with what flips them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.report.audit.pictures import difference_png
from flipopt.report.audit.section import Grid, Section, number, share
from flipopt.report.audit.study import Given, Study

CARDS = 12
"""Inputs that are shown without being asked for."""
MOST_CHANGES = 6
"""Features of a flip that are listed."""


def fragile(study: Study) -> Section:
    """The nearest flips as pictures or as changes of features."""
    title, how = "The most fragile inputs", _how(study)
    if not study.found.any():
        return Section("fragile", title, "No flip point was found, so nothing can be said.", how)
    first = study.by_distance[:CARDS]
    k = int(first[0])
    source, target = (study.classes[c] for c in (study.predicted[k], study.other[k]))
    answer = (
        f"Row {study.row[k]}, which the model calls “{source}”, becomes “{target}” after a change of "
        f"{number(float(study.distance[k]))}, the smallest of all."
    )
    return Section("fragile", title, answer, how, {"cards": [card(study, int(k)) for k in first]})


def _how(study: Study) -> str:
    if study.pictures is not None:
        return (
            "Input, closest flip and their difference (blue: darker, red: lighter, each scaled to its largest change)."
        )
    how = "The features that a flip changes most, in spreads of each"
    return f"{how}: {'those of the weights' if 'weights' in study.options else 'by the quartiles of the inputs'}."


def card(study: Study, k: int) -> dict[str, Any]:
    """What is shown of the flip of entry k."""
    label = None if study.labels is None else study.classes[study.labels[k]]
    shown: dict[str, Any] = {
        "row": int(study.row[k]),
        "source": study.classes[study.predicted[k]],
        "target": study.classes[study.other[k]],
        "label": label,
        "wrong": study.wrong is not None and bool(study.wrong[k]),
        "distance": number(float(study.distance[k])),
        "softmax": share(float(study.softmax[k])),
    }
    return shown | ({"changes": changes(study, k)} if study.pictures is None else {"images": images(study, k)})


def images(study: Study, k: int) -> dict[str, Any]:
    """Input, flip point and difference of entry k as pictures, and the largest change of a pixel."""
    return pictured(study, k, study.flips.x[k])


def pictured(given: Given, k: int, x: Array) -> dict[str, Any]:
    """Entry k, what it is changed to, x (n_inputs,), and their difference as pictures, with the largest change."""
    assert given.pictures is not None
    before, after = given.pictures.images(np.stack([given.X[k], x]), [k, k])
    change = after - before
    return {
        "before": given.pictures.png(before),
        "after": given.pictures.png(after),
        "difference": difference_png(change),
        "largest": number(float(np.abs(change).max()), 2),
    }


def changes(study: Study, k: int) -> Grid:
    """The features that the flip of entry k changes most: from, to, and by how many spreads."""
    return changed(study, k, study.flips.x[k] if study.found[k] else study.X[k])


def changed(given: Given, k: int, x: Array) -> Grid:
    """The features that change most from entry k to x (n_inputs,): from, to, and by how many spreads."""
    spreads = (x - given.X[k]) / given.spreads
    order = np.argsort(-np.abs(spreads), kind="stable")[:MOST_CHANGES]
    rows = tuple(
        (
            given.features[f],
            *between(float(given.X[k, f]), float(x[f]), given.units[f]),
            f"{'+' if spreads[f] > 0 else ''}{number(float(spreads[f]), 2)}",
        )
        for f in order
        if spreads[f] != 0
    )
    return Grid(("feature", "from", "to", "spreads"), rows)


def between(before: float, after: float, unit: str) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart, and their unit."""
    size, gap = max(abs(before), abs(after)), abs(after - before)
    digits = 3 if not gap else int(np.clip(2 + np.floor(np.log10(size)) - np.floor(np.log10(gap)), 3, 9))
    return tuple(f"{number(value, digits)} {unit}".strip() for value in (before, after))  # type: ignore[return-value]
