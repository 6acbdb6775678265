"""The generators of 003 and what stands in for them: where their files are, and how they would come there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.reproduce.desk import Desk
from flipopt.common.checks import Array
from flipopt.common.writing import atomic_path
from flipopt.generative import Discriminator, Generator
from flipopt.runs.fingerprint import digest

FOLDER = Path(__file__).parents[3] / "models" / "generators"
SHOWN = "models/generators"
"""The same, from a checkout."""
TINY = (6, 32, 36, 40, 44, 64)
"""Widths of the generator of a quick run: four hidden layers and an image of 8 x 8."""
JUDGE = (64, 40, 32, 24, 16, 1)
"""And of its discriminator."""


@dataclass(frozen=True)
class Model:
    """A generator with its discriminator.

    Attributes
    ----------
    name
        Of the files, NAME.generator.onnx and NAME.discriminator.onnx.
    words
        For people.
    layers
        The generator's layers that are looked at.
    absent
        Why it is not here, when it is not.
    command
        What would make its files, or None if nothing here does.
    scale
        Of deviations. G of a DCGAN ends in tanh, so that (3) is of pixels from -1 to 1, where the files that ``python
        -m models`` writes give pixels from 0 to 1.
    """

    name: str
    words: str
    layers: tuple[int, ...]
    absent: str
    command: str | None = None
    scale: float = 1.0

    @property
    def files(self) -> tuple[Path, Path]:
        return FOLDER / f"{self.name}.generator.onnx", FOLDER / f"{self.name}.discriminator.onnx"

    @property
    def study(self) -> str:
        """In which it is."""
        return "003-pggan" if self.name.startswith("pggan") else "003-tables"

    @property
    def not_run(self) -> str:
        """A sentence in place of figures, with the command that would have them."""
        study = f"`python -m benchmarks reproduce {self.study}`"
        if self.command is None:
            return f"Not run: {self.absent} With both as ONNX in `{SHOWN}/{self.name}.*.onnx`, {study} would."
        return f"Not run: {self.absent} `{self.command}`, and then {study}, would."


def _trained(name: str, words: str, layers: tuple[int, ...], absent: str) -> Model:
    return Model(name, words, layers, absent, f"python -m models gan {name} --out {SHOWN}", 2.0)


def _wanted(name: str, data: str) -> Model:
    absent = f"{data} and the generator that was trained on it cannot be had here."
    return Model(name, f"PGGAN-{data}", (2, 4, 6), absent)


DCGAN = _trained("dcgan-mnist", "DCGAN-MNIST", (1, 2, 3, 4), "its files are not there.")
PLANE = _trained("dcgan-mnist-2d", "DCGAN-MNIST of two latent numbers", (1,), "its files are not there.")
PAPERS = {"MNIST": DCGAN, "LSUN": _wanted("pggan-lsun", "LSUN"), "celebA": _wanted("pggan-celeba", "celebA")}
"""By data set, as published.json names them."""
WASSERSTEIN = _trained(
    "wgan-mnist", "DCGAN-MNIST with the Wasserstein distance", (1, 2, 3, 4), "its training takes an hour."
)
"""Beside the first, in columns of its own: the loss that the paper names."""
FASHION = _trained("pggan-fashion", "PGGAN-FashionMNIST", (2, 4, 6), "its files are not there.")
"""In the place of the other two, in columns of its own."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A model with its two networks; ``key`` tells it from one that was trained otherwise."""

    model: Model
    G: Generator
    D: Discriminator
    key: str

    @property
    def name(self) -> str:
        return self.model.name

    def query(self, seed: int, k: int) -> Array:
        """The query k of a seed, (d,): from N(0, I), whatever the others are."""
        return np.random.default_rng([seed, k]).standard_normal(self.G.n_latent)


def pair(desk: Desk, model: Model) -> Pair | None:
    """The networks of a model, or None where their files are not. A quick run has tiny ones for those of MNIST."""
    files = model.files
    if desk.quick:
        if model not in (DCGAN, PLANE):
            return None
        files = tiny(desk.work, 2 if model is PLANE else TINY[0])
    if not all(file.exists() for file in files):
        return None
    key = digest(b"".join(file.read_bytes() for file in files))[:16]
    return Pair(model, Generator(files[0]), Discriminator(files[1]), key)


def tiny(folder: Path, latent: int) -> tuple[Path, Path]:
    """Files of a generator and a discriminator of dense layers with weights from a seed: smoke runs need no more."""
    paths = folder / f"tiny-{latent}.generator.onnx", folder / f"tiny-{latent}.discriminator.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    _write(paths[0], (latent, *TINY[1:]), [-1, 1, 8, 8], "Relu", 0)
    _write(paths[1], JUDGE, [-1, 1], "LeakyRelu", 1)
    return paths


def _write(path: Path, widths: Sequence[int], shape: Sequence[int], kind: str, seed: int) -> None:
    """Dense layers with the activation ``kind`` between them, a sigmoid at the end, and rows of a shape."""
    rng, constants, current = np.random.default_rng(seed), {"shape": np.array(shape)}, "flat"
    nodes = [helper.make_node("Flatten", ["x"], ["flat"])]
    for k, (a, b) in enumerate(pairwise(widths), 1):
        constants[f"W{k}"] = (rng.standard_normal((a, b)) * (2 / a) ** 0.5).astype(np.float32)
        constants[f"b{k}"] = (0.3 * rng.standard_normal(b)).astype(np.float32)
        nodes.append(helper.make_node("Gemm", [current, f"W{k}", f"b{k}"], [f"c{k}"]))
        current = f"a{k}"
        nodes.append(helper.make_node("Sigmoid" if k == len(widths) - 1 else kind, [f"c{k}"], [current]))
    nodes.append(helper.make_node("Reshape", [current, "shape"], ["y"]))
    given = ["batch", widths[0]] if shape[1:] != [1] else ["batch", 1, 8, 8]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", *shape[1:]])],
        tensors,
    )
    with atomic_path(path) as temporary:
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), temporary)
