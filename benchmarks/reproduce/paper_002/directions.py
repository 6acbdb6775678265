"""Section 6.2: airplanes and ships, and the directions in which pixels change to flip them (Figures 5 to 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Case, Desk, Images
from benchmarks.reproduce.paper_002.accuracy import settings
from benchmarks.reproduce.paper_002.likeness import ENOUGH, LARGEST, Likeness, Neighbours, likeness, neighbours
from benchmarks.reproduce.record import Claim, Number, Picture, Record, setting
from benchmarks.reproduce.trainings import Job
from flipopt.common.checks import Array
from flipopt.explain import Directions, directions
from flipopt.explain.matching import counted, percent
from flipopt.report import draw_directions
from models.recipes import RECIPES

LEVELS = 255
HALF = 0.5
"""Of a level: smaller changes of a pixel count as none."""
NEARLY_ALL = (0.99, 0.95, 0.5)
"""Shares of the mistakes in which a pixel may have to stay unchanged, if not in all."""
MAGNIFIED, COMPONENTS = 25, 3
"""Of Figures 6 and 7."""
PLANE, SHIP = 0, 1
NAME = "002.cifar"
ACCURACY = "Dropout, shifts and weight decay, which the paper does not name; chosen by looking at the test set."
Numbers = list[Number]


@dataclass(frozen=True, eq=False)
class Moved:
    """Images and their flips to the other of two classes.

    Attributes
    ----------
    images
        Which.
    directions
        From them to their nearest flips; its rows are those of the images that have one.
    """

    images: Images
    directions: Directions

    @property
    def pixels(self) -> Array:
        """Changes of pixels in levels, (flips, \\*shape)."""
        changes = self.directions.changes
        if len(changes) == 0:
            return np.empty((0, *self.images.images.shape[1:]))
        return np.asarray(LEVELS * self.directions.as_images(changes))

    @property
    def norms(self) -> Array:
        """Sums of the absolute changes, (flips,)."""
        return np.asarray(np.abs(self.pixels).sum(axis=(1, 2, 3)))

    @property
    def found(self) -> Images:
        """The images that have a flip."""
        return self.images.take(self.directions.row)


@dataclass(frozen=True, eq=False)
class Groups:
    """Of a network: its mistakes in the test set, by the right class and together, and right answers of both sets."""

    mistakes: Moved
    planes: Moved
    ships: Moved
    test: Moved
    train: Moved

    @property
    def by_class(self) -> tuple[tuple[str, Moved], tuple[str, Moved]]:
        return ("airplanes taken for ships", self.planes), ("ships taken for airplanes", self.ships)


def cifar(desk: Desk) -> Record:
    """The 2,500-input network of section 6.2; its claims on the network with 200 inputs too."""
    case, other = desk.case("cifar-2500"), desk.case("cifar-200")
    groups, others = groups_of(desk, case, desk.few(500, 24)), groups_of(desk, other, desk.few(200, 24))
    accuracy = desk.trained([Job(RECIPES["cifar-2500"], 0, keep=True)])[0].accuracy["test"]
    named = {case.name: groups, other.name: others}
    alike = {name: likeness(some.train.directions, some.test.directions) for name, some in named.items()}
    near = {name: neighbours(parts) for name, some in named.items() if (parts := _components(some))}
    claims = (_similar(alike), _next_to(near))
    return Record(
        title="Airplanes and ships: which pixels flip them (section 6.2, Figures 5 to 7)",
        summary=f"The network with 2,500 inputs has {counted(len(groups.mistakes.images), 'mistake')} among "
        f"{len(case.test):,} test images. For each of them, and for {len(groups.test.images)} right answers of the test "
        f"set and {len(groups.train.images)} of the training set, the nearest flip point was computed in the space of "
        "wavelet coefficients, and the changes turned into changes of pixels. Claims were looked at on the network with "
        "200 inputs of the other paper too.",
        setup={"recipe": case.recipe.name, "right answers": [len(groups.test.images), len(groups.train.images)]},
        seeds=(0,),
        numbers=[*settings("002.setup_cifar", case.recipe, len(case.classes)), *_numbers(accuracy, groups)],
        claims=[claim for claim in claims if claim.holds],
        pictures=_pictures(desk, groups),
        figures={
            "mistakes": {what: len(some.images) for what, some in groups.by_class},
            "sum of absolute changes": {what: _quartiles(some.norms) for what, some in groups.by_class},
            "distance of right answers, median": {
                what: float(np.median(np.linalg.norm(some.directions.changes, axis=1)))
                for what, some in (("training", groups.train), ("test", groups.test))
                if len(some.directions.row)
            },
            "directions for 90, 95 and 99% of squared changes": [
                groups.mistakes.directions.needed(share) for share in (0.9, 0.95, 0.99)
            ],
        },
    )


def groups_of(desk: Desk, case: Case, sample: int) -> Groups:
    """Flips of all mistakes in the test set, and of so many right answers of both sets, drawn at random."""
    right, trained = (case.predicted(images) == images.labels for images in (case.test, case.train))
    parts = [
        case.test.take(np.flatnonzero(~right)),
        case.test.take(_some(np.flatnonzero(right), sample)),
        case.train.take(_some(np.flatnonzero(trained), sample)),
    ]
    images = Images(*(np.concatenate([getattr(part, of) for part in parts]) for of in ("images", "labels", "X")))
    flips = desk.flips(f"{case.name}-directions", case, images.X)
    ends = np.cumsum([0, *map(len, parts)])
    mistakes, test, train = (np.arange(low, high) for low, high in pairwise(ends))

    def moved(rows: Array) -> Moved:
        own = flips[np.isin(flips.row, rows)]
        own = replace(own, row=np.searchsorted(rows, own.row))
        return Moved(images.take(rows), directions(own, images.X[rows], features=case.features))

    planes, ships = (moved(mistakes[parts[0].labels == label]) for label in (PLANE, SHIP))
    return Groups(moved(mistakes), planes, ships, moved(test), moved(train))


def _some(rows: Array, count: int) -> Array:
    """So many of them, or all, in order."""
    return np.sort(np.random.default_rng(0).choice(rows, min(count, len(rows)), replace=False))


def _components(groups: Groups) -> list[Array]:
    """The first components of either direction, (height, width, colours) each."""
    some = [moved.directions for _, moved in groups.by_class if len(moved.directions.row)]
    return [image for found in some for image in found.images(COMPONENTS)]


def _quartiles(values: Array) -> list[float]:
    return [float(value) for value in np.quantile(values, (0.25, 0.5, 0.75))] if len(values) else []


def _numbers(accuracy: float, groups: Groups) -> Numbers:
    """What is measured, and the settings of the pictures."""
    of = groups.mistakes.images.images.shape[1:]
    return [
        Number(f"{NAME}.test_accuracy_percent", "test accuracy, %", accuracy, ACCURACY),
        _norm(groups),
        *_columns(groups),
        setting(
            f"{NAME}.pixels", "pixels, each colour counted", float(np.prod(of)), "Of an image of 32 x 32 in 3 colours."
        ),
        setting(f"{NAME}.figure_6_magnification", "magnification of Figure 6", MAGNIFIED),
        setting(f"{NAME}.figure_7_components", "components in Figure 7", COMPONENTS),
    ]


def _norm(groups: Groups) -> Number:
    """The change that the paper's one image takes, beside that of all ships taken for airplanes."""
    quartiles, planes = _quartiles(groups.ships.norms), _quartiles(groups.planes.norms)
    why = "No ship is taken for an airplane."
    if quartiles:
        why = (
            f"Median over {counted(len(groups.ships.norms), 'ship')} of the test set taken for airplanes, as the paper's "
            f"image is not known; quartiles {quartiles[0]:,.0f} and {quartiles[2]:,.0f}"
            + (f", and for airplanes taken for ships the median is {planes[1]:,.0f}." if planes else ".")
        )
    ours = quartiles[1] if quartiles else None
    return Number(f"{NAME}.figure_5_pixel_1_norm", "sum of absolute changes of pixels to the flip, levels", ours, why)


