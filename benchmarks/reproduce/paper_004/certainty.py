"""Table 5: how certain models are where people are so certain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import flipopt as fo
from benchmarks.reproduce.paper_004.answers import Answers
from benchmarks.reproduce.paper_004.networks import KINDS, SEEDS, TARGETS
from benchmarks.reproduce.paper_004.sets import NEEDED
from benchmarks.reproduce.paper_004.words import at
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Number

TABLE, SPREAD = "004.table_5_model_certainty_percent", "004.table_5_plus_minus"
LEFT_OUT = f"{TABLE}.images_left_out.40"
Labels = fo.disagreement.Labels


def numbers(found: Answers, asked: Labels | None) -> Iterator[Number]:
    """All of Table 5 but how many seeds it has."""
    levels = [published()[f"{TABLE}.human_certainty_percent.{k}"] for k in range(5)]
    counts = {} if asked is None else _images(found, asked)
    for k, level in enumerate(levels):
        ours = level if round(level) in counts else None
        yield _number(f"{TABLE}.human_certainty_percent.{k}", f"certainty of people, column {k + 1}, %", ours, asked)
        count = counts.get(round(level))
        yield _number(f"{TABLE}.images.{k}", f"images on which people are {level:.0f}% certain", count, asked)
    yield _number(LEFT_OUT, "images on which people are 40% certain", counts.get(40), asked)
    for target in TARGETS:
        for kind in KINDS.values():
            certain = {} if asked is None else _certainty(found, kind, target, asked)
            for k, level in enumerate(levels):
                place = f"{target:g}.{kind}.{k}"
                what = f"certainty of {kind}s at {at(target)} where people are {level:.0f}% certain, %"
                value, spread = certain.get(round(level), (None, None))
                yield _number(f"{TABLE}.{place}", what, value, asked)
                yield _number(f"{SPREAD}.{place}", f"deviation over repeats of the {what}", spread, asked)


def _number(name: str, what: str, ours: float | None, asked: Labels | None) -> Number:
    kind = "setting" if ".images" in name or "human" in name else "measured"
    if asked is None:
        why = NEEDED
    elif ours is None:
        why = "Not run: there is no image on which people are so certain, or too few seeds."
    else:
        why = "Of people who labelled the first choice of latent vectors."
    return Number(name, what, ours, why, kind=kind)  # type: ignore[arg-type]


def _images(found: Answers, asked: Labels) -> dict[int, int]:
    """By the certainty of people in percent how many images there are."""
    votes = fo.disagreement.study(asked.labels, None, asked, resamples=0).certainty
    return {round(100 * level): int(count) for level, count in zip(votes.people, votes.images, strict=True)}


def _certainty(found: Answers, kind: str, target: float, asked: Labels) -> dict[int, tuple[float, float | None]]:
    """By the certainty of people that of models in percent, and its deviation over repeats with ten other seeds."""
    some = found.where(lambda model: model.kind == kind and model.target == target)
    if len(some) < 2:
        return {}
    tens = [some.models[k : k + SEEDS] for k in range(0, len(some) - SEEDS + 1, SEEDS)] or [some.models]
    studies = [some.where(set(ten).__contains__).study(0, asked) for ten in tens]
    table = fo.disagreement.certainty(studies)
    spread = [100 * float(value) if len(tens) > 1 else None for value in table.deviation]
    values = (100 * np.asarray(table.models)).tolist()
    return {
        round(100 * level): pair for level, pair in zip(table.people, zip(values, spread, strict=True), strict=True)
    }
