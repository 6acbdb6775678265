"""What the page knows of every input, and what it shows when one is clicked."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.report.audit.fragile import changes, images
from flipopt.report.audit.study import Study

POINTS, BEYOND = 41, 0.5
"""Points on the line from an input to its flip and half as far again."""
ALPHAS = np.linspace(0, 1 + BEYOND, POINTS)
MOST_ROWS = 20_000
"""Inputs in the table of the page: about 50 bytes each."""
MOST_BYTES = 2_500_000
"""Of pictures and lines that are stored for clicks."""


def columns(study: Study, lower: Array | None, always: list[int]) -> dict[str, Any]:
    """One list a column, an entry an input; distances with 6 digits. Of very many, the nearest and those ``always``."""
    near = np.argsort(study.distance, kind="stable")[:MOST_ROWS]
    kept = np.union1d(near, np.array(always, dtype=int))
    found: dict[str, Any] = {
        "row": study.row[kept],
        "predicted": study.predicted[kept],
        "other": study.other[kept],
        "distance": rounded(study.distance[kept]),
        "softmax": np.round(study.softmax[kept], 6),
        "status": [status.name for status in study.flips.status[kept]],
        "label": None if study.labels is None else study.labels[kept],
        "lower": None if lower is None else rounded(lower[kept]),
        "proved": study.proved[kept] if study.searched else None,
    }
    return found


def rounded(values: Array, digits: int = 6) -> list[float]:
    """Numbers with so many digits that count."""
    return [float(f"{value:.{digits - 1}e}") for value in values]


def listed(study: Study, first: list[int], most: int) -> list[int]:
    """Entries whose flips are stored for clicks: those named ``first``, then mistakes and the nearest in turn."""
    near = [int(k) for k in study.by_distance]
    wrong = [k for k in near if study.wrong is not None and study.wrong[k]]
    by_class = [[k for k in near if study.predicted[k] == c][:10] for c in range(len(study.classes))]
    # Half of the places for mistakes, then some of every class, then whatever is nearest.
    wanted = [*first, *near[:12], *wrong[: most // 2], *(k for some in by_class for k in some), *near]
    order = [k for k in dict.fromkeys(wanted) if study.found[k]]
    return order[:most]


def details(study: Study, entries: list[int]) -> dict[str, Any]:
    """By row: probabilities of the two classes along the line, and pictures or changes, until they fill their share."""
    kept: dict[str, Any] = {}
    size = 0
    for k, (mine, others) in zip(entries, lines(study, np.array(entries, dtype=int)), strict=True):
        entry: dict[str, Any] = {"mine": rounded(mine, 3), "others": rounded(others, 3)}
        if study.pictures is None:
            entry["changes"] = changes(study, k).rows
        else:
            entry["images"] = images(study, k)
            size += sum(len(text) for text in entry["images"].values())
        size += 14 * POINTS
        if size > MOST_BYTES:
            break
        kept[str(int(study.row[k]))] = entry
    return kept


def lines(study: Study, entries: Array) -> Array:
    """Probabilities of (class, other class) along the lines of entries (k,) to their flips: (k, 2, POINTS)."""
    points = study.X[entries, None] + ALPHAS[:, None] * study.change[entries, None]
    if len(entries) == 0:
        return np.empty((0, 2, POINTS))
    Z = study.network.probabilities(points.reshape(-1, study.X.shape[1])).reshape(len(entries), POINTS, -1)
    pairs = np.stack([study.predicted[entries], study.other[entries]], axis=1)
    return np.take_along_axis(Z, pairs[:, None], axis=2).swapaxes(1, 2)
