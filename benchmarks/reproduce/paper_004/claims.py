"""What 004 says of models, and of models and people, looked at accuracy by accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

import flipopt as fo
from benchmarks.reproduce.paper_004.networks import NINE
from benchmarks.reproduce.paper_004.words import at, mean
from benchmarks.reproduce.record import Claim
from flipopt.disagreement.measures import (
    BOTH_DISAGREE,
    EVER_WRONG,
    EVERY_MODEL,
    TWO_MODELS,
    TYPE_A,
    TYPE_C,
    WRONG,
)

Study = fo.disagreement.Study
MUCH = 0.5
"""Less than so much of a share is "much lower"; the paper's two models have 0.39 to 0.41 of what nine have."""
CONFIRMED = 2
"""Accuracies that have all nine models, before something is said of nine."""


def share(studies: Sequence[Study], measure: str, column: str = "share") -> list[float]:
    """A measure in percent, or another column of it, one a study."""
    return [100 * study.agreement.of(measure)[column] for study in studies]


def of_models(studies: Mapping[float, Sequence[Study]], same: Mapping[float, Sequence[Study]]) -> list[Claim]:
    """Of studies without people, by accuracy one for each choice of latent vectors.

    ``same`` are studies of recipes that have a network at every accuracy.
    """
    nine = {t: some for t, some in studies.items() if len(some[0].predicted) == len(NINE)}
    found = [_two_and_nine(nine)] if len(nine) >= CONFIRMED else []
    found += [_softmax(studies)] if studies else []
    return found + ([_falls(same)] if same else [])


def _two_and_nine(studies: Mapping[float, Sequence[Study]]) -> Claim:
    two, every = ({t: share(some, name) for t, some in studies.items()} for name in (TWO_MODELS, EVERY_MODEL))
    return Claim(
        "models of the same accuracy disagree on different images: two models on much fewer of them than all nine",
        "section 3, Table 2",
        "; ".join(f"at {at(t)} {mean(two[t])} and {mean(every[t])}" for t in studies)
        + f". “Much” is here less than {MUCH:g} times as many, in the mean over choices of latent vectors.",
        {at(t): float(np.mean(two[t]) / np.mean(every[t])) < MUCH for t in studies},
    )


def _falls(studies: Mapping[float, Sequence[Study]]) -> Claim:
    holds, parts = {}, []
    for measure, words in ((TWO_MODELS, "two models"), (EVERY_MODEL, "all models")):
        values = {t: share(some, measure) for t, some in studies.items()}
        parts.append(f"{words}: {', '.join(mean(some) for some in values.values())}")
        for a, b in pairwise(values):
            fewer = sum(x > y for x, y in zip(values[a], values[b], strict=True))
            parts[-1] += f", fewer from {at(a)} to {at(b)} for {fewer} of {len(values[a])} choices"
            holds[f"{words}, {at(a)} to {at(b)}"] = float(np.mean(values[a])) > float(np.mean(values[b]))
    count = len(next(iter(studies.values()))[0].predicted)
    return Claim(
        "the more accurate the models, the fewer images they disagree on",
        "section 3, Table 2",
        f"{'; '.join(parts)}; of the {count} recipes that have a network at every accuracy.",
        holds,
    )


def _softmax(studies: Mapping[float, Sequence[Study]]) -> Claim:
    means = {t: [by_agreement(study) for study in some] for t, some in studies.items()}
    return Claim(
        "the largest softmax is lower where models disagree than where they agree",
        "section 3, Table 4",
        "; ".join(
            f"at {at(t)} {mean([a for a, _ in some], 2, '')} and {mean([b for _, b in some], 2, '')}"
            for t, some in means.items()
        )
        + ". It holds where it does for every choice of latent vectors.",
        {at(t): all(a < b for a, b in some) for t, some in means.items()},
    )


