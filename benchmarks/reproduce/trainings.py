"""Networks that are trained in many variants: accuracies kept row by row, networks where somebody wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.reproduce.kept import computed
from data_prep.datasets import Dataset, Split
from flipopt.common.checks import Array
from flipopt.features.shipped import SHIPPED, load_shipped
from flipopt.networks import DenseNetwork
from flipopt.networks.load import load_dense
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.rows import Row
from models.export import accuracy
from models.recipes import RECIPES, Recipe
from models.training import TrainingData, prepare, train

COLUMNS = ("recipe", "seed", "what", "images", "extra", "epochs", "split", "accuracy")
SAMPLES = {"mnist": "mnist-net1", "cifar-10": "cifar-200"}
"""The shipped images that stand in for a data set in a quick run."""
QUICK_TRAIN = 120
"""Of the 200 shipped images, the first are for training."""
ABOUT_DATA = ("dataset", "features", "classes", "validation", "half", "mirror", "wavelet_dimensions", "wavelet_level")
"""Fields of a recipe that decide its data."""


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
        about = {
            name: value for name, value in asdict(self.recipe).items() if name not in ("name", "paper", "published")
        }
        return fingerprint(about, self.seed, self.what, self.rows, self.extra and self.extra[1])[:16]

    @property
    def shipped(self) -> bool:
        """Whether the package has this very network."""
        plain = self.rows is None and self.extra is None and self.seed == 0
        return plain and self.recipe.name in SHIPPED and self.recipe == RECIPES[self.recipe.name]


@dataclass(frozen=True)
class Outcome:
    """Accuracies in percent by split, seconds of training (None if not known), and the network if it was to be kept."""

    accuracy: dict[str, float]
    seconds: float | None
    network: DenseNetwork | None


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
        jobs = [replace(job, recipe=replace(job.recipe, epochs=1, batch=16)) for job in jobs]
    places = {job.key: folder / f"{job.recipe.name}-{job.key}.npz" for job in jobs}
    longest_first = sorted((job for job in jobs if not job.shipped), key=lambda job: -job.recipe.epochs)
    loads = {job.key: _Load(job, quick, places[job.key]) for job in longest_first}

    def lost(key: str) -> bool:
        return loads[key].job.keep and not places[key].exists()

    rows = computed(kept, COLUMNS, "trainings", loads, train_one, console, again=lost)
    return [_outcome(job, rows, places[job.key]) for job in jobs]


def train_one(load: _Load) -> list[Row]:
    """Train in a process of its own: a row a split."""
    from models.architectures import DenseModule, to_dense

    torch.set_num_threads(1)
    job, recipe, checkpoint = load.job, load.job.recipe, load.network.with_suffix(".checkpoint")
    data = data_of(recipe, load.quick)
    part = data if job.rows is None else replace(data, train=_some(data.train, job.rows))
    model = train(recipe, replace(part, extra=job.extra), job.seed, "cpu", checkpoint, show=False)
    assert isinstance(model, DenseModule)
    net = to_dense(model)
    if job.keep:
        net.save(load.network)
    checkpoint.unlink(missing_ok=True)
    about = {
        "recipe": recipe.name, "seed": job.seed, "what": job.what, "images": len(part.train.labels),
        "extra": 0 if job.extra is None else len(job.extra[1]), "epochs": recipe.epochs,
    }  # fmt: skip
    return [
        about | {"split": name, "accuracy": f"{accuracy(net, data, split):.4f}"} for name, split in data.reports.items()
    ]


def data_of(recipe: Recipe, quick: bool) -> TrainingData:
    """What a recipe trains on; in a quick run a part of the 200 images that ship with the package."""
    return _data(quick, *(getattr(recipe, name) for name in ABOUT_DATA))


@cache
def _data(quick: bool, *values: Any) -> TrainingData:
    recipe = Recipe("", "", hidden=(), published={}, **dict(zip(ABOUT_DATA, values, strict=True)))
    if not quick:
        return prepare(recipe)
    shipped = load_shipped(SAMPLES[recipe.dataset])
    train, test = (
        Split(shipped.images[part], shipped.labels[part]) for part in (slice(QUICK_TRAIN), slice(QUICK_TRAIN, None))
    )
    return prepare(recipe, Dataset(recipe.dataset, train, test, shipped.classes))


def _some(split: Split, rows: Array) -> Split:
    return Split(split.images[rows], split.labels[rows])


def _outcome(job: Job, known: dict[str, list[Row]], network: Path) -> Outcome:
    if job.shipped:
        shipped = load_shipped(job.recipe.name)
        return Outcome(shipped.report["accuracy_percent"], shipped.report["seconds"], shipped.network)
    rows = known[job.key][::-1]  # the first of a split counts, should it have been trained again to have its network
    accuracies = {row["split"]: float(row["accuracy"]) for row in rows}
    return Outcome(accuracies, float(rows[-1]["seconds"]), load_dense(network) if job.keep else None)
