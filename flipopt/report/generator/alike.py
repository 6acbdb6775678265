"""What samples have in common, where they vary, and whether other images that are as far away do so too."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.report.audit.pictures import amount_png
from flipopt.report.audit.section import NONE, Grid, Section, number, share
from flipopt.report.generator.asked import FOLDER, by_layer, or_none
from flipopt.report.generator.likeness import Likeness, likeness
from flipopt.report.generator.seen import as_drawn, grey, in_unit
from flipopt.report.generator.study import Explored, Looked

METHODS = {
    "e-gbas": "samples of the region",
    "l2": "ball (2-norm)",
    "linf": "cube (infinity norm)",
    "matched": "as far away, any direction",
}
"""What the methods of a comparison are called."""
CLEARLY = 0.95
"""Less than that share of another number is less; what is above it may be chance."""


def common(study: Explored) -> Section:
    """Mean images and maps of deviations, with words on them."""
    how = (
        "Mean and standard deviation of the samples' images, pixel by pixel (equation 3 of the paper, with the square "
        "that it lost in print). All maps have one scale: from violet, where the images are the same, to yellow, where "
        "they differ most. Bright and dark are meant of the query's image, on both sides of the middle of its range; "
        "deviations are shares of that range."
    )
    span = study.span[1] - study.span[0]
    maps = [_map(study, one) for one in study.layers]
    largest = max(float(values.max()) for values in maps)
    known = [likeness(values, _query(study), span) for values in maps]
    cards = [
        {
            "layer": one.layer.number,
            "mean": _mean(study, one),
            "map": None if study.pictures is None else amount_png(values, largest),
            "words": [*alike.words(), *_classes(study, one)],
        }
        for one, values, alike in zip(study.layers, maps, known, strict=True)
    ]
    facts = {"cards": cards, "largest": number(largest / (span or 1.0), 2), "table": _table(study, known)}
    return Section("common", "What the samples have in common", _common_answer(study, known), how, facts, folder=FOLDER)


def _map(study: Explored, one: Looked) -> Array:
    """Standard deviations a pixel, (height, width) of pictures."""
    pixels = one.deviation.pixels
    return pixels if study.pictures is None else grey(pixels, study.pictures)


def _query(study: Explored) -> Array | None:
    return None if study.pictures is None else grey(in_unit(study.image, study.span), study.pictures)


def _mean(study: Explored, one: Looked) -> str | None:
    if study.pictures is None:
        return None
    return study.pictures.png(as_drawn(one.deviation.mean[None], study.pictures)[0])


def _classes(study: Explored, one: Looked) -> list[str]:
    if one.classes is None:
        return []
    inside, matched = one.classes["e-gbas"], one.classes["matched"]
    return [
        f"The classifier puts {share(inside)} of the images in the query's class, and {share(matched)} of the others."
    ]


def _common_answer(study: Explored, known: list[Likeness]) -> str:
    """Whether variation becomes more local with depth, as section 4.1 of the paper argues."""
    halves = [alike.half for alike in known]
    words = f"The fewest pixels that hold half of the variance are {by_layer(study, [share(part) for part in halves])}"
    if len(halves) < 2:
        return f"{words}; {share(known[0].same)} of the pixels hardly differ."
    if all(b < CLEARLY * a for a, b in pairwise(halves)):
        return f"{words}: the deeper the layer, the more local is what varies."
    return f"{words}: what varies does not become more local from each layer to the next."


def _table(study: Explored, known: list[Likeness]) -> Grid:
    rows = [
        (
            str(one.layer.number),
            number(alike.deviation),
            share(alike.same),
            share(alike.half),
            or_none(alike.bright),
            or_none(alike.edges),
            or_none(alike.dark),
            NONE if one.classes is None else share(one.classes["e-gbas"]),
        )
        for one, alike in zip(study.layers, known, strict=True)
    ]
    head = ("layer", "deviation", "hardly differ", "hold half", "bright", "edges", "dark", "same class")
    return Grid(head, tuple(rows))


def alike(study: Explored) -> Section:
    """The baselines of the paper and the control, a table a layer."""
    how = (
        "The paper compares with latent vectors from a ball around the mean of the samples, and from a cube of equal "
        "volume. Its radius is between the nearest and the farthest step that left the region. But in many dimensions "
        "equal volume is not equal size, and nearer points have more similar images whatever the region is. So there "
        "is a control: points at the very distances of the samples, in random directions. Only where the samples are "
        "more alike than these is it the region that makes them so. Inside is the share of the points that are in the "
        "region"
    )
    if study.discriminator is not None:
        how += (
            "; similarity is the mean cosine of what the discriminator's layers make of the images and of the query's "
            "(equation 2), 1 for the same"
        )
    tables = [(one.layer.number, _comparison(study, one), _radii(one)) for one in study.layers]
    return Section(
        "alike", "Whether they are more alike than others", _alike_answer(study), f"{how}.", {"tables": tables},
        folder=FOLDER,
    )  # fmt: skip


def _comparison(study: Explored, one: Looked) -> Grid:
    found = one.comparison
    layers = range(found.similarity.shape[1])
    rows = tuple(
        (
            METHODS[str(name)],
            number(float(found.deviation[k])),
            number(float(found.distance[k])),
            share(float(found.inside[k])),
            *(number(float(found.similarity[k, j]), 4) for j in layers),
        )
        for k, name in enumerate(found.method)
    )
    return Grid(("", "deviation", "from the middle", "inside", *(f"similarity, {j + 1}" for j in layers)), rows)


def _radii(one: Looked) -> str:
    others = one.others
    if not np.isfinite(others.epsilon_2):
        return "No step left the region, so that the paper's radii cannot be had."
    return f"Radius of the ball {number(others.epsilon_2)}, half the side of the cube {number(others.epsilon_inf)}."


def ratio(one: Looked) -> float:
    """Deviation of the samples in units of the control's."""
    by_name: dict[str, Any] = dict(zip(one.comparison.method, one.comparison.deviation, strict=True))
    return float(by_name["e-gbas"] / by_name["matched"]) if by_name["matched"] > 0 else np.nan


def _alike_answer(study: Explored) -> str:
    ratios = [ratio(one) for one in study.layers]
    count = sum(value < CLEARLY for value in ratios)
    alike = "clearly more alike than points as far away"
    if count == 0:
        verdict = f"The samples are not {alike}"
    else:
        some = "" if count == len(ratios) else f", in {count} of {len(ratios)} layers"
        verdict = f"The samples are {alike}{some}"
    measured = by_layer(study, [number(value, 2) for value in ratios])
    return f"{verdict}: their deviation, in units of these, is {measured}."