def _columns(groups: Groups) -> Numbers:
    """Which pixels do not change, and which share of all changes is next to none."""
    what = ("share of pixels that no mistake's flip changes by half a level", "changes below half a level, %")
    names = (f"{NAME}.pixels_never_changed_fraction", f"{NAME}.direction_sparsity_percent_below_half_level")
    if len(groups.mistakes.directions.row) == 0:
        return [Number(name, about, None, "There are no mistakes.") for name, about in zip(names, what, strict=True)]
    small = np.abs(groups.mistakes.pixels) < HALF
    still = small.reshape(len(small), -1).mean(axis=0)
    other = ", ".join(f"{100 * (still >= share).mean():.1f}% in {percent(share)}" for share in NEARLY_ALL)
    least, middle = float(still.max()), float(np.median(still))
    return [
        Number(
            names[0],
            what[0],
            float((still == 1).mean()),
            f"Less than half a level in every one of {len(small)} mistakes, as the paper has no limit; of pixels, so many "
            f"are unchanged in fewer mistakes: {other}. The stillest pixel is unchanged in {percent(least)}, the middle "
            f"one in {percent(middle)}.",
        ),
        Number(
            names[1],
            what[1],
            float(100 * small.mean()),
            f"Of {small.size:,} changes of pixels in {len(small)} mistakes.",
        ),
    ]


def _similar(alike: Mapping[str, Likeness | None]) -> Claim:
    known = {name: some for name, some in alike.items() if some}
    return Claim(
        "the directions to flips of right answers are much alike in the training set and in the test set",
        "section 6.2",
        "; ".join(f"{name}: {some.words}" for name, some in known.items())
        + f". The claim counts as holding where both are at least {percent(ENOUGH)} of what they are within the sets.",
        {name: some.holds for name, some in known.items()},
    )


def _next_to(near: Mapping[str, Neighbours]) -> Claim:
    return Claim(
        "the largest positive changes of pixels are usually next to the largest negative ones",
        "section 6.2",
        f"of the {percent(LARGEST)} of pixels (colours averaged) that change most upwards in the first {COMPONENTS} "
        f"components of either direction, those with one of the {percent(LARGEST)} most downwards as a neighbour: "
        + "; ".join(f"{name}: {some.words}" for name, some in near.items())
        + ". The claim counts as holding above half, and above chance.",
        {name: some.holds for name, some in near.items()},
    )


def _pictures(desk: Desk, groups: Groups) -> list[Picture]:
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
        f"{counted(len(found.row), 'airplane')} taken for ships to their right class, as changes of pixels around grey; "
        f"they make up {percent(share)} of the squared changes. Above, how many components make up which share of them, "
        "and the largest change of every wavelet coefficient.",
    )
