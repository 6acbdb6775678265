"""Figures 2 and 4 and Table 5: one network with many seeds at the same accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004 import certainty, drawing
from benchmarks.reproduce.paper_004.answers import Answers, answers
from benchmarks.reproduce.paper_004.claims import share
from benchmarks.reproduce.paper_004.networks import FOLDER, KINDS, SEEDS, TARGETS, Model
from benchmarks.reproduce.paper_004.sets import labels
from benchmarks.reproduce.paper_004.words import at, mean
from benchmarks.reproduce.record import Claim, Number, Picture, Record, Sheet, setting
from flipopt.disagreement.measures import EVERY_MODEL
from models.targets import TARGET_RECIPES

STUDY = "004-seeds"
CURVES, MAP = "004-figure-2.png", "004-figure-4.png"
REPEATS = 10
"""Of ten seeds each, in the paper."""
MOST = 100
"""Seeds of a recipe that are looked for."""
FEWEST = 2
"""Networks that can disagree."""
Studies = Mapping[tuple[str, float], list[fo.disagreement.Study]]


@dataclass(frozen=True, eq=False)
class Found:
    """What there is.

    Attributes
    ----------
    answers
        Of all networks.
    count
        Seeds that are compared: as many as every architecture has at every accuracy, of those that have several.
    studies
        Of the first so many seeds, by architecture and accuracy, one a choice of latent vectors.
    """

    answers: Answers
    count: int
    studies: Studies

    @property
    def kinds(self) -> list[str]:
        """The architectures that are compared."""
        return list(dict.fromkeys(kind for kind, _ in self.studies))

    def shares(self, kind: str, target: float) -> list[float]:
        """Images on which the seeds disagree, in percent, one a choice."""
        return share(self.studies[kind, target], EVERY_MODEL)

    @classmethod
    def of(cls, found: Answers) -> Found:
        """Of answers of networks with several seeds."""
        there = {(kind, target): _of(found, kind, target) for kind in KINDS.values() for target in TARGETS}
        several = {key: some for key, some in there.items() if len(some) >= FEWEST}
        count = min((len(some) for some in several.values()), default=0)
        count = min(count, SEEDS)
        first = {key: some.where(set(some.models[:count]).__contains__) for key, some in several.items()}
        return cls(found, count, {key: some.studies() for key, some in first.items()})


def _of(found: Answers, kind: str, target: float) -> Answers:
    return found.where(lambda model: model.kind == kind and model.target == target)


def seeds(desk: Desk) -> Record:
    """Of the first recipe of each architecture, as the paper has it, and as many seeds as there are."""
    found = Found.of(answers(desk, wanted(desk)))
    asked = labels(desk)
    pictures = list(_pictures(desk, found))
    return Record(
        title="One architecture with several seeds (Figures 2 and 4, Table 5)",
        summary=_summary(found),
        setup={"recipes": [f"{name}1" for name in KINDS], "seeds compared": found.count, "choices": CHOICES_WORDS},
        seeds=sorted({model.seed for model in found.answers.models}) or [0],
        numbers=[*_settings(found), *certainty.numbers(found.answers, asked)],
        claims=_claims(found),
        pictures=pictures,
        sheets=[_sheet(found)],
        figures=_figures(found),
    )


CHOICES_WORDS = "those of 004-tables"


def wanted(desk: Desk) -> list[Model]:
    """Ten seeds of each architecture, and more of them where they are."""
    every = [Model(f"{name}1", seed, target) for name in KINDS for seed in range(MOST) for target in TARGETS]
    return [model for model in every if model.seed < desk.few(SEEDS, 3) or model.file(desk).exists()]


def command(seeds: int) -> str:
    """What trains so many seeds of an architecture."""
    return (
        f"`for k in $(seq 0 {seeds - 1}); do python -m models targets mlp1 --seed $k --out reproduction/{FOLDER}; done`"
    )


def _summary(found: Found) -> str:
    counts = "; ".join(
        f"{kind} " + ", ".join(str(len(_of(found.answers, kind, target))) for target in TARGETS)
        for kind in KINDS.values()
    )
    text = (
        "The first recipe of each architecture (Adam, step size 5e-4, batches of 128) with several seeds, on the "
        f"images of 004-tables. There are so many seeds at {', '.join(at(target) for target in TARGETS)}: {counts}. "
    )
    if not found.studies:
        return (
            f"{text}Nothing can be compared yet; {command(SEEDS)} trains those of the MLP, and the same of cnn1, vit1."
        )
    text += (
        f"Compared are the first {found.count} of each, as more seeds disagree on more images; "
        + "; ".join(
            f"those of {kind}s disagree on "
            + ", ".join(f"{mean(found.shares(kind, t))} at {at(t)}" for t in TARGETS if (kind, t) in found.studies)
            for kind in found.kinds
        )
        + ". Type A and type C, into which the paper splits these images, need labels by people."
    )
    if found.count < SEEDS or len(found.kinds) < len(KINDS):
        text += (
            f" Ten seeds of every architecture are trained by `python -m benchmarks reproduce {STUDY}` itself, which "
            f"takes hours, or one by one by {command(SEEDS)} and the same of cnn1 and vit1."
        )
    return text


def _settings(found: Found) -> Iterator[Number]:
    recipe, place, table = TARGET_RECIPES["mlp1"], "004.setup.figure_2", "004.table_5_model_certainty_percent"
    few = f"As many as there are of all that are compared; {command(SEEDS)} trains ten."
    none = f"Not run: there is one network of each; {command(SEEDS)} trains ten, and the same of cnn1 and vit1."
    why = "A setting, taken over." if found.count == SEEDS else few if found.count else none
    for name, what in ((f"{place}.seeds", "Figure 2"), (f"{table}.seeds", "Table 5")):
        yield Number(name, f"seeds that are compared, {what}", found.count or None, why, kind="setting")
    repeats = (
        f"Not run: takes {MOST} seeds of every architecture, some 30 hours on a core; {command(MOST)}, and the same of "
        f"cnn1 and vit1, and then `python -m benchmarks reproduce {STUDY}`, would."
    )
    for name, what in ((f"{place}.repeats", "Figure 2"), (f"{table}.repeats", "Table 5")):
        yield Number(name, f"repeats with ten other seeds, {what}", None, repeats, kind="setting")
    yield setting(f"{place}.batch", "batch of the networks with several seeds", recipe.batch)
    yield setting(f"{place}.adam_learning_rate", "Adam's step size for them", recipe.learning_rate)


def _claims(found: Found) -> list[Claim]:
    several = [kind for kind in found.kinds if sum((kind, t) in found.studies for t in TARGETS) > 1]
    claims = []
    if several:
        claims.append(_falls(found, several))
    if "MLP" in found.kinds and len(found.kinds) > 1:
        claims.append(_fewest(found))
    return claims


def _falls(found: Found, kinds: list[str]) -> Claim:
    holds, parts = {}, []
    for kind in kinds:
        values = {t: found.shares(kind, t) for t in TARGETS if (kind, t) in found.studies}
        parts.append(f"{kind} {', '.join(mean(some) for some in values.values())}")
        for a, b in pairwise(values):
            holds[f"{kind}, {at(a)} to {at(b)}"] = float(np.mean(values[a])) > float(np.mean(values[b]))
    return Claim(
        "networks of one architecture that differ in their seed disagree on fewer images the more accurate they are",
        "Figures 2 and 4",
        f"{'; '.join(parts)}, of {found.count} seeds: means over choices of latent vectors with their deviation.",
        holds,
    )


def _fewest(found: Found) -> Claim:
    others = [kind for kind in found.kinds if kind != "MLP"]
    means = {key: float(np.mean(found.shares(*key))) for key in found.studies}
    return Claim(
        "at the same accuracy architectures differ, and seeds of the MLP disagree on the fewest images (it has the "
        "fewest of type A and the most of type C)",
        "section 3, Figure 2",
        "; ".join(
            f"at {at(t)} " + ", ".join(f"{kind} {means[kind, t]:.1f}%" for kind in found.kinds if (kind, t) in means)
            for t in TARGETS
            if ("MLP", t) in means
        )
        + f", of {found.count} seeds.",
        {
            f"{at(t)}, {kind}": means["MLP", t] < means[kind, t]
            for t in TARGETS
            for kind in others
            if ("MLP", t) in means and (kind, t) in means
        },
    )


def _sheet(found: Found) -> Sheet:
    rows = []
    for kind in KINDS.values():
        for target in TARGETS:
            some = _of(found.answers, kind, target)
            every = mean(share(some.studies(), EVERY_MODEL)) if len(some) >= FEWEST else "—"
            first = mean(found.shares(kind, target)) if (kind, target) in found.studies else "—"
            seeds_there = ", ".join(str(model.seed) for model in some.models) or "none"
            rows.append([kind, at(target), seeds_there, every, first])
    return Sheet(
        "Images on which networks with different seeds disagree, mean over choices of latent vectors with its "
        "deviation",
        ["architecture", "accuracy", "seeds there are", "all of them", f"the first {found.count}"],
        rows,
    )


def _pictures(desk: Desk, found: Found) -> Iterator[Picture]:
    if not found.studies:
        return
    fo.disagreement.curves(found.studies).plot(desk.picture(CURVES))
    yield Picture(
        CURVES,
        f"Share of the images on which {found.count} networks that differ in their seed disagree, against their "
        "accuracy: what Figure 2 of 004 splits into type A and the rest. Bars are standard deviations over five "
        "choices of "
        "latent "
        "vectors, not over repeats with other seeds as in the paper.",
    )
    kind = "CNN" if "CNN" in found.kinds else found.kinds[0]
    maps = {t: found.studies[kind, t][0] for t in TARGETS if (kind, t) in found.studies}
    drawing.maps(desk.picture(MAP), maps, found.answers.sets.first)
    yield Picture(
        MAP,
        f"On which images of the first choice {found.count} {kind}s that differ in their seed disagree, by their "
        "accuracy (as Figure 4 of 004, without people): a square an image, a row a line; grey where they agree, the "
        "darker the "
        "blue the more digits they say.",
    )


def _figures(found: Found) -> dict[str, Any]:
    return {
        "disagree": {f"{kind} {at(t)}": found.shares(kind, t) for kind, t in found.studies},
        "accuracy": {
            model.words: value for model, value in zip(found.answers.models, found.answers.accuracy, strict=True)
        },
    }
