"""One boundary of each classifier, by every method and measure (sections 6.1 to 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_000 import choice, tables
from benchmarks.reproduce.paper_000.classifiers import SMALL, Classifier, Model, classifier
from benchmarks.reproduce.paper_000.measures import SEEDS, WAYS, Row, beside, by_seed, directions, dug, kept, mean
from benchmarks.reproduce.record import Claim, Picture, Record
from flipopt import report
from flipopt.borderline import DeepDig, DeepDigOptions, Instances, Tradeoff
from flipopt.borderline.refinement import Refinement

DRAWN = 400
"""Instances of a direction, and images of a class, in a picture."""
SHOWN = 5
"""Sources in a picture of instances."""
FOOLED, BACK = 0.02, 0.98
"""Share left in class s after component I at most, and back there after component II at least."""


def small(desk: Desk) -> Record:
    """The four small classifiers."""
    table: dict[Model, Sequence[Row]] = {}
    others: dict[Model, Row] = {}
    alphas: dict[Model, Tradeoff] = {}
    drawn: list[Picture] = []
    seeds = desk.few(SEEDS, SEEDS[:1])
    for model in SMALL:
        known = classifier(desk, model)
        found = dug(desk, known, seeds)
        table[model] = [kept(desk, known, f"seed{k}", partial(by_seed, desk, known, found, k)) for k in seeds]
        others[model] = kept(desk, known, "beside", partial(beside, desk, known, found, seeds[0]))
        alphas[model] = choice.tradeoff(desk, known)
        drawn += [choice.picture(desk, known, alphas[model]), *_pictures(desk, known, found.of(seeds[0]))]
        if not desk.quick:
            found.of(seeds[0]).save(desk.results / "autoencoders" / model.name)
    return Record(
        title="DeepDIG, its baselines and one boundary of four classifiers (Tables 3, 4, 6, 7 and 9)",
        summary="One pair of classes of each of the four small classifiers (seed 0): “1” and “2” of MNIST, “Trouser” "
        f"and “Pullover” of FashionMNIST. The autoencoders were trained with {len(seeds)} seeds by the losses (1) and "
        "(2) as they are printed, a sum over pixels. A success rate is of the pairs that were searched: of DeepDIG, "
        "those that components I and II led where they should; the yield, in the tables of ours, is of all training "
        "images of the class. EPBS is as the paper describes it. Closest flip points stand beside as a fourth method. "
        f"The autoencoders of seed {seeds[0]} are in `benchmarks/results/reproduction/autoencoders`.",
        setup={
            "autoencoders": repr(DeepDigOptions(seeds=tuple(seeds))),
            "refinement": repr(Refinement()),
            "pairs": {model.name: model.pair for model in SMALL},
        },
        seeds=seeds,
        numbers=[
            *tables.settings(),
            *tables.figure_3(),
            *(number for model in SMALL for number in tables.numbers(model, table[model])),
            tables.least_edc2(table),
            *tables.linked(table),
        ],
        claims=claims(table),
        pictures=drawn,
        sheets=[
            tables.methods(table, others),
            tables.as_coded(others),
            tables.maps(table),
            tables.own_planes(table),
            choice.sheet(alphas),
        ],
        figures={model.name: {"seeds": table[model], "beside": others[model]} for model in SMALL},
    )


def claims(table: tables.Rows) -> list[Claim]:
    """What the paper says of all its classifiers."""
    return [_fools(table), _most(table), _nearer(table), _simpler(table), _linked(table)]


def _fools(table: tables.Rows) -> Claim:
    most = {m: max(row[f"{way} I accuracy"] for row in rows for way in WAYS) for m, rows in table.items()}
    least = {m: min(row[f"{way} II accuracy"] for row in rows for way in WAYS) for m, rows in table.items()}
    return Claim(
        "component I leads nearly every image out of its class, and component II nearly every one back",
        "section 6.1, Tables 3 to 5",
        "; ".join(f"{m.words}: at most {most[m]:.3f} left, at least {least[m]:.3f} back" for m in table)
        + f", over all seeds and both directions, where {FOOLED} and {BACK} are asked for.",
        {m.words: most[m] <= FOOLED and least[m] >= BACK for m in table},
    )


def _most(table: tables.Rows) -> Claim:
    rates = {m: [mean(rows, f"{name} success") for name in ("DeepDIG", "RPBS", "EPBS")] for m, rows in table.items()}
    return Claim(
        "DeepDIG finds borderline instances for a larger share of its pairs than random or embedding-nearest pairs do",
        "section 6.2, Tables 6 to 8",
        "; ".join(f"{m.words}: {a:.1f}% against {b:.1f}% and {c:.1f}%" for m, (a, b, c) in rates.items()) + ".",
        {m.words: a > max(b, c) for m, (a, b, c) in rates.items()},
    )


def _nearer(table: tables.Rows) -> Claim:
    holds = {m.words: all(row["edc1_borderline"] < row["edc1_test"] for row in rows) for m, rows in table.items()}
    return Claim(
        "in the embedding space borderline instances are nearer to a linear boundary than test samples (EDC1)",
        "section 6.3, Table 9",
        "; ".join(
            f"{m.words}: {mean(rows, 'edc1_borderline'):.2f} against {mean(rows, 'edc1_test'):.2f}"
            for m, rows in table.items()
        )
        + ". By construction they lie on the classifier's own plane.",
        holds,
    )


def _simpler(table: tables.Rows) -> Claim:
    by_name = {model.name: mean(rows, "IDC") for model, rows in table.items()}
    sets = [name.removesuffix("_CNN") for name in by_name if name.endswith("_CNN")]
    return Claim(
        "the boundary of a fully connected network is less complex (IDC) than that of a convolutional one",
        "section 6.3, Table 9",
        "; ".join(f"{name}: {by_name[f'{name}_FCN']:.4f} against {by_name[f'{name}_CNN']:.4f}" for name in sets) + ".",
        {name: by_name[f"{name}_FCN"] < by_name[f"{name}_CNN"] for name in sets},
    )


def _linked(table: tables.Rows) -> Claim:
    """By seed of the autoencoders: a figure a classifier."""
    seeds = range(min(len(rows) for rows in table.values()))
    found = {k: tables.correlation(table, k, "edc2_borderline") for k in seeds}
    return Claim(
        "IDC and EDC2 of borderline instances go together: the more complex, the less separable",
        "section 6.3",
        f"Pearson's r of {len(table)} classifiers: "
        + "; ".join(f"seed {k} of the autoencoders {one.r:.2f} (p = {one.p:.2g})" for k, one in found.items())
        + ".",
        {f"seed {k} of the autoencoders": bool(one.r < 0) for k, one in found.items()},
    )


def _pictures(desk: Desk, known: Classifier, one: DeepDig) -> list[Picture]:
    """Figures 4 to 6, and what instances of all methods look like."""
    (X, labels), name = known.train, known.model.name
    s, t = known.pair
    rng = np.random.default_rng(0)
    some = np.concatenate([rng.choice(rows, min(DRAWN, len(rows)), replace=False) for rows in _of(labels, s, t)])
    test, test_labels = known.test
    held = np.concatenate([rows[: DRAWN // 4] for rows in _of(test_labels, s, t)])
    found = Instances.join([one.instances.between(*way).found.take(slice(DRAWN)) for way in directions(known)])
    drawn = []
    if len(found):
        path = desk.picture(f"000-embedding-{name}.png")
        report.draw_embedding(path, known.network, X[some], labels[some], found, test[held], known.classes)
        pictures.smaller(path)
        drawn.append(
            Picture(
                path.name,
                f"{known.model.words}: the last hidden layer of images of “{known.classes[s]}” and "
                f"“{known.classes[t]}” in two principal components (of the training images), and DeepDIG's borderline "
                "instances between.",
            )
        )
    return [*drawn, *_instances(desk, known, one)]


def _instances(desk: Desk, known: Classifier, one: DeepDig) -> list[Picture]:
    (X, labels), (s, t) = known.train, known.pair
    rows = np.concatenate([rows[: 20 * SHOWN] for rows in _of(labels, s, t)])
    made = one.instances.between(s, t)
    made = made.take(np.isin(made.row, rows))
    place = {row: k for k, row in enumerate(rows.tolist())}
    made.row[:] = [place[row] for row in made.row.tolist()]
    few, names = (known.network, X[rows], labels[rows], s, t), {"DeepDIG": made}
    names |= {"random pair": fo.borderline.rpbs(*few), "nearest in the embedding": fo.borderline.epbs(*few)}
    names["closest flip point"] = fo.borderline.closest(*few, count=2 * SHOWN, bounds=(0.0, 1.0))
    path = desk.picture(f"000-instances-{known.model.name}.png")
    sides = known.data.shape[:2]
    try:
        report.draw_instances(path, names, X[rows], sides, SHOWN, known.classes)
    except fo.InputError:  # no source has an instance by every method
        return []
    pictures.smaller(path)
    words = f"“{known.classes[s]}” to “{known.classes[t]}”"
    return [
        Picture(path.name, f"{known.model.words}, {words}: borderline instances of the same images by four methods.")
    ]


def _of(labels: Any, s: int, t: int) -> tuple[Any, Any]:
    return np.flatnonzero(labels == s), np.flatnonzero(labels == t)
