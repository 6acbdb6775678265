"""Figures 5 to 7: a ship and its flip point, mean changes of pixels, and principal components of changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_002.directions_groups import LEVELS, Groups, Moved
from benchmarks.reproduce.record import Picture
from flipopt.explain.matching import counted, percent
from flipopt.report import draw_directions

MAGNIFIED, COMPONENTS = 25, 3
"""Of Figures 6 and 7."""


def figures_5_to_7(desk: Desk, groups: Groups) -> list[Picture]:
    """Figures 5 to 7, where there are mistakes to draw."""
    found = []
    if len(groups.ships.directions.row):
        found.append(_figure_5(desk.picture("002-figure-5.png"), groups.ships))
    drawn = [(what, moved) for what, moved in groups.by_class if len(moved.directions.row)]
    if drawn:
        found.append(_figure_6(desk.picture("002-figure-6.png"), drawn))
    if len(groups.planes.directions.row):
        found.append(_figure_7(desk.picture("002-figure-7.png"), groups.planes))
    return found


def _figure_5(path: Path, ships: Moved) -> Picture:
    """The ship at the median."""
    k = int(np.argsort(ships.norms, kind="stable")[len(ships.norms) // 2])
    before, change = ships.found.images[k], ships.pixels[k]
    figure = pictures.figure(6.6, 2.8)
    left, middle, right = figure.subplots(1, 3)
    pictures.show_image(left, before, "ship, taken for an airplane")
    pictures.show_image(middle, before / LEVELS + change / LEVELS, "its nearest flip point")
    pictures.show_change(right, change, "difference in levels")
    pictures.save(figure, path)
    return Picture(
        path.name,
        "A ship of CIFAR-10's test set that the network takes for an airplane, the nearest point at which it is "
        "undecided, and the difference in levels of 0 to 255, averaged over colours. The absolute changes add up to "
        f"{ships.norms[k]:,.0f} levels over all pixels, the largest is {np.abs(change).max():.1f}; half of such ships "
        "take less.",
    )


def _figure_6(path: Path, drawn: Sequence[tuple[str, Moved]]) -> Picture:
    figure = pictures.figure(3.0 * len(drawn), 3.0)
    for axis, (what, moved) in zip(np.ravel(figure.subplots(1, len(drawn))), drawn, strict=True):
        mean = moved.pixels.mean(axis=0) / LEVELS
        pictures.show_image(axis, 0.5 + MAGNIFIED * mean, f"{what}: {len(moved.directions.row)}")
    pictures.save(figure, path)
    return Picture(
        path.name,
        f"Average change of pixels that flips a mistake to its right class, {MAGNIFIED} times magnified around grey: "
        + " and ".join(f"{what} ({len(moved.directions.row)} images)" for what, moved in drawn)
        + ". Grey pixels do not change on average; a colour is made stronger where it shows.",
    )


def _figure_7(path: Path, planes: Moved) -> Picture:
    found = planes.directions
    draw_directions(path, found, count=COMPONENTS)
    pictures.smaller(path)
    share = float(found.share[:COMPONENTS].sum())
    return Picture(
        path.name,
        f"Below, the first {COMPONENTS} principal components of the changes that flip "
        f"{counted(len(found.row), 'airplane')} taken for ships to their right class, as changes of pixels around "
        f"grey; they make up {percent(share)} of the squared changes. Above, how many components make up which share "
        "of them, and the largest change of every wavelet coefficient.",
    )
