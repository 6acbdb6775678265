"""Whether the distance to a flip or the softmax tells mistakes better."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.explain.trust import UNKNOWN, Predictor, Trust
from flipopt.explain.trust import trust as explain_trust
from flipopt.report.audit.section import Grid, Section, counted, number
from flipopt.report.audit.study import Study

TITLE = "Whether distance or softmax tells mistakes"
MOST_POINTS = 300
"""Of a drawn curve."""


def trust(study: Study) -> Section:
    """ROC curves and shares of mistakes by tenths of both predictors; needs labels, mistakes and right answers."""
    how = (
        "An input is flagged if its distance, or its softmax, is low. The area under the curve says how often a "
        "mistake is flagged before a right answer (0.5: chance), with its 95% interval; bars: the share of mistakes "
        "among equal parts of the inputs, with 95% intervals."
    )
    if study.labels is None:
        return Section("trust", TITLE, "Needs labels: without them it is not known which answers are mistakes.", how)
    found = explain_trust(study.numbered, study.network, study.X, study.truth)
    if np.isnan(found.distance.auc):
        answer = f"Cannot be said: there {_are(found)}, and it takes both mistakes and right answers."
        return Section("trust", TITLE, answer, how)
    return Section("trust", TITLE, _answer(found), how, {"areas": _areas(found)}, {"trust": _drawn(found)})


def _are(found: Trust) -> str:
    if len(found.row) == 0:
        return "is no input with a flip point"
    if found.mistakes == 0:
        return f"are no mistakes among {counted(len(found.row), 'input')}"
    return f"are no right answers among {counted(len(found.row), 'input')}"


def _answer(found: Trust) -> str:
    low, high = found.difference_interval
    ahead = "they are alike"
    if abs(found.difference) >= 0.0005:  # what the areas show
        ahead = f"{'distance' if found.difference > 0 else 'softmax'} is ahead"
    areas = f"(areas {found.distance.auc:.3f} and {found.softmax.auc:.3f})"
    if np.isnan(low):
        few = f"{counted(found.mistakes, 'mistake')} among {counted(len(found.row), 'input')}"
        return f"Cannot be said: {few} are too few to compare the two {areas}."
    if found.better == UNKNOWN:
        return (
            f"Neither is clearly better with {counted(found.mistakes, 'mistake')}: {ahead} {areas}, but the "
            f"difference may be anything from {low:+.3f} to {high:+.3f}."
        )
    other = "softmax" if found.better == "distance" else "distance"
    area = "The distance" if found.better == "distance" else "The softmax"
    return f"{area} tells {counted(found.mistakes, 'mistake')} better than the {other} does {areas}."


def _areas(found: Trust) -> Grid:
    rows = tuple(
        (p.name, f"{p.auc:.3f}", f"{p.interval[0]:.3f} to {p.interval[1]:.3f}", number(p.average_precision))
        for p in (found.distance, found.softmax)
    )
    chance = ("chance", "0.500", "", number(found.mistakes / len(found.row)))
    return Grid(("predictor", "area under ROC", "95% interval", "average precision"), (*rows, chance))


def _drawn(found: Trust) -> dict[str, Any]:
    return {p.name: _curves(p) for p in (found.distance, found.softmax)}


def _curves(predictor: Predictor) -> dict[str, Any]:
    curve = np.column_stack(predictor.roc)
    thinned = curve[np.unique(np.linspace(0, len(curve) - 1, MOST_POINTS).astype(int))]
    table = predictor.calibration
    bins = np.column_stack([table.share, table.low, table.high])
    return {"auc": f"{predictor.auc:.3f}", "roc": thinned.round(4), "bins": bins.round(4)}
