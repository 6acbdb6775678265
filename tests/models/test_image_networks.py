"""The trained image networks in models/networks are those that their reports describe."""

from __future__ import annotations

import json

import numpy as np
import pytest

import flipopt as fo
from benchmarks.networks import FOLDER, NAMES, inputs
from models.recipes import RECIPES

LEAST = {"mnist-cnn": 98.8, "cifar-resnet8": 70, "mnist-vit": 97}
"""Percent of the test images."""


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_the_network_of_the_report(name: str) -> None:
    report = json.loads((FOLDER / f"{name}.json").read_text())
    assert report["command"] == f"python -m models train {name} --seed {report['seed']}"
    assert report["recipe"]["architecture"] == RECIPES[name].architecture
    assert report["recipe"]["epochs"] == RECIPES[name].epochs
    accuracy = report["accuracy_percent"]["test"] / 100
    assert 100 * accuracy >= LEAST[name]
    assert (FOLDER / f"{name}.onnx").stat().st_size < 4e6
    with np.load(FOLDER / f"{name}.sample.npz") as sample:
        labels = sample["labels"]
    net = fo.OnnxNetwork(FOLDER / f"{name}.onnx")
    right = np.mean(net.predict(inputs(name, 200)) == labels)
    assert right == pytest.approx(accuracy, abs=3 * np.sqrt(accuracy * (1 - accuracy) / 200))
