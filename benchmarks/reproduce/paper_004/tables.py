"""Tables 1 to 4 and Figures 1 and 3: nine models of the same accuracy on images between two digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004 import claims, drawing, people, sheets
from benchmarks.reproduce.paper_004.answers import Answers, answers
from benchmarks.reproduce.paper_004.claims import share
from benchmarks.reproduce.paper_004.networks import NINE, NINE_AT_TARGETS, TARGETS
from benchmarks.reproduce.paper_004.sets import JUDGE, collect, labels, sets, show
from benchmarks.reproduce.paper_004.settings import settings
from benchmarks.reproduce.paper_004.words import OVER, at, mean, missing
from benchmarks.reproduce.record import Number, Picture, Record, over_seeds
from flipopt.disagreement.measures import EVERY_MODEL, TWO_MODELS

STUDY = "004-tables"
MANY = 4
"""Models whose pairs stand in for those of nine."""
SHEET = "004-figure-3.png"
MIDDLE = TARGETS[1]
"""The accuracy of the models in the picture of all images."""
Studies = Mapping[float, list[fo.disagreement.Study]]


def tables(desk: Desk) -> Record:
    """All that needs no further seeds."""
    found = answers(desk, NINE_AT_TARGETS)
    alike = found.at_all(TARGETS)
    studies, same = ({t: some.at(t).studies() for t in TARGETS if len(some.at(t)) > 1} for some in (found, alike))
    asked, lacking = labels(desk), missing(desk, NINE_AT_TARGETS, found.models)
    show(desk, sets(desk).first)
    drawing.images(desk.picture(SHEET), found.at(MIDDLE), asked)
    return Record(
        title="Nine models of the same accuracy on images between two digits (Tables 1 to 4, Figures 1 and 3)",
        summary=_summary(found, studies, asked) + lacking,
        setup=_setup(found),
        seeds=list(range(len(found.sets.choices))),
        numbers=[*settings(found.sets), *_agreement(found, studies, lacking), *people.numbers(found, asked)],
        claims=[*claims.of_models(studies, same), *people.claims(found, asked)],
        pictures=[Picture(SHEET, _caption(found, asked))],
        sheets=[
            sheets.agreement(studies),
            sheets.kinds(found),
            sheets.softmax(studies),
            sheets.trained(found),
            *sheets.waiting(STUDY, found, asked is not None),
        ],
        figures=_figures(found, studies),
    )


def _agreement(found: Answers, studies: Studies, lacking: str) -> Iterator[Number]:
    """What needs no people in Tables 2 and 3."""
    for target in TARGETS:
        place, words = f"{target:g}", f"at {at(target)}"
        rows = {
            f"004.table_2.{place}.3": (f"images on which two models disagree, {words}, %", TWO_MODELS, "share"),
            f"004.table_2.{place}.4": (f"its deviation over pairs of models, {words}, %", TWO_MODELS, "deviation"),
            f"004.table_2.{place}.5": (f"images on which nine models disagree, {words}, %", EVERY_MODEL, "share"),
            f"004.table_3.{place}.0": (f"images on which models disagree, {words} (Table 3), %", EVERY_MODEL, "share"),
        }
        for name, (what, measure, column) in rows.items():
            if target not in studies:
                yield Number(name, what, None, f"Not run: fewer than two models.{lacking}")
                continue
            values, count = share(studies[target], measure, column), len(found.at(target))
            if count == len(NINE):
                yield over_seeds(name, what, values, "Of nine models.", OVER)
            elif measure == TWO_MODELS and count >= MANY:
                yield over_seeds(
                    name, what, values, f"Of the pairs of {count} models, as not all nine are there.", OVER
                )
            else:
                why = f"{count} of nine models are there, and what trains the others is above; of these {mean(values)}."
                yield Number(name, what, None, f"Not run: {why}")


def _summary(found: Answers, studies: Studies, asked: fo.disagreement.Labels | None) -> str:
    count, images = len(found.sets.choices), len(found.sets.first)
    text = (
        f"{images} images on 15 lines between latent vectors of the DCGAN for digits, each digit three times. The "
        f"paper chose its ten vectors by hand; ours are the first drawn from N(0, I) that `{JUDGE}`, which is none of "
        f"the models, sees as the digit with a softmax of at least 0.95, for {count} seeds: what follows ± is the "
        "deviation over these. Models are the nine recipes of appendix A, stopped at the target accuracy ± 0.05% on "
        f"the test set; there are {len(found)} of their 27 networks. Recipes that differ in their weight "
        "decay alone have a seed of their own: AdamW multiplies weights by 1 less step size times decay, here 1 - "
        "5e-9, which is 1 in float32, so that from the same seed comes the same network, bit by bit."
    )
    if studies:
        parts = [
            f"{mean(share(some, TWO_MODELS))} and {mean(share(some, EVERY_MODEL))} at {at(target)} "
            f"({len(some[0].predicted)} models)"
            for target, some in studies.items()
        ]
        text += f" Two models, and all of them, disagree on {'; '.join(parts)}."
    if asked is None:
        text += (
            " What the paper's volunteers said is only in a picture of it, so that figures which depend on people wait "
            f"for labels: {collect(STUDY)}"
        )
    return text


def _setup(found: Answers) -> dict[str, Any]:
    return {
        "judge": JUDGE,
        "least": 0.95,
        "choices": len(found.sets.choices),
        "pairs": found.sets.first.pairs,
        "alphas": found.sets.first.alpha[: len(found.sets.first) // len(found.sets.first.pairs)],
        "models": [model.words for model in found.models],
        "missing": [model.words for model in NINE_AT_TARGETS if model not in found.models],
    }


def _caption(found: Answers, asked: fo.disagreement.Labels | None) -> str:
    count = len(found.at(MIDDLE))
    text = (
        "The images of the first choice of latent vectors (as Figure 3 of 004; the line from 1 to 3 is its Figure 1). "
        f"Above each is ✓ where all {count} models of {at(MIDDLE)} say the same, or else the digits that they say, the "
        "most frequent first"
    )
    return text + ("." if asked is None else "; a frame is around those on which people disagree.")


def _figures(found: Answers, studies: Studies) -> dict[str, Any]:
    return {
        "accuracy": dict(zip((model.words for model in found.models), found.accuracy, strict=True)),
        "agreement": {
            at(target): {str(measure): share(some, str(measure)) for measure in some[0].agreement.measure}
            for target, some in studies.items()
        },
    }
