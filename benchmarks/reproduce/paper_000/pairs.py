"""All boundaries between ten classes (section 6.4): 45 pairs, both directions, by DeepDIG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import flipopt as fo
from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_000.classifiers import SMALL, Classifier, Model, classifier
from benchmarks.reproduce.paper_000.measures import options
from benchmarks.reproduce.record import Claim, Number, Picture, Record, Sheet, setting
from flipopt import report
from flipopt.borderline import Correlation, DeepDig, DeepDigOptions, Measuring, Profile

MODELS = SMALL[:2]
"""The paper's convolutional network for MNIST, and another network that confirms what is found or does not."""
QUICK_PAIRS = [(0, 1), (0, 2), (1, 2)]
COUNT = 500
"""Sources of a direction that are led to the boundary; maps learn from all."""
STEPS = 2000
"""Of an autoencoder, in place of the paper's 5,000: there are 180 of them for each network."""
MEASURING = Measuring(pairs=200, flips=20, starts=100, bounds=(0.0, 1.0))
QUICK = Measuring(pairs=10, flips=2, starts=4, k=5, m=5, bounds=(0.0, 1.0))
SIGNIFICANT = 0.05
FRAGILE = 5
"""Pairs in a table."""
MAPS = ("idc", "edc1_borderline", "edc1_test", "edc2_borderline", "edc2_test", "given_success", "closest_distance")
"""What is drawn: Figures 7 to 9, and what the paper does not have."""


def pairs(desk: Desk) -> Record:
    """Profiles of two networks for MNIST on what DeepDIG finds."""
    found: dict[Model, Profile] = {}
    drawn: list[Picture] = []
    for model in MODELS:
        known = classifier(desk, model)
        dug = _dug(desk, known)
        found[model] = _profile(desk, known, dug)
        drawn += _pictures(desk, known, dug, found[model])
    linked = {model: profile.correlation("idc", "edc2_borderline") for model, profile in found.items()}
    first, count = linked[MODELS[0]], len(found[MODELS[0]]) // 2
    return Record(
        title="All pairs of classes (section 6.4, Table 10, Figures 7 to 9)",
        summary=f"DeepDIG between all {count} pairs of classes of two networks for MNIST, both directions, one seed of "
        f"the autoencoders, which had {_options(desk).steps:,} steps in place of the paper's "
        f"{DeepDigOptions().steps:,}; up to {desk.few(COUNT, 5)} images of a direction were led to the boundary. "
        "IDC is the mean of both directions.",
        setup={"autoencoders": repr(_options(desk)), "measuring": repr(desk.few(MEASURING, QUICK))},
        seeds=(0,),
        numbers=[
            setting("000.setup.pairs_of_ten_classes", "pairs of classes", count, "Counted."),
            setting("000.setup.significance", "level of significance", SIGNIFICANT),
            *_correlated(first),
        ],
        claims=[_simpler(linked), _nearer(found)],
        pictures=drawn,
        sheets=[_fragile(found)],
        figures={
            model.name: {name: getattr(profile, name) for name in ("classes", *Profile.measures())}
            for model, profile in found.items()
        },
    )


def _options(desk: Desk) -> DeepDigOptions:
    found = options(desk, (0,), count=desk.few(COUNT, 5))
    return replace(found, steps=min(found.steps, STEPS))


def _dug(desk: Desk, known: Classifier) -> DeepDig:
    X, labels = known.train
    desk.console.print(f"{known.model.name}: autoencoders of all pairs of classes")
    return fo.borderline.deepdig(
        known.network,
        X,
        labels,
        desk.few("all", QUICK_PAIRS),
        _options(desk),
        run=desk.work / "deepdig" / f"{known.model.name}-all",
        executor=desk.few("processes", None),
        progress=True,
    )


def _profile(desk: Desk, known: Classifier, dug: DeepDig) -> Profile:
    (X, labels), (test, test_labels) = known.train, known.test
    found = fo.borderline.profile(
        known.network,
        X,
        labels,
        desk.few("all", QUICK_PAIRS),
        instances=dug.instances,
        test=test,
        test_labels=test_labels,
        options=desk.few(MEASURING, QUICK),
        run=desk.work / "deepdig" / f"{known.model.name}-profile",
        executor=desk.few("processes", None),
        progress=True,
    )
    return found.named(known.classes)


