"""Measures of all pairs of classes as tables whose cells are shaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.borderline import Profile
from flipopt.common.checks import Array
from flipopt.report.audit.section import NONE, number, share
from flipopt.report.borderline import TITLES

MAPS = (
    "closest_distance",
    "closest_success",
    "given_success",
    "epbs_success",
    "rpbs_success",
    "idc",
    "edc1_borderline",
    "edc2_borderline",
)
MOST_CLASSES = 24
"""In a heat map; of more classes those with the most fragile pairs are shown."""
FAINTEST = 0.06
"""Shade of the least value, so that it is not that of a cell without a number."""


def heat_maps(found: Profile) -> list[dict[str, Any]]:
    """A map a measure that has any number: names of classes, and cells with text, shade and words."""
    kept = _kept(found)
    maps = [_map(found, name, kept) for name in MAPS if np.isfinite(getattr(found, name)).any()]
    return [one | {"left_out": len(np.unique(found.classes)) - len(kept)} for one in maps]


def _kept(found: Profile) -> Array:
    """The classes that are shown, in their order: those that were measured, and of many those nearest to others."""
    order = np.concatenate([found.most_fragile(max(1, len(found))).classes.reshape(-1), found.classes.reshape(-1)])
    return np.sort(np.array(list(dict.fromkeys(order.tolist()))[:MOST_CLASSES], dtype=np.int64))


def _map(found: Profile, name: str, kept: Array) -> dict[str, Any]:
    values = found.matrix(name)[np.ix_(kept, kept)]
    low, high = _ends(name, values)
    near = name == "closest_distance"
    lines = []
    for s, line in zip(kept, values, strict=True):
        cells = []
        for t, value in zip(kept, line, strict=True):
            words = f"“{found.name_of(s)}” to “{found.name_of(t)}”: "
            if not np.isfinite(value):
                cells.append(
                    {"text": "" if s == t else NONE, "shade": 0, "words": words + "not measured", "same": bool(s == t)}
                )
                continue
            part = (value - low) / (high - low) if high > low else 0.5
            shade = FAINTEST + (1 - FAINTEST) * (1 - part if near else part)
            text = _short(name, float(value))
            cells.append({"text": text, "shade": round(shade, 2), "words": words + text, "same": False})
        lines.append({"name": found.name_of(s), "cells": cells})
    ends = [_short(name, end) for end in ((high, low) if near else (low, high))]
    return {
        "title": TITLES[name].replace("\n", " "),
        "ends": ends if high > low else None,
        "names": [found.name_of(k) for k in kept],
        "lines": lines,
    }


def _ends(name: str, values: Array) -> tuple[float, float]:
    """Of the scale: shares from none to all, others from the least number to the largest."""
    if name.endswith("success"):
        return 0.0, 1.0
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def _short(name: str, value: float) -> str:
    """As short as the cell of a map."""
    if name.endswith("success"):
        return share(round(value, 2))
    if name.startswith("edc2"):
        return share(round(value), 100)
    return f"{value:.3f}" if name == "idc" else f"{value:.2f}" if name.startswith("edc1") else number(value, 2)
