"""What training leaves behind: the network as ONNX, a dense one as npz too, its features, a sample of images, and a
report."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from data_prep.datasets import Split
from flipopt.common.checks import Array
from flipopt.common.files import write_npz
from flipopt.common.writing import atomic_path
from flipopt.networks import DenseNetwork, TorchNetwork
from flipopt.networks.activations import Erf
from models.architectures import DenseModule, to_dense
from models.image_networks import OnRows
from models.onnx_files import onnx_model, save_onnx
from models.recipes import RECIPES, Recipe
from models.training import TrainingData

SAMPLE = 200
"""Test images, the first of the data set, that travel with a network."""
CHUNK = 200
"""Images that are classified at once, so that memory stays flat: in GoogLeNet each takes some ten megabytes."""
Trained = DenseNetwork | TorchNetwork
"""A trained network as a function of rows (batch, n_inputs)."""


def trained(model: nn.Module) -> Trained:
    """The network that training has left in ``model``, on the CPU."""
    if isinstance(model, DenseModule):
        return to_dense(model)
    assert isinstance(model, OnRows)
    return TorchNetwork(model.cpu(), (math.prod(model.shape),))


def accuracy(net: Trained, data: TrainingData, split: Split) -> float:
    """Percent of a split that the network gets right."""
    chunks = [slice(start, start + CHUNK) for start in range(0, len(split.labels), CHUNK)]
    right = [net.predict(data.inputs(split.images[rows])) == split.labels[rows] for rows in chunks]
    return float(100 * np.mean(np.concatenate(right)))


def report(
    recipe: Recipe, net: Trained, data: TrainingData, seed: int, device: str, seconds: int | None
) -> dict[str, Any]:
    """Settings, accuracies and published accuracies, ready for JSON."""
    return {
        "command": f"python -m models train {recipe.name} --seed {seed}"
        + (f" --epochs {recipe.epochs}" if recipe.epochs != RECIPES[recipe.name].epochs else "")
        + "".join(f" --{option} {facts['file']}" for option, facts in data.changes.items()),
        "seed": seed,
        "device": device,
        "seconds": seconds,
        "versions": versions(),
        "recipe": {key: value for key, value in asdict(recipe).items() if key not in ("name", "paper", "published")},
        "paper": recipe.paper,
        "classes": list(data.dataset.classes),
        **_size(net),
        "images": {name: len(split.labels) for name, split in data.reports.items()},
        "accuracy_percent": {name: round(accuracy(net, data, split), 2) for name, split in data.reports.items()},
        "published_percent": recipe.published,
        **({"changes": data.changes} if data.changes else {}),
    }


def versions() -> dict[str, str]:
    """What a training ran with."""
    return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}


def write_report(facts: dict[str, Any], path: Path) -> None:
    """Write ``facts`` as JSON, a line an entry."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(facts, indent=2) + "\n")


def _size(net: Trained) -> dict[str, Any]:
    if isinstance(net, TorchNetwork):
        return {"parameters": sum(parameter.numel() for parameter in net.module.parameters())}
    sigma = [round(float(np.mean(erf.sigma)), 4) for erf in net.activations if isinstance(erf, Erf)]
    return {"parameters": net.n_parameters, "sigma": sigma}


def export(net: Trained, data: TrainingData, facts: dict[str, Any], folder: Path, name: str) -> None:
    """Write <name>.onnx, .sample.npz and .json to ``folder``, .npz for a dense network, .features.npz if it has any.

    The ONNX file of an image network takes images (batch, channels, height, width). The report comes last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = data.dataset.test.images[:SAMPLE], data.dataset.test.labels[:SAMPLE]
    sample: dict[str, Array] = {"images": images, "labels": labels}
    save_network(net, folder / f"{name}.onnx")
    if isinstance(net, DenseNetwork):
        save_network(net, folder / f"{name}.npz")
        sample["features"] = data.inputs(images)
    if data.features is not None:
        data.features.save(folder / f"{name}.features.npz")
    write_npz(folder / f"{name}.sample.npz", {**sample, "classes": np.array(data.dataset.classes)})
    write_report(facts, folder / f"{name}.json")


def save_network(net: Trained, path: Path) -> None:
    """A dense network as .npz or .onnx; an image network as .onnx, of images (batch, channels, height, width)."""
    if isinstance(net, DenseNetwork):
        net.save(path)
        return
    assert isinstance(net.module, OnRows)
    save_onnx(onnx_model(net.module.network, net.module.input_shape), path)
