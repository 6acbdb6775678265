"""Between the classes: success, distances, IDC and EDC of every pair of classes, and the most fragile pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.borderline import Instances, Measuring, Profile
from flipopt.borderline import profile as measured
from flipopt.explain.matching import class_names
from flipopt.report.audit.heat import heat_maps
from flipopt.report.audit.pairs import cards
from flipopt.report.audit.section import NONE, Grid, Section, counted, number, share
from flipopt.report.audit.study import Given

TITLE = "Between the classes"
HOW = (
    "Distances are 2-norms of the change of all inputs, from samples of the first class, in the median. Success is the "
    "share of searches that end on the boundary of the two classes with no third class ahead: from random pairs of "
    "samples, from pairs whose last hidden layers are the nearest (both by halving the line between the two, Algorithm "
    "1 of Karimi, Derr and Tang), or for the closest flip point."
)
LEAST = 3
"""Boundaries that a correlation needs."""
MOST_PAIRS = 1000
"""Pairs in the table of numbers, the most fragile of them."""
NUMBERS = (
    ("closest_distance", "closest flip"),
    ("closest_converged", "verified"),
    ("closest_success", "on the boundary"),
    ("given_success", "given"),
    ("epbs_success", "nearest pairs"),
    ("rpbs_success", "random pairs"),
    ("idc", "IDC"),
    ("edc1_borderline", "EDC1"),
    ("edc1_test", "EDC1, test"),
    ("edc2_borderline", "EDC2"),
    ("edc2_test", "EDC2, test"),
)
"""Columns of the table of numbers."""
SHARES = ("success", "converged")


def measure(
    given: Given,
    options: Measuring,
    pairs: Any = "all",
    instances: Instances | None = None,
    run: str | Path | None = None,
    executor: Any = None,
    progress: bool = False,
) -> Profile:
    """The profile of what is given, by the names that the page has for the classes."""
    found = measured(
        given.network,
        given.X,
        given.truth,
        pairs,
        instances=instances,
        options=options,
        run=run,
        executor=executor,
        progress=progress,
    )
    return found.named(class_names(given.classes, given.network))


def measurable(given: Given) -> bool:
    """Whether two classes or more have samples that the network puts there."""
    right = given.sound if given.wrong is None else given.sound & ~given.wrong
    return len(np.unique(given.predicted[right])) > 1


def boundaries(given: Given, found: Profile, options: Measuring, instances: Instances | None = None) -> Section:
    """What a profile says, with pictures of the most fragile pairs; ``options`` and ``instances`` are those of it."""
    maps = heat_maps(found)
    if not maps:
        return Section("boundaries", TITLE, "Nothing could be measured, so nothing can be said.", HOW, _lacking(found))
    facts = _lacking(found) | {
        "maps": maps,
        "cards": cards(given, found, options, instances),
        "on": _measured_on(options, instances),
        "idc": bool(np.isfinite(found.idc).any()),
        "edc": bool(np.isfinite(found.edc1_borderline).any()),
        "correlation": correlation(found),
        "numbers": _numbers(found),
        "left_out": max(0, len(found) - MOST_PAIRS),
    }
    return Section("boundaries", TITLE, _answer(found), HOW, facts)


def nothing_between() -> Section:
    """Where there is no second class."""
    answer = "Cannot be said: fewer than two classes have samples that the network puts there."
    return Section("boundaries", TITLE, answer, HOW)


def missing(found: Profile) -> list[str]:
    """What could not be had, each note once: "6 pairs: no EDC: ..."."""
    notes = found.note.tolist()
    return [f"{counted(notes.count(note), 'pair')}: {note}" for note in dict.fromkeys(notes) if note]


def correlation(found: Profile) -> str:
    """Of IDC with EDC2, in a sentence."""
    some = found.correlation("idc", "edc2_borderline")
    if some.n < LEAST:
        return (
            f"How IDC and EDC2 go together cannot be said: that needs {LEAST} boundaries with both, and {some.n} have."
        )
    if not np.isfinite(some.r):
        return f"IDC or EDC2 is the same for all {some.n} boundaries, so that they have no correlation."
    return (
        f"The correlation (Pearson) of IDC with EDC2 of borderline instances is r = {some.r:.2f} (p = {some.p:.2g}, "
        f"n = {some.n} boundaries, the two directions of each averaged). Boundaries share classes and are not "
        "independent, as the p-value supposes."
    )


def _lacking(found: Profile) -> dict[str, Any]:
    return {"missing": missing(found)}


def _measured_on(options: Measuring, instances: Instances | None) -> str:
    names = {"rpbs": "random pairs", "epbs": "pairs nearest in the last hidden layer", "closest": "closest flip points"}
    return "the instances that were handed in" if instances is not None else names[options.on]


def _answer(found: Profile) -> str:
    """The shortest way, and the range of IDC."""
    words = f"{counted(len(found), 'ordered pair')} of {len(np.unique(found.classes))} classes were measured"
    first = found.most_fragile(1)
    if len(first):
        (s, t), closest = first.classes[0], np.isfinite(first.closest_distance[0])
        distance = float(first.closest_distance[0] if closest else first.epbs_distance[0])
        what = "closest flip" if closest else "boundary, on lines between nearest pairs,"
        words += (
            f"; the shortest way leads from “{found.name_of(s)}” to “{found.name_of(t)}”, where the {what} is "
            f"{number(distance)} away in the median"
        )
    known = np.isfinite(found.idc)
    if known.any():
        words += f"; IDC is between {found.idc[known].min():.3f} and {found.idc[known].max():.3f}"
    return f"{words}."


def _numbers(found: Profile) -> Grid:
    """A line a pair, the most fragile first, with the columns that have a number."""
    kept = [(name, head) for name, head in NUMBERS if np.isfinite(getattr(found, name)).any()]
    order = np.argsort(found.closest_distance, kind="stable")[:MOST_PAIRS]
    rows = tuple(
        (
            f"“{found.name_of(found.classes[k, 0])}” to “{found.name_of(found.classes[k, 1])}”",
            f"{found.sources[k]:,}",
            *(as_text(name, float(getattr(found, name)[k])) for name, _ in kept),
        )
        for k in order
    )
    return Grid(("from, to", "samples", *(head for _, head in kept)), rows)


def as_text(name: str, value: float) -> str:
    """A number of a column, as the page shows it."""
    if not np.isfinite(value):
        return NONE
    if name.endswith(SHARES):
        return share(value)
    if name.startswith("edc2"):
        return share(value, 100)
    return f"{value:.3f}" if name.startswith(("idc", "edc1")) else number(value)
