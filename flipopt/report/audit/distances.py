"""How far inputs are from flipping, and how much of that is proved."""

from __future__ import annotations

from collections import Counter

import numpy as np

from flipopt.report.audit.section import Grid, Section, counted, number, share
from flipopt.report.audit.study import Study
from flipopt.results import Status

TITLE = "How far inputs are from flipping"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def distances(study: Study, lower: np.ndarray | None, why_not: str) -> Section:
    """The distribution of distances, by class, with the proved part ``lower`` (entries,) or why there is none."""
    how = f"{_verdicts(study)} A distance is the {study.measure}. {_proof(study, lower, why_not)}"
    facts = {"statuses": _statuses(study), "proved": lower is not None}
    found = study.distance[study.found]
    if len(found) == 0:
        return Section("distances", TITLE, "No flip point was found, so nothing can be said.", how, facts)
    low, tenth, median = np.quantile(found, (0, 0.1, 0.5))
    answer = (
        f"Half of the inputs change class within {number(median)}, a tenth within {number(tenth)}, "
        f"the most fragile at {number(low)}."
    )
    if len(found) == 1:
        answer = f"The one input changes class at {number(median)}."
    if study.searched:
        answer += f" {_proofs(study)}"
    elif lower is not None:
        answer += f" For half of them no flip can exist within {number(float(np.median(lower[study.found])))}."
    return Section("distances", TITLE, answer, how, {**facts, "classes": _by_class(study, lower)})


def _proofs(study: Study) -> str:
    """How many flips are proved closest, and how much of the distance is proved of the others."""
    sure, found = int(study.proved.sum()), int(study.found.sum())
    if sure == found:
        return "It is proved that there is no nearer flip." if found == 1 else "All of these flips are proved closest."
    left = study.found & ~study.proved
    least = float(np.nanmin(study.flips.lower_bound[left] / study.distance[left], initial=1.0))
    none = "None" if sure == 0 else f"{sure:,}"
    return f"{none} of {counted(found, 'flip')} proved closest; of the others at least {share(least)} of the distance."


def _verdicts(study: Study) -> str:
    verified = int(study.flips.success.sum())
    unsettled = int((~study.flips.settled & study.found & ~study.proved).sum())
    text = f"The nearest flip of any class was sought for {counted(len(study), 'input')}; {verified:,} are verified."
    loose = int(study.found.sum()) - int((study.flips.success & study.found).sum())
    if loose:
        text += f" {loose:,} are on the boundary but not proved closest, so that their distances may be too large."
    if unsettled:
        text += (
            f" For {unsettled:,} a class was given up on the way because another one looked nearer, so that a nearer "
            "flip to it is possible."
        )
    return text


def _proof(study: Study, lower: np.ndarray | None, why_not: str) -> str:
    if lower is None:
        return f"Nothing is proved about smaller changes: {why_not}."
    if study.searched:
        return (
            "Proved by branch and bound: no flip is nearer than the lower bound, and where that is the distance, to a "
            "millionth, the flip is the closest one."
        )
    shares = lower[study.found] / study.distance[study.found]
    typical = f", {100 * float(np.median(shares)):.2g}% of the distance at the median" if len(shares) else ""
    return f"Proved: no point nearer than a bound on the network's slopes allows can be a flip{typical}."


def _statuses(study: Study) -> Grid:
    counts = Counter(study.flips.status)
    rows = tuple((status.name, f"{counts[status]:,}", status.message) for status in Status if counts[status])
    return Grid(("status", "inputs", "meaning"), rows, worded=True)


def _by_class(study: Study, lower: np.ndarray | None) -> Grid:
    rows = []
    for k, name in enumerate(study.classes):
        mine = study.found & (study.predicted == k)
        if mine.any():
            quantiles = [number(float(value)) for value in np.quantile(study.distance[mine], QUANTILES)]
            proved = [] if lower is None else [number(float(np.median(lower[mine])))]
            rows.append((name, f"{int(mine.sum()):,}", *quantiles, *proved))
    head = ("class", "inputs", *(f"{100 * q:.0f}%" for q in QUANTILES))
    return Grid((*head, "proved, 50%") if lower is not None else head, tuple(rows))