def by_agreement(study: Study) -> tuple[float, float]:
    """Mean of the largest softmax where models disagree, and where they agree; NaN of no images."""
    assert study.softmax is not None
    parts = study.softmax[:, study.disagree], study.softmax[:, ~study.disagree]
    apart, agreed = (float(part.mean()) if part.size else np.nan for part in parts)
    return apart, agreed


def of_people(studies: Mapping[float, Study], same: Mapping[float, Study]) -> list[Claim]:
    """Of studies with people, by accuracy; ``same`` are those of recipes that have a network at every accuracy."""
    if not studies:
        return []
    named, alike = ({at(target): study for target, study in some.items()} for some in (studies, same))
    nine = {name: study for name, study in named.items() if len(study.predicted) == len(NINE)}
    found = [*([_each_and_any(nine)] if len(nine) >= CONFIRMED else []), _other_images(named), _types(named)]
    return found + ([_fewer_a(alike)] if alike else [])


def _of(study: Study, measure: str, column: str = "share") -> float:
    return 100 * study.agreement.of(measure)[column]


def _each_and_any(studies: Mapping[str, Study]) -> Claim:
    return Claim(
        "a model misclassifies much fewer images than all models together: they do not misclassify the same",
        "section 3, Table 2",
        "; ".join(f"{name}: {_of(s, WRONG):.1f}% and {_of(s, EVER_WRONG):.1f}%" for name, s in studies.items())
        + f". “Much” is less than {MUCH:g} times as many.",
        {name: _of(s, WRONG) < MUCH * _of(s, EVER_WRONG) for name, s in studies.items()},
    )


def _other_images(studies: Mapping[str, Study]) -> Claim:
    def words(study: Study, kind: str) -> str:
        return f"{_of(study, kind):.0f}% [{_of(study, kind, 'low'):.0f}, {_of(study, kind, 'high'):.0f}]"

    return Claim(
        "models disagree on other images than people: there are many of type A, where people agree and models do not, "
        "and many of type C, where it is the other way round",
        "section 3, Table 3",
        "; ".join(f"{name}: type A {words(s, TYPE_A)}, type C {words(s, TYPE_C)}" for name, s in studies.items())
        + ", with 95% intervals over images. It holds where both intervals are above 0.",
        {name: min(_of(s, kind, "low") for kind in (TYPE_A, TYPE_C)) > 0 for name, s in studies.items()},
    )


def _types(studies: Mapping[str, Study]) -> Claim:
    means = {name: _softmax_of(study) for name, study in studies.items()}
    return Claim(
        "models are less sure where they alone disagree (type A) than where people alone do (type C), and where both "
        "disagree they are surer than on type A",
        "section 3, Table 4",
        "; ".join(
            f"{name}: type A {one[TYPE_A]:.2f}, both {one[BOTH_DISAGREE]:.2f}, type C {one[TYPE_C]:.2f}"
            for name, one in means.items()
        )
        + ": means of the largest softmax.",
        {
            f"{name}, {words}": one[TYPE_A] < one[kind]
            for name, one in means.items()
            for words, kind in (("type C", TYPE_C), ("both", BOTH_DISAGREE))
            if np.isfinite(one[kind]) and np.isfinite(one[TYPE_A])
        },
    )


def _softmax_of(study: Study) -> dict[str, float]:
    """Means by kind; NaN of kinds that no image is of."""
    table = study.softmax_by_type
    known = dict(zip(table.kind.tolist(), table.mean.tolist(), strict=True))
    return {kind: float(known.get(kind, np.nan)) for kind in (TYPE_A, BOTH_DISAGREE, TYPE_C)}


def _fewer_a(studies: Mapping[str, Study]) -> Claim:
    values = {name: _of(study, TYPE_A) for name, study in studies.items()}
    count = len(next(iter(studies.values())).predicted)
    return Claim(
        "the more accurate the models, the fewer images are of type A",
        "section 3, Tables 2 and 3",
        f"{', '.join(f'{name} {value:.1f}%' for name, value in values.items())}, of the {count} recipes that have a "
        "network at every accuracy.",
        {f"{a} to {b}": values[a] > values[b] for a, b in pairwise(values)},
    )
