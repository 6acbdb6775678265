"""The figures of 004 that people decide: where they have been asked, theirs; else why not and how they would be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import flipopt as fo
from benchmarks.reproduce.paper_004 import claims as said
from benchmarks.reproduce.paper_004.answers import Answers
from benchmarks.reproduce.paper_004.networks import TARGETS
from benchmarks.reproduce.paper_004.sets import NEEDED
from benchmarks.reproduce.paper_004.words import at
from benchmarks.reproduce.record import Claim, Number, setting
from flipopt.disagreement.measures import (
    BOTH_AGREE,
    BOTH_DISAGREE,
    EVER_WRONG,
    TWO_PEOPLE,
    TYPE_A,
    TYPE_C,
    WRONG,
)

Labels = fo.disagreement.Labels
TYPES = {
    "type_A": TYPE_A,
    "type_B_disagree": BOTH_DISAGREE,
    "type_B_agree": BOTH_AGREE,
    "type_C": TYPE_C,
}
"""Rows of Table 4 as published.json has them."""
ASKED = "Of people who labelled the first choice of latent vectors."


def numbers(found: Answers, asked: Labels | None) -> list[Number]:
    """Of Tables 2 to 4, and how often two people disagree."""
    studies = with_people(found, asked)
    ours = {} if asked is None else dict(_measured(studies, asked))
    return [
        *(_number(name, what, ours.get(name)) for name, what in _wanted()),
        *(_counted(name, what, asked) for name, what in PEOPLE.items()),
        *(setting(f"004.table_4_max_softmax.accuracies.{k}", "accuracy of a column of Table 4, %", target)
          for k, target in enumerate(TARGETS)),
    ]  # fmt: skip


def with_people(found: Answers, asked: Labels | None) -> dict[float, fo.disagreement.Study]:
    """Studies of the first choice with people, by accuracy; none without them."""
    if asked is None:
        return {}
    return {target: found.at(target).study(0, asked) for target in TARGETS if len(found.at(target)) > 1}


def claims(found: Answers, asked: Labels | None) -> list[Claim]:
    """What the paper says of people and models; nothing without people."""
    return said.of_people(with_people(found, asked), with_people(found.at_all(TARGETS), asked))


PEOPLE = {"004.setup.volunteers": "people", "004.table_3.humans": "people in Table 3"}


def _counted(name: str, what: str, asked: Labels | None) -> Number:
    if asked is None:
        return Number(name, what, None, NEEDED, kind="setting")
    return setting(name, what, len(asked.labels), "As many as have labelled the images.")


def _number(name: str, what: str, value: float | None) -> Number:
    if value is None or not np.isfinite(value):
        why = NEEDED if value is None else "Not run: there is no image of this kind."
        return Number(name, what, None, why)
    return Number(name, what, value, ASKED)


def _wanted() -> Iterator[tuple[str, str]]:
    """Names of published numbers, and what they are."""
    yield "004.human_pair_disagreement_percent.0", "images on which two people disagree, %"
    yield "004.human_pair_disagreement_percent.1", "its deviation over pairs of people, %"
    for target in TARGETS:
        words, place = f"at {at(target)}", f"{target:g}"
        yield f"004.table_2.{place}.0", f"images that a model misclassifies, {words}, %"
        yield f"004.table_2.{place}.1", f"its deviation over models, {words}, %"
        yield f"004.table_2.{place}.2", f"images that any of nine models misclassifies, {words}, %"
        yield f"004.table_3.{place}.1", f"images of type A, {words}, %"
        yield f"004.table_3.{place}.2", f"images of type C, {words}, %"
    for row, kind in TYPES.items():
        for k, target in enumerate(TARGETS):
            yield f"004.table_4_max_softmax.{row}.{k}.0", f"largest softmax on images of {kind}, at {at(target)}"
            yield f"004.table_4_max_softmax.{row}.{k}.1", f"its deviation on images of {kind}, at {at(target)}"


def _measured(studies: Mapping[float, fo.disagreement.Study], asked: Labels) -> Iterator[tuple[str, float]]:
    """Of every name ours; NaN where there is no image of a kind."""
    for target, study in studies.items():
        table, place, column = study.agreement, f"{target:g}", TARGETS.index(target)
        if TWO_PEOPLE in table and len(asked.labels) > 1:
            two = table.of(TWO_PEOPLE)
            yield "004.human_pair_disagreement_percent.0", 100 * two["share"]
            yield "004.human_pair_disagreement_percent.1", 100 * two["deviation"]
        yield f"004.table_2.{place}.0", 100 * table.of(WRONG)["share"]
        yield f"004.table_2.{place}.1", 100 * table.of(WRONG)["deviation"]
        yield f"004.table_2.{place}.2", 100 * table.of(EVER_WRONG)["share"]
        yield f"004.table_3.{place}.1", 100 * table.of(TYPE_A)["share"]
        yield f"004.table_3.{place}.2", 100 * table.of(TYPE_C)["share"]
        softmax = study.softmax_by_type
        for row, kind in TYPES.items():
            (rows,) = (np.flatnonzero(softmax.kind == kind)[:1],)
            values = (softmax.mean[rows], softmax.deviation[rows])
            for k, some in enumerate(values):
                yield f"004.table_4_max_softmax.{row}.{column}.{k}", float(some[0]) if len(some) else np.nan
