"""Table 2 and Figure 2: an 8 that NET1 takes for a 3, and its distances to all other classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_002.alternates import Mistakes, least
from benchmarks.reproduce.paper_002.trust import unseen
from benchmarks.reproduce.pictures import smaller
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Claim, Number, Picture, Sheet
from flipopt.common.checks import Array
from flipopt.explain.matching import counted, percent
from flipopt.report import draw_flips

LABEL, TAKEN_FOR = 8, 3
FAR = 2.0
"""How many times farther the next class is to be, if the right one is to be by far the nearest."""
NAME = "002.table_2"


def confused(mistakes: Mistakes) -> Array:
    """Those that are like the paper's: in the half not trained on, an 8 that is taken for a 3."""
    other, predicted = unseen(mistakes.case)[mistakes.rows], mistakes.probabilities.argmax(axis=1)
    return np.flatnonzero(other & (mistakes.labels == LABEL) & (predicted == TAKEN_FOR))


def example(mistakes: Mistakes) -> int | None:
    """The one of them whose softmax is nearest to the paper's."""
    some, wanted = confused(mistakes), published()[f"{NAME}.softmax_percent"] / 100
    if len(some) == 0:
        return None
    return int(some[np.argmin(np.abs(mistakes.probabilities[some, TAKEN_FOR] - wanted))])


def table_2(desk: Desk, networks: Sequence[Mistakes]) -> tuple[list[Number], Claim, list[Sheet], list[Picture]]:
    """Of the first network the image most like the paper's: its distances and its picture."""
    first = networks[0]
    sheets, pictures, k = [], [], example(first)
    if k is not None:
        row = int(first.rows[k])
        path = desk.picture("002-figure-2.png")
        flip = fo.closest_flip_point(first.case.network, first.case.train.X[row])
        draw_flips(path, first.case.train.images[[row]], first.case.features, [flip], first.case.classes)
        smaller(path)
        pictures.append(Picture(path.name, _caption(first, row, first.case.classes[flip.classes[1]])))
        sheets.append(_sheet(first))
    return _numbers(first), _by_far([some for some in networks if example(some) is not None]), sheets, pictures


def _numbers(first: Mistakes) -> list[Number]:
    some, k = confused(first), example(first)
    count = counted(len(some), "training image")
    numbers = []
    for j in _others(first):
        ours = None if k is None else float(first.distance[k, j])
        median = f"; over all of them the median is {np.nanmedian(first.distance[some, j]):.2f}" if len(some) else ""
        why = f"Of the image that was chosen by its softmax out of {count}{median}."
        what = f"distance of the {LABEL} to a flip to “{j}”"
        numbers.append(Number(f"{NAME}.distance_to_class.{j}", what, ours, why))
    softmax = None if k is None else float(100 * first.probabilities[k, TAKEN_FOR])
    rule = (
        f"The image was chosen for it, out of {count} in the second half that show an {LABEL} and count as {TAKEN_FOR}."
    )
    return [*numbers, Number(f"{NAME}.softmax_percent", f"softmax of “{TAKEN_FOR}”, %", softmax, rule)]


def _sheet(first: Mistakes) -> Sheet:
    """The image's row, and quartiles over all images like it."""
    some, others = confused(first), _others(first)
    quartiles = np.nanquantile(first.distance[some][:, others], (0.25, 0.5, 0.75), axis=0)
    lines = {"the image": first.distance[example(first), others]}
    lines |= dict(zip(("lower quartile", "median", "upper quartile"), quartiles, strict=True))
    rows = [[name, *(f"{value:.2f}" for value in line)] for name, line in lines.items()]
    title = f"Distances to flips to each class, of the image and of all {len(some)} {LABEL}s taken for a {TAKEN_FOR}"
    return Sheet(title, ["", *(str(j) for j in others)], rows)


def _others(first: Mistakes) -> list[int]:
    return [j for j in range(len(first.case.classes)) if j != TAKEN_FOR]


def _by_far(networks: Sequence[Mistakes]) -> Claim:
    """For the image alone, and with the share of all like it beside."""
    said, holds = [], {}
    for some in networks:
        k, D = example(some), some.distance
        others = np.delete(D[k], LABEL)
        nearest = least(D[confused(some)]) == D[confused(some), LABEL]
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
    softmax = first.probabilities[example(first), TAKEN_FOR]
    return (
        f"An {LABEL} of MNIST's training set (image {row:,}, counted from 0) that {first.name} takes for a "
        f"{TAKEN_FOR} with a softmax of {100 * softmax:.1f}%; the nearest point at which the network changes its "
        f"mind, to “{other}”, drawn as an image; and the difference of the two. It was chosen as the one with the "
        f"softmax nearest to {published()[f'{NAME}.softmax_percent']:g}% among the {len(confused(first))} of the "
        f"half that {first.name} was not trained on."
    )
