"""What training leaves behind: the network as npz and ONNX, its features, a sample of images, and a report."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data_prep.datasets import Split
from flipopt.common.checks import Array
from flipopt.common.files import atomic_path, write_npz
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Erf
from models.recipes import Recipe
from models.training import TrainingData

SAMPLE = 200
"""Test images, the first of the data set, that travel with a network."""


def accuracy(net: DenseNetwork, data: TrainingData, split: Split) -> float:
    """Percent of a split that the network gets right."""
    return float(100 * np.mean(net.predict(data.inputs(split.images)) == split.labels))


def report(
    recipe: Recipe, net: DenseNetwork, data: TrainingData, seed: int, device: str, seconds: float
) -> dict[str, Any]:
    """Settings, accuracies and published accuracies, ready for JSON."""
    return {
        "command": f"python -m models train {recipe.name} --seed {seed}",
        "seed": seed,
        "device": device,
        "seconds": round(seconds),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "recipe": {key: value for key, value in asdict(recipe).items() if key not in ("name", "paper", "published")},
        "paper": recipe.paper,
        "classes": list(data.dataset.classes),
        "parameters": net.n_parameters,
        "sigma": [round(float(np.mean(erf.sigma)), 4) for erf in net.activations if isinstance(erf, Erf)],
        "images": {name: len(split.labels) for name, split in data.reports.items()},
        "accuracy_percent": {name: round(accuracy(net, data, split), 2) for name, split in data.reports.items()},
        "published_percent": recipe.published,
    }


def export(net: DenseNetwork, data: TrainingData, facts: dict[str, Any], folder: Path, name: str) -> None:
    """Write <name>.npz, .onnx, .sample.npz, .json, and .features.npz unless the inputs are pixels, to ``folder``.

    The report comes last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    net.save(folder / f"{name}.npz")
    net.save(folder / f"{name}.onnx")
    if data.features is not None:
        data.features.save(folder / f"{name}.features.npz")
    images, labels = data.dataset.test.images[:SAMPLE], data.dataset.test.labels[:SAMPLE]
    sample: dict[str, Array] = {"images": images, "labels": labels, "features": data.inputs(images)}
    write_npz(folder / f"{name}.sample.npz", {**sample, "classes": np.array(data.dataset.classes)})
    with atomic_path(folder / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(facts, indent=2) + "\n")
