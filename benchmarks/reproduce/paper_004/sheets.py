"""Small tables beside the numbers of 004."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

import flipopt as fo
from benchmarks.reproduce.paper_004.answers import Answers
from benchmarks.reproduce.paper_004.claims import CONFIRMED, by_agreement, share
from benchmarks.reproduce.paper_004.networks import KINDS, NINE, TARGETS
from benchmarks.reproduce.paper_004.sets import collect
from benchmarks.reproduce.paper_004.words import OVER, at, mean
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Sheet
from flipopt.disagreement.measures import EVERY_MODEL, TWO_MODELS

Studies = Mapping[float, Sequence[fo.disagreement.Study]]
COUNTS = {97.5: (47, 25, 10), 98.0: (36, 19, 15), 98.5: (30, 12, 14)}
"""Images of the paper on which models disagree, of type A and of type C: its percentages of 165."""
IMAGES, HARD = 165, 32
"""Images of the paper, and those on which its people disagree."""


def agreement(studies: Studies) -> Sheet:
    """Choice by choice."""
    head = ["accuracy", "models", "", *(f"choice {k + 1}" for k in range(_choices(studies))), "mean"]
    rows = [
        [at(target), str(len(some[0].predicted)), words, *(f"{v:.1f}%" for v in share(some, measure)),
         mean(share(some, measure))]
        for target, some in studies.items()
        for words, measure in (("two models", TWO_MODELS), ("all models", EVERY_MODEL))
    ]  # fmt: skip
    return Sheet(f"Images on which models disagree, by {OVER}, and their mean with its deviation", head, rows)


def _choices(studies: Studies) -> int:
    return max((len(some) for some in studies.values()), default=0)


def kinds(found: Answers) -> Sheet:
    """Two models of the same architecture, and of two, on lines and on the test set."""
    rows = []
    for target in TARGETS:
        models = found.at(target)
        pairs = list(combinations(range(len(models)), 2))
        for words, chosen in _pairs_by_kind(models, pairs).items():
            lines = [
                float(np.mean([100 * _differ(models.predicted[:, found.sets.part(k)], pair) for pair in chosen]))
                for k in range(len(found.sets.choices))
            ]
            test = np.mean([100 * _differ(models.test_predicted, pair) for pair in chosen])
            rows.append([at(target), words, str(len(chosen)), mean(lines), f"{test:.2f}%"])
    return Sheet(
        f"Images on which two models disagree, by architecture: on the lines, over {OVER}, and on the test set of "
        "MNIST",
        ["accuracy", "architectures", "pairs", "on the lines", "on the test set"],
        rows,
    )


def _differ(predicted: np.ndarray, pair: tuple[int, int]) -> float:
    return float((predicted[pair[0]] != predicted[pair[1]]).mean())


def _pairs_by_kind(models: Answers, pairs: Sequence[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    order = list(KINDS.values())
    for pair in pairs:
        both = sorted((models.models[k].kind for k in pair), key=order.index)
        found.setdefault(f"two {both[0]}s" if both[0] == both[1] else f"{both[0]} and {both[1]}", []).append(pair)
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith("two"), item[0])))


def softmax(studies: Studies) -> Sheet:
    """Ours by agreement of models alone, beside what the paper's four types come to."""
    rows = []
    for target, some in studies.items():
        both = [by_agreement(study) for study in some]
        ours = [mean(values, 3, "") for values in zip(*both, strict=True)]
        theirs = [f"{value:.3f}" for value in papers_softmax(target)]
        rows.append([at(target), ours[0], theirs[0], ours[1], theirs[1]])
    return Sheet(
        "The largest softmax, by whether models agree; the paper's is put together from Table 4 by the counts that its "
        f"percentages of {IMAGES} images come to",
        ["accuracy", "models disagree, ours", "the paper's", "models agree, ours", "the paper's"],
        rows,
    )


def papers_softmax(target: float) -> tuple[float, float]:
    """The paper's mean where models disagree, and where they agree, from its types and their counts."""
    disagree, type_a, type_c = COUNTS[target]
    column = TARGETS.index(target)
    a, both, agree, c = (
        published()[f"004.table_4_max_softmax.{row}.{column}.0"]
        for row in ("type_A", "type_B_disagree", "type_B_agree", "type_C")
    )
    easy = IMAGES - HARD - type_a
    return (type_a * a + (disagree - type_a) * both) / disagree, (easy * agree + type_c * c) / (easy + type_c)


def trained(found: Answers) -> Sheet:
    """The accuracies of all networks, by recipe."""
    there = {model: f"{value:.2f}%" for model, value in zip(found.models, found.accuracy, strict=True)}
    by_place = {(model.name, model.target): words for model, words in there.items()}
    return Sheet(
        "Accuracies of the networks on the test set, as they classify it from their files; — where there is none",
        ["recipe", "seed", *(f"target {at(target)}" for target in TARGETS)],
        [[name, str(seed), *(by_place.get((name, target), "—") for target in TARGETS)] for name, seed in NINE.items()],
    )


OF_PEOPLE = (
    ("section 3, Table 3", "models disagree on other images than people (types A and C)"),
    ("section 3, Table 2", "a model misclassifies much fewer images than all nine together"),
    ("section 3, Table 4", "models are surer on images of type C than of type A"),
    ("Figure 2, left", "images of type A become fewer with the accuracy of the models"),
    ("Figure 2, right", "images of type C become more with the accuracy of the models"),
    ("appendix C, Table 5", "the certainty of models has nothing to do with that of people"),
)
OF_NINE = "section 3, Table 2", "two models disagree on much fewer images than all nine"


def waiting(study: str, found: Answers, asked: bool) -> list[Sheet]:
    """Claims on which nothing is said before people have labelled the images, or before all nine models are there."""
    rows = [] if asked else [[*claim, collect(study) if k == 0 else "The same."] for k, claim in enumerate(OF_PEOPLE)]
    if sum(len(found.at(target)) == len(NINE) for target in TARGETS) < CONFIRMED:
        rows.append([*OF_NINE, f"All nine models at {CONFIRMED} accuracies: of fewer, fewer can disagree."])
    return [Sheet("Claims that wait", ["where", "claim", "what it takes"], rows)] if rows else []
