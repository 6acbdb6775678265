"""What a study works with: networks and their images, flip points that runs keep, trainings, places for files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

import flipopt as fo
from benchmarks.reproduce.trainings import Job, Outcome, data_of, trained
from data_prep.datasets import Split
from flipopt.common.checks import Array
from flipopt.common.writing import write_synced
from flipopt.features.shipped import SHIPPED, load_shipped
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks import DenseNetwork
from models.recipes import RECIPES, Recipe
from models.training import TrainingData

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Images:
    """Images (rows, \\*shape) as uint8, their labels (rows,), and what a network takes of them, X (rows, n_inputs)."""

    images: Array
    labels: Array
    X: Array

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Array | slice) -> Images:
        """Some of them."""
        return Images(self.images[rows], self.labels[rows], self.X[rows])


@dataclass(frozen=True, eq=False)
class Case:
    """A trained network with the images of its recipe.

    Attributes
    ----------
    name, recipe, seed
        Which network.
    network
        Float32, as it was trained.
    data
        What it was trained on, with the map from images to inputs.
    """

    name: str
    recipe: Recipe
    seed: int
    network: DenseNetwork
    data: TrainingData

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.dataset.classes

    @property
    def features(self) -> WaveletFeatures:
        """The map from images to inputs; all networks here have one."""
        assert self.data.features is not None
        return self.data.features

    @cached_property
    def train(self) -> Images:
        """The whole training set, also where the network was trained on half of it."""
        return self._images(self.data.dataset.train)

    @cached_property
    def test(self) -> Images:
        """The test set."""
        return self._images(self.data.dataset.test)

    def predicted(self, images: Images) -> Array:
        """Classes (rows,), in float64."""
        return np.asarray(self.network.in_float64.predict(images.X))

    def _images(self, split: Split) -> Images:
        return Images(split.images, split.labels, np.asarray(self.data.inputs(split.images), dtype=np.float64))


@dataclass(frozen=True)
class Desk:
    """Where a study works.

    Attributes
    ----------
    quick
        Whether this is a smoke run on the shipped samples, whose figures mean nothing.
    work
        Folder of runs, networks and checkpoints: what a killed study goes on from.
    results
        Folder of records and pictures.
    console
        For progress.
    training
        Whether 004 trains networks and looks for closest flips where they are missing, which takes hours.
    """

    quick: bool
    work: Path
    results: Path
    console: Console
    training: bool = True

    def few(self, full: T, quick: T) -> T:
        """``full``, or in a quick run ``quick``."""
        return quick if self.quick else full

    def trained(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Networks trained in variants, and their accuracies; what is known is not trained again."""
        return trained(jobs, self.quick, self.work, self.results / "trainings.csv", self.console)

    def case(self, name: str, seed: int = 0) -> Case:
        """A network of a recipe, shipped or trained here. A quick run has the shipped one for every seed."""
        recipe = RECIPES[name]
        data = data_of(recipe, self.quick)
        if name in SHIPPED and (self.quick or seed == 0):
            shipped = load_shipped(name)
            return Case(name, recipe, seed, shipped.network, replace(data, features=shipped.features))
        network = self.trained([Job(recipe, seed, keep=True)])[0].network
        assert isinstance(network, DenseNetwork)
        return Case(name, recipe, seed, network, data)

    def flips(self, name: str, case: Case, X: Array, targets: Any = "nearest", **options: Any) -> fo.FlipTable:
        """Closest flips of rows of X, kept in the run ``name``."""
        self.console.print(f"{name}: {len(X):,} rows")
        return fo.closest_flip_points(
            case.network, X, targets, progress=True, run=self.work / "flips" / name, **options
        )

    def kept(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was computed under this name before, or what is computed now: numbers and lists of them."""
        path = self._kept(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_synced(path, json.dumps(compute(), indent=1).encode())
        return dict(json.loads(path.read_text()))

    def is_kept(self, name: str) -> bool:
        """Whether something was computed under this name before."""
        return self._kept(name).exists()

    def _kept(self, name: str) -> Path:
        return self.work / "kept" / f"{name}.json"

    def picture(self, file: str) -> Path:
        """Where a picture goes."""
        return self.results / file