def _correlated(found: Correlation) -> list[Number]:
    place, r, p = "000.section_6_4_pearson_45_pairs", found.r, found.p
    finite = bool(np.isfinite(r))
    return [
        Number(
            f"{place}.IDC_vs_EDC2_borderline",
            "Pearson's correlation of IDC and EDC2 of borderline instances over pairs of classes",
            r if finite else None,
            f"Of {found.n} pairs of the convolutional network.",
        ),
        Number(
            f"{place}.p_value",
            "its p-value",
            p if finite else None,
            "Two-sided, by Student's t; 0.000384 belongs to the coefficient that the paper prints.",
        ),
    ]


def _simpler(linked: Mapping[Model, Correlation]) -> Claim:
    return Claim(
        "over all pairs of classes IDC and EDC2 of borderline instances go together: the more complex, the less "
        f"separable, significant at p < {SIGNIFICANT}",
        "section 6.4",
        "Pearson's r: " + "; ".join(f"{model.words}: {found}" for model, found in linked.items()) + ".",
        {model.words: bool(found.r < 0 and found.p < SIGNIFICANT) for model, found in linked.items()},
    )


def _nearer(found: Mapping[Model, Profile]) -> Claim:
    nearer = {model: profile.edc1_borderline < profile.edc1_test for model, profile in found.items()}
    return Claim(
        "between every two classes borderline instances are nearer to a linear boundary than test samples (EDC1)",
        "section 6.4, Figure 8",
        "; ".join(f"{model.words}: for {int(few.sum()) // 2} of {len(few) // 2} pairs" for model, few in nearer.items())
        + ". By construction they lie on the network's own plane.",
        {model.words: bool(few.all()) for model, few in nearer.items()},
    )


def _fragile(found: Mapping[Model, Profile]) -> Sheet:
    head = ["network", "from", "to", "closest flip", "DeepDIG's success", "times as far", "IDC"]
    body = []
    for model, profile in found.items():
        some = profile.most_fragile(FRAGILE)
        for k, (s, t) in enumerate(some.classes):
            values = f"{some.closest_distance[k]:.2f}", f"{100 * some.given_success[k]:.1f}%"
            more = f"{some.given_farther[k]:.2f}", f"{some.idc[k]:.4f}"
            body.append([model.words, profile.name_of(int(s)), profile.name_of(int(t)), *values, *more])
    return Sheet(
        "The most fragile ordered pairs, by the median distance of closest flip points, and how DeepDIG's instances "
        "compare",
        head,
        body,
    )


def _pictures(desk: Desk, known: Classifier, dug: DeepDig, profile: Profile) -> list[Picture]:
    maps = desk.picture(f"000-pairs-{known.model.name}.png")
    report.draw_profile(maps, profile, [name for name in MAPS if np.isfinite(getattr(profile, name)).any()])
    pictures.smaller(maps)
    table = desk.picture(f"000-table-10-{known.model.name}.png")
    _draw_instances(table, known, dug)
    words = known.model.words
    return [
        Picture(
            maps.name,
            f"{words}: what lies between every two classes. From the class in the row to that in the column; “given” "
            "pairs are those of DeepDIG, EDC is of both directions together.",
        ),
        Picture(
            table.name,
            f"{words}: a borderline instance by DeepDIG for every ordered pair of classes, drawn at random: approached "
            "from the class in the row, on the boundary to that in the column. Empty where none was found.",
        ),
    ]


def _draw_instances(path: Path, known: Classifier, dug: DeepDig) -> None:
    """Table 10: an instance of every ordered pair."""
    classes, (height, width) = known.classes, known.data.shape[:2]
    count, rng = len(classes), np.random.default_rng(0)
    sheet = np.ones((count * height, count * width))
    for s, t in sorted({(int(s), int(t)) for s, t in dug.instances.classes}):
        some = dug.instances.between(s, t).found
        if len(some):
            place = slice(s * height, (s + 1) * height), slice(t * width, (t + 1) * width)
            sheet[place] = some.x[rng.integers(len(some))].reshape(height, width)
    drawn = pictures.figure(6.4, 6.6)
    axis = drawn.subplots()
    axis.imshow(sheet, cmap="gray", vmin=0, vmax=1)
    axis.set(xlabel="on the boundary to", ylabel="approached from")
    axis.set_xticks((np.arange(count) + 0.5) * width - 0.5, classes)
    axis.set_yticks((np.arange(count) + 0.5) * height - 0.5, classes)
    axis.tick_params(length=0)
    pictures.save(drawn, path)
