"""Table 1: accuracies of NET1 and NET2, each trained on a half of MNIST; and what the networks are (appendix A)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.record import Number, Record, Sheet, over_seeds, setting
from benchmarks.reproduce.trainings import Job
from models.recipes import RECIPES, Recipe

SEEDS = (0, 1, 2, 3, 4)
SPLITS = ("first half", "second half", "test")
RATE = "Adam's rate; ours is the peak of a one-cycle schedule."


def table_1(desk: Desk) -> Record:
    """Five seeds of both networks."""
    seeds = desk.few(SEEDS, SEEDS[:2])
    names = {"NET1": "mnist-net1", "NET2": "mnist-net2"}
    numbers: list[Number] = settings("002.setup_mnist", RECIPES["mnist-net1"], 10)
    half = len(desk.case("mnist-net1").data.train.labels)
    numbers.insert(1, setting("002.setup_mnist.training_images_per_half", "training images in a half", half))
    rows, seconds = [], []
    for net, name in names.items():
        outcomes = desk.trained([Job(RECIPES[name], seed) for seed in seeds])
        seconds += [outcome.seconds for outcome in outcomes if outcome.seconds]
        for k, split in enumerate(SPLITS):
            values = [outcome.accuracy[split] for outcome in outcomes]
            why = f"{len(seeds)} seeds, from {min(values):.2f} to {max(values):.2f}."
            numbers.append(
                over_seeds(f"002.table_1.{net}.{k}", f"{net}, accuracy on the {_named(split)}, %", values, why)
            )
            rows.append([net, split, *(f"{value:.2f}" for value in values)])
    return Record(
        title="Accuracy of NET1 and NET2 (Table 1, appendix A)",
        summary="Each network was trained on one half of MNIST's training set, with settings that were fixed before "
        "the accuracy on the test set was looked at. Seed 0 is the network that ships with the package.",
        setup={"recipe": names, "seeds": list(seeds), "seconds of a training": [min(seconds), max(seconds)]},
        seeds=seeds,
        numbers=numbers,
        sheets=[Sheet("Accuracy in % by seed", ["network", "images", *(f"seed {seed}" for seed in seeds)], rows)],
    )


def settings(name: str, recipe: Recipe, outputs: int) -> list[Number]:
    """The sizes of a network, and the learning rate, beside the published ones."""
    hidden: Sequence[int] = recipe.hidden
    assert recipe.features is not None
    return [
        setting(f"{name}.inputs", "wavelet coefficients that the network takes", recipe.features),
        *(setting(f"{name}.hidden.{k}", f"neurons of layer {k + 1}", width) for k, width in enumerate(hidden)),
        setting(f"{name}.outputs", "outputs", outputs),
        setting(f"{name}.adam_learning_rate", "learning rate", recipe.learning_rate, RATE),
    ]


def _named(split: str) -> str:
    return f"{split} of the training set" if "half" in split else "test set"
