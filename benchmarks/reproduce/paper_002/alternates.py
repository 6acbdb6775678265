"""What mistakes flip to (section 6.1), and the 8 that is taken for a 3 (Table 2, Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Case, Desk
from benchmarks.reproduce.paper_002.trust import unseen
from benchmarks.reproduce.pictures import smaller
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Claim, Number, Picture, Sheet
from flipopt.common.checks import Array
from flipopt.explain import Alternate, alternate
from flipopt.explain.matching import counted, on_boundary, percent
from flipopt.report import draw_flips
from flipopt.results import FlipTable

CLOSE = {"all": 1.0, "the closest half": 0.5, "the closest tenth": 0.1}
"""The paper does not say which mistakes are close to a flip point."""
DIGITS = 4
"""To which distances are rounded before they count as tied."""
LABEL, TAKEN_FOR = 8, 3
STARTS = 4
"""Of every flip, where it is checked that the nearest class is not another one by a better local minimum."""
FAR = 2.0
"""How many times farther the next class is to be, if the right one is to be by far the nearest."""
NAME = "002.table_2"


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
        return np.asarray(rounded[np.arange(len(rounded)), self.alternate.label] == _least(rounded))

    @cached_property
    def by_distance(self) -> Array:
        """The mistakes of ``alternate``, those nearest to a flip first."""
        return np.argsort(_least(self.distance[self.alternate.row]), kind="stable")

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

    def confused(self) -> Array:
        """The mistakes that are like the paper's: in the half not trained on, an 8 that is taken for a 3."""
        other, predicted = unseen(self.case)[self.rows], self.probabilities.argmax(axis=1)
        return np.flatnonzero(other & (self.labels == LABEL) & (predicted == TAKEN_FOR))

    @property
    def example(self) -> int | None:
        """The one of them whose softmax is nearest to the paper's."""
        some, wanted = self.confused(), published()[f"{NAME}.softmax_percent"] / 100
        if len(some) == 0:
            return None
        return int(some[np.argmin(np.abs(self.probabilities[some, TAKEN_FOR] - wanted))])


def _least(distances: Array) -> Array:
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
    before, after = (np.nanargmin(D, axis=1) for D in (mistakes.distance[rows], again.distance))
    return (
        f" With {STARTS} starting points for every flip, another class is the nearest for {int((before != after).sum())} "
        f"of the closest {len(rows)} of {mistakes.name}."
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


def table_2(desk: Desk, networks: Sequence[Mistakes]) -> tuple[list[Number], Claim, list[Picture]]:
    """Of the first network the image most like the paper's: its distances and its picture."""
    first = networks[0]
    numbers = _numbers(first)
    pictures = []
    if first.example is not None:
        row = int(first.rows[first.example])
        path = desk.picture("002-figure-2.png")
        flip = fo.closest_flip_point(first.case.network, first.case.train.X[row])
        draw_flips(path, first.case.train.images[[row]], first.case.features, [flip], first.case.classes)
        smaller(path)
        pictures.append(Picture(path.name, _caption(first, row, first.case.classes[flip.classes[1]])))
    return numbers, _by_far([some for some in networks if some.example is not None]), pictures


def _numbers(first: Mistakes) -> list[Number]:
    some, k = first.confused(), first.example
    numbers = []
    for j in range(len(first.case.classes)):
        if j == TAKEN_FOR:
            continue
        known = first.distance[some, j][np.isfinite(first.distance[some, j])]
        why = f"There is no {LABEL} taken for a {TAKEN_FOR}."
        if len(known):
            low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
            why = (
                f"Of the image chosen by softmax; over all {len(some)} {LABEL}s taken for a {TAKEN_FOR} the median is "
                f"{middle:.2f}, the quartiles are {low:.2f} and {high:.2f}."
            )
        ours = None if k is None else float(first.distance[k, j])
        numbers.append(
            Number(f"{NAME}.distance_to_class.{j}", f"distance of the {LABEL} to a flip to “{j}”", ours, why)
        )
    softmax = None if k is None else float(100 * first.probabilities[k, TAKEN_FOR])
    rule = f"The {LABEL} was chosen for it, out of {len(some)} in the second half that {first.name} takes for a {TAKEN_FOR}."
    return [*numbers, Number(f"{NAME}.softmax_percent", f"softmax of “{TAKEN_FOR}”, %", softmax, rule)]


def _by_far(networks: Sequence[Mistakes]) -> Claim:
    """For the image alone, and with the share of all like it beside."""
    said, holds = [], {}
    for some in networks:
        k, D = some.example, some.distance
        others = np.delete(D[k], LABEL)
        nearest = _least(D[some.confused()]) == D[some.confused(), LABEL]
        holds[some.name] = bool(np.nanmin(others) >= FAR * D[k, LABEL])
        said.append(
            f"{some.name}: “{LABEL}” at {D[k, LABEL]:.2f}, the nearest other class at {np.nanmin(others):.2f}; of all "
            f"{len(nearest)} such images “{LABEL}” is the nearest for {percent(float(nearest.mean()))}"
        )
    return Claim(
        f"of an {LABEL} taken for a {TAKEN_FOR} with high softmax, the right class is by far the nearest",
        "Table 2",
        f"{'; '.join(said)}. By far means that no other class is within {FAR:g} times its distance.",
        holds,
    )


def _caption(first: Mistakes, row: int, other: str) -> str:
    softmax = first.probabilities[first.example, TAKEN_FOR]
    return (
        f"An {LABEL} of MNIST's training set (image {row:,}, counted from 0) that {first.name} takes for a {TAKEN_FOR} "
        f"with a softmax of {100 * softmax:.1f}%; the nearest point at which the network changes its mind, to “{other}”, "
        "drawn as an image; and the difference of the two. It was chosen as the one with the softmax nearest to "
        f"{published()[f'{NAME}.softmax_percent']:g}% among the {len(first.confused())} of the half that {first.name} was "
        "not trained on."
    )
