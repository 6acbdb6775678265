"""Networks that are trained in many variants: accuracies kept row by row, networks where somebody wants them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.networks import FOLDER
from benchmarks.reproduce.kept import computed
from data_prep.datasets import Dataset, Split
from flipopt.common.checks import Array
from flipopt.common.files import read_npz
from flipopt.features.shipped import SHIPPED, load_shipped
from flipopt.networks import DenseNetwork, OnnxNetwork, load_network
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.rows import Row
from models import export
from models.recipes import RECIPES, Recipe
from models.training import TrainingData, prepare, train

COLUMNS = ("recipe", "seed", "what", "images", "extra", "epochs", "split", "accuracy")
SAMPLES = {"mnist": "mnist-net1", "cifar-10": "cifar-200"}
"""The networks whose shipped images stand in for a data set in a quick run."""
TEN_CLASSES = {"fashion-mnist": FOLDER / "fashion-fcn.sample.npz", "cifar-10": FOLDER / "cifar-resnet8.sample.npz"}
"""And files of others that do: of CIFAR-10 with all its classes, as cifar-200 has two."""
QUICK_TRAIN = 120
"""Of the 200 shipped images, the first are for training."""
ABOUT_DATA = ("dataset", "features", "classes", "validation", "half", "mirror", "wavelet_dimensions", "wavelet_level")
"""Fields of a recipe that decide its data."""
NOT_IN_KEYS = {"name", "paper", "published"}
ADDED = {"precision": "float32"}
"""Fields, and their defaults, that came when trainings had been kept already: at these, keys are what they were."""


@dataclass(frozen=True, eq=False)
class Job:
    """A network to be trained.

    Attributes
    ----------
    recipe, seed
        How.
    what
        In what it differs from the recipe; two jobs that differ in their data differ in it.
    rows
        Of the training set, to train on alone.
    extra
        Further inputs (points, n_inputs) of the network and their labels, to train on too.
    keep
        Whether the network itself is wanted.
    """

    recipe: Recipe
    seed: int = 0
    what: str = "as the recipe says"
    rows: Array | None = None
    extra: tuple[Array, Array] | None = None
    keep: bool = False

    @property
    def key(self) -> str:
        """Tells jobs apart. Of further points only their labels count: their last digits depend on the machine."""
        fields = asdict(self.recipe).items()
        about = {
            name: value for name, value in fields if name not in NOT_IN_KEYS and (name, value) not in ADDED.items()
        }
        return fingerprint(about, self.seed, self.what, self.rows, self.extra and self.extra[1])[:16]

    @property
    def shipped(self) -> bool:
        """Whether the package or models/networks has this very network."""
        plain = self.rows is None and self.extra is None and self.seed == 0
        committed = all(_committed(self.recipe, ending).exists() for ending in (".onnx", ".json"))
        there = self.recipe.name in SHIPPED or committed
        return plain and there and self.recipe == RECIPES[self.recipe.name]


@dataclass(frozen=True)
class Outcome:
    """Accuracies in percent by split, seconds of training (None if not known), and the network if it was to be kept.

    An image network takes rows with the colours first, unlike those that data sets have.
    """

    accuracy: dict[str, float]
    seconds: float | None
    network: DenseNetwork | OnnxNetwork | None


@dataclass(frozen=True)
class _Load:
    """A job on its way to a process, and where to keep the network; beside it there is a checkpoint meanwhile."""

    job: Job
    quick: bool
    network: Path


def trained(jobs: Sequence[Job], quick: bool, work: Path, kept: Path, console: Console) -> list[Outcome]:
    """Train what neither the package nor ``kept`` (.csv) has, a job a core; networks and checkpoints in ``work``."""
    folder = work / "networks"
    folder.mkdir(parents=True, exist_ok=True)
    if quick:
        jobs = [_quick(job) for job in jobs]
    places = {job.key: folder / f"{job.recipe.name}-{job.key}{_ending(job.recipe)}" for job in jobs}
    longest_first = sorted((job for job in jobs if not job.shipped), key=lambda job: -job.recipe.epochs)
    loads = {job.key: _Load(job, quick, places[job.key]) for job in longest_first}

    def lost(key: str) -> bool:
        return loads[key].job.keep and not places[key].exists()

    rows = computed(kept, COLUMNS, "trainings", loads, train_one, console, again=lost)
    return [_outcome(job, rows, places[job.key]) for job in jobs]


def train_one(load: _Load) -> list[Row]:
    """Train in a process of its own: a row a split."""
    torch.set_num_threads(1)
    job, recipe, checkpoint = load.job, load.job.recipe, load.network.with_suffix(".checkpoint")
    data = data_of(recipe, load.quick)
    part = data if job.rows is None else replace(data, train=_some(data.train, job.rows))
    net = export.trained(train(recipe, replace(part, extra=job.extra), job.seed, "cpu", checkpoint, show=False))
    if job.keep:
        export.save_network(net, load.network)
    about = {
        "recipe": recipe.name, "seed": job.seed, "what": job.what, "images": len(part.train.labels),
        "extra": 0 if job.extra is None else len(job.extra[1]), "epochs": recipe.epochs,
    }  # fmt: skip
    accuracies = {name: export.accuracy(net, data, split) for name, split in data.reports.items()}
    checkpoint.unlink(missing_ok=True)
    return [about | {"split": name, "accuracy": f"{value:.4f}"} for name, value in accuracies.items()]


def data_of(recipe: Recipe, quick: bool) -> TrainingData:
    """What a recipe trains on; in a quick run a part of the 200 images that ship with the package."""
    return _data(quick, *(getattr(recipe, name) for name in ABOUT_DATA))


@cache
def _data(quick: bool, *values: Any) -> TrainingData:
    recipe = Recipe("", "", hidden=(), published={}, **dict(zip(ABOUT_DATA, values, strict=True)))
    if not quick:
        return prepare(recipe)
    images, labels, classes = _sample(recipe)
    train, test = (Split(images[part], labels[part]) for part in (slice(QUICK_TRAIN), slice(QUICK_TRAIN, None)))
    return prepare(recipe, Dataset(recipe.dataset, train, test, classes))


def _sample(recipe: Recipe) -> tuple[Array, Array, tuple[str, ...]]:
    """Images, labels and the names of classes that stand in for the data set."""
    if recipe.dataset in TEN_CLASSES and recipe.classes is None:
        arrays = read_npz(TEN_CLASSES[recipe.dataset], required=("images", "labels", "classes"))
        return arrays["images"], arrays["labels"], tuple(arrays["classes"].tolist())
    shipped = load_shipped(SAMPLES[recipe.dataset])
    return shipped.images, shipped.labels, shipped.classes


def _quick(job: Job) -> Job:
    """For a smoke run: hardly trained, where the network is not there anyway."""
    return job if job.keep and job.shipped else replace(job, recipe=replace(job.recipe, epochs=1, batch=16))


def _ending(recipe: Recipe) -> str:
    """Of the file of a network."""
    return ".npz" if recipe.architecture is None else ".onnx"


def _committed(recipe: Recipe, ending: str) -> Path:
    return FOLDER / f"{recipe.name}{ending}"


def _some(split: Split, rows: Array) -> Split:
    return Split(split.images[rows], split.labels[rows])


def _outcome(job: Job, known: dict[str, list[Row]], network: Path) -> Outcome:
    if job.shipped:
        return _shipped(job.recipe)
    rows = known[job.key][::-1]  # the first of a split counts, should it have been trained again to have its network
    accuracies = {row["split"]: float(row["accuracy"]) for row in rows}
    return Outcome(accuracies, float(rows[-1]["seconds"]), load_network(network) if job.keep else None)


def _shipped(recipe: Recipe) -> Outcome:
    if recipe.name in SHIPPED:
        shipped = load_shipped(recipe.name)
        return Outcome(shipped.report["accuracy_percent"], shipped.report["seconds"], shipped.network)
    report = json.loads(_committed(recipe, ".json").read_text())
    return Outcome(report["accuracy_percent"], report["seconds"], load_network(_committed(recipe, ".onnx")))
