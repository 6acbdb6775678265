"""Section 3: the accuracy of the ship and plane network, and with flip points as further training points."""

from __future__ import annotations

import numpy as np

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_002.accuracy import settings
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Claim, Number, Record, Sheet, over_seeds, setting
from benchmarks.reproduce.trainings import Job
from flipopt.common.checks import Array
from flipopt.explain import synthetic
from models.recipes import RECIPES

SEEDS = (0, 1, 2, 3, 4)
AGAIN = (0, 1)
"""Seeds of networks that are trained again with the flip points of their own training images."""
MORE = "cifar-2500"
GAIN = 1.0
"""Points of accuracy, of the eleven to 95%, from which on one may speak of a way towards it."""


def accuracy(desk: Desk) -> Record:
    """Five seeds; two of them again with flip points; and a network that takes more coefficients."""
    recipe, seeds = RECIPES["cifar-200"], desk.few(SEEDS, SEEDS[:2])
    outcomes = desk.trained([Job(recipe, seed, keep=seed in AGAIN) for seed in seeds])
    test = [outcome.accuracy["test"] for outcome in outcomes]
    jobs = [
        Job(recipe, seed, "with the flip points of its training images", None, _flips(desk, seed)) for seed in AGAIN
    ]
    after = [outcome.accuracy["test"] for outcome in desk.trained(jobs)]
    more = desk.trained([Job(RECIPES[MORE], keep=True)])[0].accuracy["test"]
    rows = [["as it is", *(f"{value:.2f}" for value in test)]]
    rows.append(["with flip points", *(f"{value:.2f}" for value in after), *[""] * (len(seeds) - len(after))])
    return Record(
        title="Accuracy, and flip points as training points (section 3)",
        summary="Flip points of all training images, nearest each, were appended to the training set with the class of "
        f"their image, and the network was trained again from the start ({len(AGAIN)} seeds).",
        setup={"recipe": recipe.name, "trained again": list(AGAIN)},
        seeds=seeds,
        numbers=[
            *settings("001.setup", recipe, 2),
            setting(
                "001.setup.dropout",
                "dropout",
                recipe.dropout,
                "Chosen on validation images, beside moving and mirroring images, of which the paper has nothing.",
            ),
            over_seeds(
                "001.test_accuracy_percent",
                "test accuracy, %",
                test,
                f"{len(seeds)} seeds, from {min(test):.2f} to {max(test):.2f}.",
            ),
            _near(after, test, more),
        ],
        claims=[_towards(test, after)],
        sheets=[Sheet("Test accuracy in % by seed", ["trained", *(f"seed {seed}" for seed in seeds)], rows)],
        figures={"test": test, "with flip points": after, MORE: more},
    )


def _flips(desk: Desk, seed: int) -> tuple[Array, Array]:
    case = desk.case("cifar-200", seed)
    flips = desk.flips(f"cifar-200-seed{seed}-train", case, case.train.X)
    points = synthetic(flips, case.train.labels, which="all")
    return points.X, points.labels


def _near(after: list[float], test: list[float], more: float) -> Number:
    why = (
        f"The same seeds have {np.mean(test[: len(after)]):.2f} without them; with 2,500 coefficients instead it is "
        f"{more:.2f}, and the other paper too publishes {published()['002.cifar.test_accuracy_percent']} for so many."
    )
    name = "001.test_accuracy_with_flip_points_or_more_features_near_percent"
    return over_seeds(name, "test accuracy with flip points as training points (“near 95%”), %", after, why)


def _towards(test: list[float], after: list[float]) -> Claim:
    pairs = list(zip(AGAIN, test, after, strict=False))
    said = "; ".join(f"seed {seed}: {before:.2f}% before, {then:.2f}% after" for seed, before, then in pairs)
    return Claim(
        "flip points as new training points bring the test accuracy towards 95%",
        "section 3",
        f"{said}.",
        {f"seed {seed}": then > before + GAIN for seed, before, then in pairs},
    )
