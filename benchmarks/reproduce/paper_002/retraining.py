"""Flip points as training points (section 6.1): the nearest flip of every mistake of NET1 and NET2, labelled right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.record import Claim, Record, Sheet, over_seeds
from benchmarks.reproduce.trainings import Job
from flipopt.common.checks import Array
from flipopt.explain import synthetic
from models.recipes import RECIPES

SEEDS = (0, 1, 2, 3, 4)
NETWORKS = ("mnist-net1", "mnist-net2")
RECIPE = replace(RECIPES["mnist-net1"], name="mnist-both-halves", half=None)
"""The same network on the whole training set."""


def retraining(desk: Desk) -> Record:
    """Five seeds with the flip points and without."""
    seeds = desk.few(SEEDS, SEEDS[:2])
    X, labels = _points(desk)
    plain = desk.trained([Job(RECIPE, seed) for seed in seeds])
    jobs = [Job(RECIPE, seed, "with flip points of mistakes", extra=(X, labels), keep=True) for seed in seeds]
    more = desk.trained(jobs)
    before, after = ([outcome.accuracy["test"] for outcome in outcomes] for outcomes in (plain, more))
    images = len(desk.case("mnist-net1").train)
    whole = []
    for outcome in more:
        assert outcome.network is not None
        right = float((outcome.network.predict(X) == labels).sum()) if len(X) else 0.0
        whole.append((outcome.accuracy["train"] * images + 100 * right) / (images + len(X)))
    gain = np.subtract(after, before)
    name = "002.flip_points_as_training_data"
    rows = [
        [label, *(f"{value:.2f}" for value in values)]
        for label, values in (
            ("without, test", before),
            ("with, test", after),
            ("without, training images", [outcome.accuracy["train"] for outcome in plain]),
            ("with, training images and flip points", whole),
        )
    ]
    return Record(
        title="Flip points as training points (section 6.1)",
        summary=f"The nearest flip points of the {len(X):,} mistakes that NET1 and NET2 make on the training set were "
        "appended to the whole training set, each with the right class of its image, and the network was trained from "
        "the start; the same seeds without them are beside it.",
        setup={"flip points": len(X), "epochs": RECIPE.epochs},
        seeds=seeds,
        numbers=[
            over_seeds(
                f"{name}.before_test_percent",
                "test accuracy without flip points, %",
                before,
                "Trained on the whole training set, which the paper does not say of its network before.",
            ),
            over_seeds(
                f"{name}.after_test_percent",
                "test accuracy with flip points, %",
                after,
                f"A gain of {gain.mean():.2f} ± {gain.std(ddof=1):.2f} points over the same seeds.",
            ),
            over_seeds(
                f"{name}.after_training_percent",
                "accuracy on training images and flip points, %",
                whole,
                f"{RECIPE.epochs} epochs.",
            ),
        ],
        claims=[_improves(gain)],
        sheets=[Sheet("Accuracy in % by seed", ["trained", *(f"seed {seed}" for seed in seeds)], rows)],
        figures={"gain in points": gain},
    )


def _points(desk: Desk) -> tuple[Array, Array]:
    """The nearest flip points of all mistakes of both networks on the training set, and the right classes."""
    parts = []
    for name in NETWORKS:
        case = desk.case(name)
        mistakes = case.train.take(case.predicted(case.train) != case.train.labels)
        flips = desk.flips(f"{name}-mistakes", case, mistakes.X)
        parts.append(synthetic(flips, mistakes.labels))
    return np.concatenate([part.X for part in parts]), np.concatenate([part.labels for part in parts])


def _improves(gain: Array) -> Claim:
    reach = float(stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain)))
    return Claim(
        "appending flip points of mistakes to the training set improves the accuracy on the test set",
        "section 6.1",
        f"{gain.mean():+.2f} points over {len(gain)} seeds (95% interval {gain.mean() - reach:+.2f} to "
        f"{gain.mean() + reach:+.2f}).",
        {f"seed {seed}": bool(value > 0) for seed, value in enumerate(gain)},
    )
