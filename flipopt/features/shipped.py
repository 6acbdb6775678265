"""The trained networks that come with the package, each with 200 test images, and networks by name or path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from flipopt.common.checks import Array, one_of
from flipopt.common.errors import InputError
from flipopt.common.files import read_npz
from flipopt.common.point_files import read_points
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks import DenseNetwork, OnnxNetwork, load_network
from flipopt.networks.load import load_dense

SHIPPED = ("mnist-net1", "mnist-net2", "mnist-fcn", "cifar-200")
DATA = Path(str(files("flipopt") / "data"))


@dataclass(frozen=True)
class Shipped:
    """A trained network and what belongs to it, read from the package when asked for."""

    name: str

    @cached_property
    def network(self) -> DenseNetwork:
        """The trained network, float32."""
        return load_dense(DATA / f"{self.name}.npz")

    @cached_property
    def features(self) -> WaveletFeatures | None:
        """The map from its images to its inputs; None: the inputs are the pixels in [0, 1], row by row."""
        if self.report["recipe"]["features"] is None:
            return None
        return WaveletFeatures.load(DATA / f"{self.name}.features.npz")

    @cached_property
    def _sample(self) -> dict[str, Array]:
        return read_npz(DATA / f"{self.name}.sample.npz", required=("images", "labels", "features", "classes"))

    @property
    def images(self) -> Array:
        """The first 200 test images, uint8."""
        return self._sample["images"]

    @property
    def labels(self) -> Array:
        """Their true classes, (200,)."""
        return self._sample["labels"]

    @property
    def X(self) -> Array:
        """Their features or pixels, (200, n_inputs), float64: the points to find flips for."""
        return self._sample["features"]

    @property
    def classes(self) -> tuple[str, ...]:
        """What the classes are called."""
        return tuple(str(name) for name in self._sample["classes"])

    @cached_property
    def report(self) -> dict[str, Any]:
        """How it was trained: command, seed, settings, accuracies and published accuracies."""
        facts: dict[str, Any] = json.loads((DATA / f"{self.name}.json").read_text())
        return facts


def load_shipped(name: str) -> Shipped:
    """One of the networks in the package: mnist-net1, mnist-net2, mnist-fcn or cifar-200.

    mnist-fcn has ReLU layers and takes pixels; the others have erf layers and take wavelet features.
    """
    return Shipped(one_of(name, SHIPPED, "name"))


def open_network(net: str | Path) -> DenseNetwork | OnnxNetwork:
    """A network by the name of a shipped one, or by its path: a .npz or .onnx file or a folder of CSV files."""
    return load_shipped(str(net)).network if str(net) in SHIPPED else load_network(net)


def open_points(net: str | Path, data: str | Path | None, n_inputs: int) -> Array:
    """The points of a file, (rows, n_inputs), float64; without ``data`` those of the shipped network ``net``."""
    if data is not None:
        return read_points(data, n_inputs)
    if str(net) not in SHIPPED:
        raise InputError("data: expected a file of points, found none")
    return load_shipped(str(net)).X
