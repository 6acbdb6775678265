"""Section 6.2: airplanes and ships, and the directions in which pixels change to flip them (Figures 5 to 7)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_002.accuracy import settings
from benchmarks.reproduce.paper_002.directions_groups import Groups, groups_of
from benchmarks.reproduce.paper_002.directions_pictures import COMPONENTS, MAGNIFIED, figures_5_to_7
from benchmarks.reproduce.paper_002.likeness import ENOUGH, LARGEST, Likeness, Neighbours, likeness, neighbours
from benchmarks.reproduce.record import Claim, Number, Record, setting
from benchmarks.reproduce.trainings import Job
from flipopt.common.checks import Array
from flipopt.explain.matching import counted, percent
from models.recipes import RECIPES, Recipe

HALF = 0.5
"""Of a level: smaller changes of a pixel count as none."""
NEARLY_ALL = (0.99, 0.95, 0.5)
"""Shares of the mistakes in which a pixel may have to stay unchanged, if not in all."""
NAME = "002.cifar"
Numbers = list[Number]


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
        f"{len(case.test):,} test images. For each of them, and for {len(groups.test.images)} right answers of the "
        f"test set and {len(groups.train.images)} of the training set, the nearest flip point was computed in the "
        "space of wavelet coefficients, and the changes turned into changes of pixels. Claims were looked at on the "
        "network with 200 inputs of the other paper too.",
        setup={"recipe": case.recipe.name, "right answers": [len(groups.test.images), len(groups.train.images)]},
        seeds=(0,),
        numbers=[
            *settings("002.setup_cifar", case.recipe, len(case.classes)),
            _accuracy(accuracy, case.recipe),
            *_numbers(groups),
        ],
        claims=[claim for claim in claims if claim.holds],
        pictures=figures_5_to_7(desk, groups),
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


def _components(groups: Groups) -> list[Array]:
    """The first components of either direction, (height, width, colours) each."""
    some = [moved.directions for _, moved in groups.by_class if len(moved.directions.row)]
    return [image for found in some for image in found.images(COMPONENTS)]


def _quartiles(values: Array) -> list[float]:
    return [float(value) for value in np.quantile(values, (0.25, 0.5, 0.75))] if len(values) else []


def _accuracy(accuracy: float, recipe: Recipe) -> Number:
    why = (
        f"With dropout {recipe.dropout:g}, weight decay {recipe.weight_decay:g} and images moved by up to "
        f"{recipe.shift_pixels} pixels, none of which the paper names; chosen on a part of the training set."
    )
    return Number(f"{NAME}.test_accuracy_percent", "test accuracy, %", accuracy, why)


def _numbers(groups: Groups) -> Numbers:
    """What is measured, and the settings of the pictures."""
    of = groups.mistakes.images.images.shape[1:]
    return [
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
            f"Median over {counted(len(groups.ships.norms), 'ship')} of the test set taken for airplanes, as the "
            f"paper's image is not known; quartiles {quartiles[0]:,.0f} and {quartiles[2]:,.0f}"
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
    other = ", ".join(f"{(still >= share).mean():.3f} in {percent(share)} of them" for share in NEARLY_ALL)
    mean = float((np.abs(groups.mistakes.pixels).mean(axis=0) < HALF).mean())
    return [
        Number(
            names[0],
            what[0],
            float((still == 1).mean()),
            f"In all {len(small)} mistakes; the share is {other}, {mean:.3f} where the mean absolute change counts, "
            f"and the stillest pixel is unchanged in {percent(float(still.max()))}; the paper gives no limit.",
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
