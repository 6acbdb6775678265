"""Figure 3: does the distance to the nearest flip tell mistakes from right answers, and does the softmax?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Case, Desk
from benchmarks.reproduce.record import Claim, Number
from flipopt.common.checks import Array
from flipopt.explain import Trust
from flipopt.explain.matching import percent
from flipopt.explain.trust import Predictor

HIGH = 0.8
"""Softmax that most mistakes have or exceed."""
NEAR = 0.95
"""Share of mistakes that are to be nearer than half of the right answers, if "almost always" is to hold."""
CHANCE = 0.5
FOUND = 0.9
"""Share of mistakes to be found, for what that costs in right answers that are suspected too."""
NAME = "002.figure_3"


@dataclass(frozen=True, eq=False)
class Trusted:
    """Distance and softmax of the training images of a network.

    Attributes
    ----------
    name, case
        Of which network.
    whole
        Of all training images; None if they are not known.
    unseen
        Of images that the network was not trained on: of the others it has nearly all right.
    """

    name: str
    case: Case
    whole: Trust | None
    unseen: Trust

    @property
    def comparable(self) -> bool:
        """Whether there are mistakes enough to compare predictors of them."""
        return self.unseen.mistakes > 1

    @property
    def near(self) -> float:
        """Share of mistakes that are nearer to a flip than the median right answer."""
        distance, wrong = self.unseen.distance.values, self.unseen.wrong
        return float((distance[wrong] < np.median(distance[~wrong])).mean())

    @property
    def high(self) -> float:
        """Share of mistakes with a high softmax."""
        return float((self.unseen.softmax.values[self.unseen.wrong] >= HIGH).mean())


def unseen(case: Case) -> Array:
    """Which training images are in the half that the network was not trained on, (rows,) bool."""
    first = np.arange(len(case.train)) < len(case.train) // 2
    return ~first if case.recipe.half == 0 else first


def figure_3(desk: Desk, trusted: Sequence[Trusted]) -> tuple[list[Number], list[Claim], tuple[str, str]]:
    """The ranges of softmax, what is claimed of softmax and distance, and the picture with its caption."""
    whole = [(some.name, some.whole) for some in trusted if some.whole is not None]
    path = desk.picture("002-figure-3.png")
    _draw(path, trusted)
    some = [some for some in trusted if some.comparable]
    return _numbers(whole), [_near(some), _separates(some), _better(some)], (path.name, _caption(whole))


def _numbers(whole: Sequence[tuple[str, Trust]]) -> list[Number]:
    """Over both networks together, as in the figure."""
    softmax = np.concatenate([100 * trust.softmax.values for _, trust in whole])
    wrong = np.concatenate([trust.wrong for _, trust in whole])
    images = " and ".join(f"{trust.mistakes:,} by {name}" for name, trust in whole)
    over = f"Of all training images by both networks, {len(wrong):,} in all; mistakes: {images}."
    numbers = []
    for key, what, values in (("mistakes", "mistakes", softmax[wrong]), ("correct", "right answers", softmax[~wrong])):
        ends = [float(values.min()), float(values.max())] if len(values) else [None, None]
        numbers += [
            Number(f"{NAME}.softmax_of_{key}_percent.{k}", f"{which} softmax of {what}, %", end, over)
            for k, (which, end) in enumerate(zip(("least", "largest"), ends, strict=True))
        ]
    high = float(100 * (softmax[wrong] >= 100 * HIGH).mean()) if wrong.any() else None
    name, what = f"{NAME}.mistakes_with_softmax_over_80_percent", "mistakes with softmax of 80% or more, %"
    return [*numbers, Number(name, what, high, over)]


def _near(trusted: Sequence[Trusted]) -> Claim:
    return Claim(
        "mistakes almost always have a small distance, and most of them a softmax of 80% or more",
        "Figure 3",
        "of the mistakes among images that the network was not trained on, nearer to a flip than half of the right "
        f"answers, and with softmax from {percent(HIGH)} on: "
        + "; ".join(f"{some.name} {percent(some.near)} and {percent(some.high)}" for some in trusted)
        + ".",
        {some.name: some.near >= NEAR and some.high > 0.5 for some in trusted},
    )


def _separates(trusted: Sequence[Trusted]) -> Claim:
    """The words of the paper on softmax are stronger than that distance is better."""
    said = []
    for some in trusted:
        low, high = some.unseen.softmax.interval
        said.append(f"{some.name} {some.unseen.softmax.auc:.3f} (95% interval {low:.3f} to {high:.3f})")
    return Claim(
        "softmax does not separate mistakes from right answers",
        "Figure 3",
        "how often a mistake has less softmax than a right answer, of images that the network was not trained on: "
        f"{'; '.join(said)}. By chance it is half the time, and the claim counts as holding where that is in the "
        "interval.",
        {some.name: some.unseen.softmax.interval[0] <= CHANCE for some in trusted},
    )


def _better(trusted: Sequence[Trusted]) -> Claim:
    return Claim(
        "distance to the nearest flip is a more reliable indicator of mistakes than softmax",
        "Figure 3",
        "how often a mistake has less distance than a right answer, and how much oftener than it has less softmax: "
        + "; ".join(map(_compared, trusted))
        + ". The claim counts as holding where the interval is above 0.",
        {some.name: some.unseen.better == "distance" for some in trusted},
    )


def _compared(some: Trusted) -> str:
    trust = some.unseen
    low, high = trust.difference_interval
    costs = [percent(suspected(by)) for by in (trust.distance, trust.softmax)]
    return (
        f"{some.name} {trust.distance.auc:.3f} and {trust.difference:+.3f} (95% interval {low:+.3f} to {high:+.3f}); "
        f"to find {percent(FOUND)} of its {trust.mistakes:,} mistakes, {costs[0]} of right answers must be suspected "
        f"by distance and {costs[1]} by softmax"
    )


def suspected(by: Predictor) -> float:
    """Share of right answers with values as low as the lowest that find so many of the mistakes."""
    false, true = by.roc
    return float(false[np.searchsorted(true, FOUND)])


def _caption(whole: Sequence[tuple[str, Trust]]) -> str:
    count = sum(len(trust.row) for _, trust in whole)
    names = " and ".join(name for name, _ in whole)
    return (
        "Softmax of the predicted class against the distance to the nearest flip point, for all MNIST training "
        f"images by {names} ({count:,} points; colours count them, on a scale of logarithms): mistakes, and right "
        "answers. Right: which share of the mistakes is found when images of low distance, or of low softmax, are "
        "suspected, on images that the network was not trained on."
    )


def _draw(path: Path, trusted: Sequence[Trusted]) -> None:
    figure = pictures.figure(10, 3.5)
    left, middle, right = figure.subplots(1, 3)
    whole = [some.whole for some in trusted if some.whole is not None]
    distance, softmax = (
        np.concatenate([getattr(trust, by).values for trust in whole]) for by in ("distance", "softmax")
    )
    wrong = np.concatenate([trust.wrong for trust in whole])
    most = float(distance.max(initial=1e-9))
    for axis, which, colours, what in ((left, wrong, "Reds", "mistakes"), (middle, ~wrong, "Blues", "right answers")):
        _points(axis, distance[which], softmax[which], most, colours)
        axis.set(xlabel="distance to the nearest flip", xlim=(0, most), ylim=(0.2, 1.02))
        axis.set_title(f"{which.sum():,} {what}", fontsize=9)
    left.set_ylabel("softmax")
    for some, style in zip(trusted, ("-", "--", ":"), strict=False):
        if some.comparable:
            for by, colour in ((some.unseen.distance, pictures.BLUE), (some.unseen.softmax, pictures.RED)):
                label = f"{some.name}, {by.name}: {by.auc:.3f}"
                right.plot(*by.roc, style, color=colour, lw=1, label=label)
    right.plot([0, 1], [0, 1], color="0.75", lw=0.8, ls=":")
    right.set(xlabel="right answers suspected", ylabel="mistakes found")
    right.set_title("ROC curves (area)", fontsize=9)
    if right.get_legend_handles_labels()[0]:
        right.legend(frameon=False, fontsize=7, loc="lower right")
    pictures.save(figure, path)


def _points(axis: Any, distance: Array, softmax: Array, most: float, colours: str) -> None:
    if len(distance):
        extent = (0, most, 0.2, 1.02)
        shades = axis.hexbin(
            distance, softmax, gridsize=(45, 22), extent=extent, bins="log", mincnt=1, cmap=colours, linewidths=0.1
        )
        axis.figure.colorbar(shades, ax=axis, label="images")
