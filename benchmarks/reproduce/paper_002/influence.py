"""Figure 4: networks trained on the images nearest to a flip, the farthest ones, or random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.record import Claim, Number, Picture, Record, Sheet, over_seeds, setting
from benchmarks.reproduce.trainings import Job
from flipopt.common.checks import Array
from models.recipes import RECIPES

SIZES = (1000, 2000, 4000, 6500, 9463, 12500, 16000, 22000)
"""Of the subsets: the published 9,463 and 16,000, and others around them."""
PUBLISHED, LEARNS_ALL = 9463, 16000
RANDOM_TRIALS = 20
"""Random subsets of the published size; the paper has 50."""
SEEDS = (0, 1, 2)
"""Initial weights for the nearest and the farthest of the published sizes."""
ALL, PRINTED = 99.95, 99.5
"""Percent from which on a half counts as learnt, and from which on it is printed as 100%."""
STEPS, EPOCHS = 1500, 12
"""Gradient steps of a training at least, and epochs at least: a small subset is gone through more often."""
KINDS = ("nearest", "random", "farthest")
COLOURS = {"nearest": "#2166ac", "random": "0.45", "farthest": "#b2182b"}
Accuracies = dict[tuple[str, int], list[tuple[float, float]]]
"""Of a kind and size: (test, half) accuracy in percent of every training."""


@dataclass(frozen=True)
class _Ordered:
    """The images of the half, by distance to the nearest flip of NET1."""

    rows: Array
    distance: Array

    def subset(self, kind: str, size: int, seed: int) -> Array:
        """Rows of the half, in order of rows."""
        if kind == "random":
            return np.sort(np.random.default_rng(seed).choice(self.rows, size, replace=False))
        return np.sort(self.rows[:size] if kind == "nearest" else self.rows[-size:])


def influence(desk: Desk) -> Record:
    """Train on subsets of the half that NET1 was trained on."""
    case = desk.case("mnist-net1")
    half = len(case.data.train.labels)
    nearest = desk.flips("mnist-net1-all", case, case.train.X, "all").nearest()[:half]
    order = np.argsort(nearest.distance, kind="stable")
    images = _Ordered(nearest.row[order], nearest.distance[order])
    scale = half / 30000  # a quick run has fewer images
    sizes = {size: max(8, round(size * scale)) for size in desk.few(SIZES, (PUBLISHED, LEARNS_ALL))}
    plans = _plans(desk, list(sizes))
    jobs = [_job(images, kind, size, sizes[size], seed) for kind, size, seed in plans]
    found: Accuracies = {}
    for (kind, size, _), outcome in zip(plans, desk.trained(jobs), strict=True):
        found.setdefault((kind, size), []).append((outcome.accuracy["test"], outcome.accuracy["first half"]))
    path = desk.picture("002-figure-4.png")
    thresholds = {size: float(images.distance[count - 1]) for size, count in sizes.items()}
    _draw(path, found, thresholds)
    rows = [
        [f"{size:,}", f"{thresholds[size]:.2f}", *(_shown([test for test, _ in found[kind, size]]) for kind in KINDS)]
        for size in sizes
    ]
    return Record(
        title="Which training images matter (Figure 4)",
        summary="The images of the half that NET1 was trained on were put in the order of their distances to the "
        "nearest flip point. Networks of the same kind were trained from the start on the nearest of them, on the "
        f"farthest, and on random ones, for {STEPS} gradient steps or {EPOCHS} epochs, whichever is more, as was fixed "
        "beforehand.",
        setup={"sizes": list(sizes), "random subsets of 9,463": len(found["random", PUBLISHED]), "steps": STEPS},
        seeds=SEEDS,
        numbers=_numbers(images, found, thresholds),
        claims=_claims(found),
        pictures=[Picture(path.name, _caption(found))],
        sheets=[Sheet("Test accuracy in %", ["images", "farthest of the nearest", *KINDS], rows)],
        figures={f"{kind} {size}": values for (kind, size), values in found.items()},
    )


def _plans(desk: Desk, sizes: Sequence[int]) -> list[tuple[str, int, int]]:
    """(kind, size, seed): one of every size, and several of the published ones."""
    plans = [(kind, size, 0) for size in sizes for kind in KINDS]
    trials = desk.few(RANDOM_TRIALS, 2)
    plans += [("random", PUBLISHED, seed) for seed in range(1, trials)]
    again = desk.few(SEEDS, SEEDS[:2])[1:]
    plans += [(kind, PUBLISHED, seed) for kind in ("nearest", "farthest") for seed in again]
    return plans + [(kind, LEARNS_ALL, seed) for kind in ("nearest", "random") for seed in again]


def _job(images: _Ordered, kind: str, size: int, count: int, seed: int) -> Job:
    recipe = RECIPES["mnist-net1"]
    epochs = max(EPOCHS, round(STEPS * recipe.batch / count))
    return Job(replace(recipe, epochs=epochs), seed, f"{kind} {size}", images.subset(kind, count, seed))


def _numbers(images: _Ordered, found: Accuracies, thresholds: dict[int, float]) -> list[Number]:
    within = int((images.distance <= 0.75).sum())
    test = {kind: [test for test, _ in found[kind, PUBLISHED]] for kind in KINDS}
    learnt = {kind: [half for _, half in found[kind, LEARNS_ALL]] for kind in ("nearest", "random")}
    enough = [
        size for (kind, size), values in found.items() if kind == "nearest" and min(half for _, half in values) > ALL
    ]
    counted = {
        kind: f"{len(values)} trainings, from {min(values):.2f} to {max(values):.2f}." for kind, values in test.items()
    }
    name = "002.figure_4"
    return [
        setting(f"{name}.threshold", "distance below which an image is near", 0.75),
        Number(
            f"{name}.subset_size",
            "images of the half within 0.75 of a flip",
            within,
            f"Our network's flips are at other distances; the {PUBLISHED:,} nearest images are within "
            f"{thresholds[PUBLISHED]:.3f}.",
        ),
        Number(
            f"{name}.subset_percent_of_training_set",
            "the same in % of the whole training set",
            100 * within / (2 * len(images.rows)),
            f"It is {100 * within / len(images.rows):.1f}% of the half that was ordered.",
        ),
        over_seeds(
            f"{name}.closest_subset_test_percent",
            f"test accuracy with the {PUBLISHED:,} nearest, %",
            test["nearest"],
            counted["nearest"],
        ),
        over_seeds(
            f"{name}.random_subset_test_percent_mean_of_50",
            f"test accuracy with {PUBLISHED:,} random images, mean, %",
            test["random"],
            counted["random"],
            "draws",
        ),
        over_seeds(
            f"{name}.farthest_subset_test_percent",
            f"test accuracy with the {PUBLISHED:,} farthest, %",
            test["farthest"],
            counted["farthest"],
        ),
        Number(
            f"{name}.size_that_learns_all",
            "nearest images that suffice to learn the half",
            float(min(enough)) if enough else None,
            f"The smallest of the sizes tried with which at least {ALL:g}% of the half is right; with {LEARNS_ALL:,} "
            f"it is {np.mean(learnt['nearest']):.2f}%.",
        ),
        over_seeds(
            f"{name}.random_of_that_size_percent",
            f"accuracy on the half with {LEARNS_ALL:,} random images, %",
            learnt["random"],
            f"{len(learnt['random'])} draws.",
        ),
    ]


def _claims(found: Accuracies) -> list[Claim]:
    sizes = sorted({size for _, size in found})
    best = {seed: {kind: found[kind, PUBLISHED][seed][0] for kind in KINDS} for seed in range(2)}
    mean = {key: float(np.mean([test for test, _ in values])) for key, values in found.items()}
    ordered = [size for size in sizes if mean["nearest", size] > mean["random", size] > mean["farthest", size]]
    learnt = {seed: [found[kind, LEARNS_ALL][seed][1] for kind in ("nearest", "random")] for seed in range(2)}
    return [
        Claim(
            "of equally many images, the nearest to a flip make the better network, then random, then the farthest",
            "Figure 4",
            f"in this order for {len(ordered)} of {len(sizes)} sizes; with {PUBLISHED:,} images "
            + ", ".join(f"{kind} {mean[kind, PUBLISHED]:.2f}%" for kind in KINDS)
            + ".",
            {f"seed {seed}": by["nearest"] > by["random"] > by["farthest"] for seed, by in best.items()}
            | {"all sizes": len(ordered) == len(sizes)},
        ),
        Claim(
            "about 16,000 of the nearest images are enough to learn the others (100%, as printed), and as many random "
            "ones are not",
            "section 6.1",
            "accuracy on the half, nearest and random: "
            + "; ".join(f"seed {seed}: {near:.2f}% and {other:.2f}%" for seed, (near, other) in learnt.items())
            + ".",
            {f"seed {seed}": near > PRINTED > other for seed, (near, other) in learnt.items()},
        ),
    ]


def _caption(found: Accuracies) -> str:
    return (
        "Accuracy on MNIST's test set of networks trained on a part of 30,000 images: those nearest to a flip point of "
        f"a network trained on all of them, as many random ones, and the farthest. Of {PUBLISHED:,} images there are "
        f"{len(found['random', PUBLISHED])} random draws; bars are from the least to the largest. Beside it, which "
        "share of the 30,000 such networks have right."
    )


def _shown(values: list[float]) -> str:
    text = f"{np.mean(values):.2f}"
    return text if len(values) == 1 else f"{text} ± {np.std(values, ddof=1):.2f}"


def _draw(path: Path, found: Accuracies, thresholds: dict[int, float]) -> None:
    figure = pictures.figure(9, 3.8)
    axes = figure.subplots(1, 2, sharex=True)
    for part, axis in enumerate(axes):
        for kind in KINDS:
            sizes = sorted(size for k, size in found if k == kind)
            values = [[pair[part] for pair in found[kind, size]] for size in sizes]
            middle = np.array([np.mean(some) for some in values])
            ends = np.array([[np.min(some), np.max(some)] for some in values]).T
            axis.errorbar(
                sizes, middle, np.abs(ends - middle), marker="o", ms=3, capsize=2, color=COLOURS[kind], label=kind
            )
        axis.set(xlabel="images that the network was trained on")
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="test accuracy, %", title="Test set")
    axes[1].set(ylabel="accuracy, %", title="The 30,000 images that the parts are of")
    axes[0].legend(frameon=False)
    above = axes[0].secondary_xaxis("top")
    some = [size for size in thresholds if size >= 4000]
    above.set_xticks(some, [f"{thresholds[size]:.2f}" for size in some], fontsize=7)
    above.tick_params(length=2)
    axes[0].set_title("Test set (above: distance of the farthest of the nearest)", fontsize=9)
    axes[1].title.set_fontsize(9)
    pictures.save(figure, path)
