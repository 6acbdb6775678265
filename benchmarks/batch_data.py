"""What the parts of ``python -m benchmarks batch`` work with: networks, images, pairs, and what they measure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from data_prep.datasets import load_dataset
from data_prep.sources import source
from flipopt.common.checks import Array
from flipopt.features.shipped import SHIPPED, load_shipped
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks import DenseNetwork
from flipopt.networks.load import load_dense
from flipopt.results import FlipTable

IMAGES = 1000
CLOSER = 1e-3
"""A distance is smaller or larger if it differs by more than this, relative."""

Measured = list[tuple[str, str, float]]
"""What was measured, the name of the figure, its value."""


@dataclass(frozen=True)
class Data:
    """A network, the inputs of the first test images, those of the training images with their classes, and those of the
    other test images."""

    network: DenseNetwork
    X: Array
    samples: Callable[[], tuple[Array, Array]]
    rest: Callable[[], Array] | None = None

    @cached_property
    def train(self) -> Array:
        return self.samples()[0]

    @cached_property
    def train_classes(self) -> Array:
        return self.samples()[1]


@cache
def data(name: str, folder: str = "") -> Data:
    """A shipped network, or one that ``python -m models train`` has written to ``folder``.

    Without the data set it is the 200 images that ship with the network: good for a smoke run.
    """
    dataset = "cifar-10" if name.startswith("cifar") else "mnist"
    if source(dataset).find() is None and name in SHIPPED:
        shipped = load_shipped(name)
        return Data(shipped.network, shipped.X, lambda: (shipped.X, np.asarray(shipped.network.predict(shipped.X))))
    images = load_dataset(dataset)
    if name.startswith("cifar"):
        images = images.only(("airplane", "ship"))
    if name in SHIPPED:
        network, features = load_shipped(name).network, load_shipped(name).features
    else:
        network = load_dense(Path(folder) / f"{name}.npz")
        features = WaveletFeatures.load(Path(folder) / f"{name}.features.npz")

    def inputs(pixels: Array) -> Array:
        return np.asarray(pixels.reshape(len(pixels), -1) / 255.0) if features is None else features.transform(pixels)

    @cache
    def samples() -> tuple[Array, Array]:
        return inputs(images.train.images), images.train.labels

    first, rest = images.test.images[:IMAGES], images.test.images[IMAGES:]
    return Data(network, inputs(first), samples, lambda: inputs(rest))


def held_out(name: str, count: int) -> tuple[DenseNetwork, Array]:
    """A shipped network, and test images beyond the first thousand, which no benchmark uses: to choose values on."""
    here = data(name)
    return here.network, (here.X if here.rest is None else here.rest())[:count].astype(np.float64)


def random_pairs(network: DenseNetwork, X: Array, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of X (count,) and (source, target) classes (count, 2)."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(X), count, replace=False))
    i = np.asarray(network.predict(X[rows]))
    j = (i + rng.integers(1, network.n_classes, count)) % network.n_classes
    return rows, np.column_stack([i, j])


@dataclass(frozen=True)
class Timed:
    """A table, and the time that it took."""

    value: FlipTable
    seconds: float


def timed(task: Callable[[], FlipTable]) -> Timed:
    """Run a task by the clock."""
    started = time.perf_counter()
    value = task()
    return Timed(value, time.perf_counter() - started)


def compared(who: str, distance: Array, mine: Array, seconds: float) -> Measured:
    """Distances (images,) of somebody, infinite where there is none, against ``mine``; seconds an image."""
    return [
        (who, "solved", float(np.isfinite(distance).mean())),
        (who, "median distance", float(np.median(distance))),
        (who, "median ratio", float(np.median(distance / mine))),
        (who, "closer", float((distance < mine * (1 - CLOSER)).mean())),
        (who, "farther", float((distance > mine * (1 + CLOSER)).mean())),
        (who, "ms an image", 1e3 * seconds),
    ]
