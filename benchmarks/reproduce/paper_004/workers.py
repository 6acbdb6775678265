"""Real people, on other images than the paper's: 100 digits of the test set, five workers each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004 import claims
from benchmarks.reproduce.paper_004.answers import Answers, answers
from benchmarks.reproduce.paper_004.networks import NINE_AT_TARGETS, TARGETS
from benchmarks.reproduce.paper_004.words import at, missing
from benchmarks.reproduce.pictures import smaller
from benchmarks.reproduce.record import Picture, Record, Sheet
from data_prep.sources import data_root
from flipopt.disagreement.measures import KINDS

PICTURE = "004-workers.png"
FILE = Path("label-errors") / "mnist_mturk.json"
SOURCE = "https://github.com/cleanlab/label-errors"
OTHERS = "on 100 test images that were suspected of wrong labels"
WHAT = (
    "Five workers each said of 100 test images of MNIST, which had been suspected of wrong labels, whether they show "
    "the given digit, the one that was guessed, or neither (Northcutt, Athalye and Mueller 2021). These are not the "
    "images "
    "of 004, the workers chose between three answers and not ten, and which labels are of one worker is not known: "
    "this is an example with real people, and no figure of the paper is compared with it."
)
ABSENT = (
    f" Not run: the file `{FILE.name}` of {SOURCE} was not in `{FILE.parent}` beside the data sets (~/.cache/flipopt, "
    "or the folder FLIPOPT_DATA); with it, `python -m benchmarks reproduce 004-workers` would."
)
Studies = Mapping[float, fo.disagreement.Study]


def workers(desk: Desk) -> Record:
    """Of the 27 networks, on images with labels by people."""
    path = data_root() / FILE
    labels = None if desk.quick or not path.exists() else fo.disagreement.read_label_errors(path)
    found = answers(desk, NINE_AT_TARGETS)
    studies, same = (_studies(some, labels) for some in (found, found.at_all(TARGETS)))
    if studies:
        studies[max(studies)].plot(desk.picture(PICTURE))
        smaller(desk.picture(PICTURE))
    return Record(
        title="People and models on other images: digits with suspected labels",
        summary=WHAT + ("" if studies else ABSENT) + missing(desk, NINE_AT_TARGETS, found.models),
        setup={"file": FILE.name, "source": SOURCE, "models": [model.words for model in found.models]},
        seeds=[0],
        claims=[
            replace(claim, text=f"{OTHERS}: {claim.text}", where=f"{claim.where}; other images")
            for claim in claims.of_people(studies, same)
        ],
        pictures=[Picture(PICTURE, _caption(studies))] if studies else [],
        sheets=[_agreement(studies), _softmax(studies), _certainty(studies)] if studies else [],
        figures={at(t): {str(m): s.agreement.of(m)["share"] for m in s.agreement.measure} for t, s in studies.items()},
    )


def _studies(found: Answers, labels: fo.disagreement.Labels | None) -> Studies:
    """By accuracy, where there are models that can disagree."""
    if labels is None:
        return {}
    return {target: study(found.at(target), labels) for target in TARGETS if len(found.at(target)) > 1}


def study(found: Answers, labels: fo.disagreement.Labels) -> fo.disagreement.Study:
    """Of models, on the test images that people have labelled."""
    rows = np.asarray(labels.rows)
    return fo.disagreement.study(found.test_predicted[:, rows], None, labels, softmax=found.test_softmax[:, rows])


def _caption(studies: Studies) -> str:
    target = max(studies)
    return (
        f"A square an image of the 100 with labels by five workers: who disagrees there, the "
        f"{len(studies[target].predicted)} models of {at(target)} or people (as Figure 4 of 004, on other images)."
    )


def _agreement(studies: Studies) -> Sheet:
    names = [str(name) for name in next(iter(studies.values())).agreement.measure]
    return Sheet(
        "As Tables 2 and 3, on other images: shares of the images with their 95% intervals over images and models",
        ["measure", *(f"{at(t)}, {len(one.predicted)} models" for t, one in studies.items())],
        [[name, *(_interval(one.agreement.of(name)) for one in studies.values())] for name in names],
    )


def _interval(record: Mapping[str, float]) -> str:
    low, high = (100 * record[f"{end}_models"] for end in ("low", "high"))
    return f"{100 * record['share']:.1f}% [{low:.0f}, {high:.0f}]"


def _softmax(studies: Studies) -> Sheet:
    rows = [
        [at(t), kind, str(count), f"{average:.2f} ± {deviation:.3f}"]
        for t, one in studies.items()
        for kind, count, average, deviation in zip(
            *(getattr(one.softmax_by_type, name) for name in ("kind", "images", "mean", "deviation")), strict=True
        )
        if kind in KINDS
    ]
    return Sheet("As Table 4, on other images", ["accuracy", "kind", "images", "largest softmax"], rows)


def _certainty(studies: Studies) -> Sheet:
    rows = [
        [at(t), f"{100 * level:.0f}%", str(count), f"{100 * value:.0f}% [{100 * low:.0f}, {100 * high:.0f}]"]
        for t, one in studies.items()
        for level, count, value, low, high in zip(
            *(getattr(one.certainty, name) for name in ("people", "images", "models", "low", "high")), strict=True
        )
    ]
    return Sheet(
        "As Table 5, on other images: certainty of the models of an accuracy where people are so certain",
        ["accuracy", "certainty of people", "images", "certainty of models"],
        rows,
    )
