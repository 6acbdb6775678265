"""What mistakes flip to (section 6.1), and the 8 that is taken for a 3 (Table 2, Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.reproduce.desk import Case, Desk
from benchmarks.reproduce.record import Claim, Sheet
from flipopt.common.checks import Array
from flipopt.explain import Alternate, alternate
from flipopt.explain.matching import counted, on_boundary, percent
from flipopt.results import FlipTable

CLOSE = {"all": 1.0, "the closest half": 0.5, "the closest tenth": 0.1}
"""The paper does not say which mistakes are close to a flip point."""
DIGITS = 4
"""To which distances are rounded before they count as tied."""
STARTS = 4
"""Of every flip, where it is checked that the nearest class is not another one by a better local minimum."""


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The training images that a network has wrong, and their flips to all other classes.

    Attributes
    ----------
    name, case
        Of which network.
    rows
        Of the training set, (mistakes,).
    flips
        The row of an entry counts the mistakes.
    """

    name: str
    case: Case
    rows: Array
    flips: FlipTable

    @classmethod
    def of(cls, name: str, case: Case, rows: Array, flips: FlipTable) -> Mistakes:
        """From flips whose rows are those of the training set."""
        return cls(name, case, rows, replace(flips, row=np.searchsorted(rows, flips.row)))

    @cached_property
    def labels(self) -> Array:
        return np.asarray(self.case.train.labels[self.rows])

    @cached_property
    def probabilities(self) -> Array:
        """Softmax, (mistakes, classes)."""
        return np.asarray(self.case.network.in_float64.probabilities(self.case.train.X[self.rows]))

    @cached_property
    def distance(self) -> Array:
        """To the nearest flip to each class, (mistakes, classes); NaN where none is known."""
        known = on_boundary(self.flips, len(self.rows), "rows")
        D = np.full((len(self.rows), len(self.case.classes)), np.nan)
        D[known.row, known.classes[:, 1]] = known.distance
        return D

    @cached_property
    def alternate(self) -> Alternate:
        return alternate(self.flips, self.labels, self.case.classes)

    @cached_property
    def tied(self) -> Array:
        """Whether the right class is the nearest, or tied with it, of every mistake of ``alternate``."""
        rounded = np.round(self.distance[self.alternate.row], DIGITS)
        return np.asarray(rounded[np.arange(len(rounded)), self.alternate.label] == least(rounded))

    @cached_property
    def by_distance(self) -> Array:
        """The mistakes of ``alternate``, those nearest to a flip first."""
        return np.argsort(least(self.distance[self.alternate.row]), kind="stable")

    def closest(self, part: str) -> Array:
        """The mistakes of ``alternate`` that are in this part."""
        return self.by_distance[: int(np.ceil(CLOSE[part] * len(self.by_distance)))]

    @property
    def shares(self) -> Mapping[str, float]:
        """Of mistakes whose right class is the nearest, exactly and with ties."""
        found = {}
        for part in CLOSE if len(self.by_distance) else ():
            rows = self.closest(part)
            found[f"right class nearest, {part}"] = float(self.alternate.right[rows].mean())
            found[f"right class nearest or tied, {part}"] = float(self.tied[rows].mean())
        return found


def least(distances: Array) -> Array:
    """The least of every row."""
    return np.nanmin(distances, axis=1) if len(distances) else np.empty(0)


def more_starts(desk: Desk, mistakes: Mistakes) -> str:
    """Of the closest mistakes, how many have another nearest class once flips are sought from several points."""
    rows = mistakes.alternate.row[mistakes.closest("the closest tenth")]
    if len(rows) == 0:
        return ""
    name, X = f"{mistakes.case.name}-mistakes-{STARTS}-starts", mistakes.case.train.X[mistakes.rows[rows]]
    again = Mistakes(
        mistakes.name, mistakes.case, mistakes.rows[rows], desk.flips(name, mistakes.case, X, "all", starts=STARTS)
    )
    before, after = (np.nan_to_num(D, nan=np.inf).argmin(axis=1) for D in (mistakes.distance[rows], again.distance))
    return (
        f" With {STARTS} starting points for every flip, another class is the nearest for "
        f"{int((before != after).sum())} of the closest {len(rows)} of {mistakes.name}."
    )


def alternate_claim(networks: Sequence[Mistakes], more: str) -> Claim:
    """Whether all mistakes that are close flip to the right class; ``more`` is added to the evidence."""
    known = [some for some in networks if some.alternate.mistakes]
    return Claim(
        "all mistakes that are close to a flip point have the right class on the other side of the nearest one, or of "
        f"one tied with it after rounding to {DIGITS} decimals",
        "section 6.1",
        "; ".join(
            f"{some.name}, {counted(some.alternate.mistakes, 'mistake')}: "
            + ", ".join(f"{percent(float(some.tied[some.closest(part)].mean()))} of {part}" for part in CLOSE)
            for some in known
        )
        + ". The paper does not say what is close; the claim counts as holding if it does for the closest tenth."
        + more,
        {some.name: bool(some.tied[some.closest("the closest tenth")].all()) for some in known},
    )


def alternate_sheet(networks: Sequence[Mistakes]) -> list[Sheet]:
    """Shares and ranks of the right class."""
    places = ("1st", "2nd", "3rd")
    rows = []
    for some in networks:
        found = some.alternate
        if found.mistakes:
            low, high = found.interval
            shares = [percent(some.tied[some.closest(part)].mean()) for part in CLOSE]
            ranks = [str(int((found.rank == k).sum())) for k in range(1, len(places) + 1)]
            later = str(int(((found.rank > len(places)) | (found.rank == 0)).sum()))
            exact = f"{percent(found.share)} ({percent(low)} to {percent(high)})"
            rows.append([some.name, f"{found.mistakes:,}", exact, *shares, *ranks, later])
    parts = [f"{part}, with ties" for part in CLOSE]
    head = ["network", "mistakes", "nearest class is right (95% interval)", *parts, *places, "later"]
    title = "Mistakes in the training set whose right class is the nearest of all others, and its place by distance"
    return [Sheet(title, head, rows)] if rows else []
