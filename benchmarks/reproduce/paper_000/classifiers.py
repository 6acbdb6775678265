"""Table 1: the six classifiers, their sizes and accuracies; and what studies of them work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.record import Claim, Number, Record, Sheet, over_seeds, setting
from benchmarks.reproduce.trainings import Job, data_of
from data_prep.datasets import Split
from flipopt.common.checks import Array
from models.recipes import RECIPES, Recipe
from models.training import TrainingData

SEEDS = (0, 1, 2)
WITHIN = 1.0
"""Percentage points."""
TITLE = {"CNN": "convolutional", "FCN": "fully connected", "ResNet": "ResNet-34", "GoogleNet": "GoogLeNet"}


@dataclass(frozen=True, eq=False)
class Model:
    """A row of Table 1.

    Attributes
    ----------
    name
        As published.json has it.
    recipe
        How it is trained here.
    pair
        The two classes, by name, whose boundary the paper looks at.
    """

    name: str
    recipe: Recipe
    pair: tuple[str, str]

    @property
    def words(self) -> str:
        """For people: "MNIST, convolutional"."""
        data, _, kind = self.name.partition("_")
        return f"{data}, {TITLE[kind]}"


def _model(name: str, recipe: str, *pair: str) -> Model:
    return Model(name, RECIPES[recipe], (pair[0], pair[1]))


SMALL = (
    _model("MNIST_CNN", "deepdig-mnist-cnn", "1", "2"),
    _model("MNIST_FCN", "mnist-fcn", "1", "2"),
    _model("FashionMNIST_CNN", "deepdig-fashion-cnn", "Trouser", "Pullover"),
    _model("FashionMNIST_FCN", "fashion-fcn", "Trouser", "Pullover"),
)
LARGE = (
    _model("CIFAR10_ResNet", "deepdig-cifar-resnet34", "automobile", "bird"),
    _model("CIFAR10_GoogleNet", "deepdig-cifar-googlenet", "automobile", "bird"),
)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained classifier of Table 1 with its images as rows of pixels in [0, 1]."""

    model: Model
    seed: int
    network: Any
    data: TrainingData

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.dataset.classes

    @property
    def pair(self) -> tuple[int, int]:
        """The paper's two classes."""
        s, t = (self.classes.index(name) for name in self.model.pair)
        return s, t

    @cached_property
    def train(self) -> tuple[Array, Array]:
        """X (rows, n_inputs) and labels (rows,) of the training set."""
        return self.rows(self.data.dataset.train)

    @cached_property
    def test(self) -> tuple[Array, Array]:
        """The same of the test set."""
        return self.rows(self.data.dataset.test)

    def rows(self, split: Split) -> tuple[Array, Array]:
        """Images as the network takes them: colours first."""
        images = split.images if split.images.ndim == 3 else split.images.transpose(0, 3, 1, 2)
        return (images.reshape(len(images), -1) / 255).astype(np.float32), split.labels.astype(np.int64)


def classifier(desk: Desk, model: Model, seed: int = 0) -> Classifier:
    """A trained one: committed, or trained here. A quick run has the committed one for every seed."""
    job = Job(model.recipe, 0 if desk.quick else seed, keep=True)
    network = desk.trained([job])[0].network
    assert network is not None
    return Classifier(model, seed, network, data_of(model.recipe, desk.quick))


def table_1(desk: Desk) -> Record:
    """Three seeds of the four small classifiers."""
    seeds, numbers, rows = desk.few(SEEDS, SEEDS[:1]), _settings(), []
    within: dict[str, bool] = {}
    for model in SMALL:
        outcomes = desk.trained([Job(model.recipe, seed) for seed in seeds])
        values = [outcome.accuracy["test"] for outcome in outcomes]
        numbers += _numbers(model, values)
        rows.append([model.words, *(f"{value:.2f}" for value in values)])
        within[model.words] = abs(float(np.mean(values)) - numbers[-1].published) <= WITHIN
    numbers += [_counted(model) for model in LARGE]
    return Record(
        title="The classifiers (Table 1)",
        summary="Two networks for MNIST and two for FashionMNIST, trained as section 5.1 says: 40 epochs of Adam in "
        "batches of 64. The paper says nothing of the initial weights. The table says Linear(320, 50) of the "
        "convolutional networks, but their 14,070 parameters need Linear(250, 50). Seed 0 of each is in the package "
        "or in `models/networks`. The two for CIFAR-10 are built and counted; `python -m models train` trains them, "
        "for which a GPU is wanted.",
        setup={"recipes": {model.name: model.recipe.name for model in SMALL}, "seeds": list(seeds)},
        seeds=list(seeds),
        numbers=numbers,
        claims=[
            Claim(
                "the classifiers reach the accuracies of Table 1, to one percentage point",
                "Table 1",
                f"the means of {len(seeds)} seeds are in the table below.",
                within,
            )
        ],
        sheets=[Sheet("Test accuracy in % by seed", ["network", *(f"seed {seed}" for seed in seeds)], rows)],
    )


def _settings() -> list[Number]:
    recipe = RECIPES["deepdig-mnist-cnn"]
    values: Mapping[str, tuple[str, float]] = {
        "epochs": ("epochs of a classifier", recipe.epochs),
        "batch": ("images in a batch", recipe.batch),
        "adam_learning_rate": ("learning rate of a classifier", recipe.learning_rate),
        "decay": ("its factor", recipe.decay or 1.0),
        "decay_every_steps": ("after so many steps", 100),
    }
    return [setting(f"000.setup.classifiers.{name}", what, value) for name, (what, value) in values.items()]


def _numbers(model: Model, accuracies: list[float]) -> list[Number]:
    low, high = min(accuracies), max(accuracies)
    return [
        _counted(model),
        over_seeds(
            f"000.table_1.{model.name}.1",
            f"{model.words}: accuracy on the test set, %",
            accuracies,
            f"{len(accuracies)} seeds, from {low:.2f} to {high:.2f}.",
        ),
    ]


def _counted(model: Model) -> Number:
    return setting(f"000.table_1.{model.name}.0", f"{model.words}: parameters", n_parameters(model.recipe), "Counted.")


def n_parameters(recipe: Recipe) -> int:
    """Of the network of a recipe for ten classes."""
    from models.architectures import DenseModule
    from models.image_networks import IMAGE_NETWORKS

    module = (
        DenseModule((784, *recipe.hidden, 10), recipe.activation)
        if recipe.architecture is None
        else IMAGE_NETWORKS[recipe.architecture]()
    )
    return sum(parameter.numel() for parameter in module.parameters())
