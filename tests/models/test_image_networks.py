"""Image networks survive their export; the trained ones in models/networks are those that their reports describe."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import flipopt as fo
from benchmarks.networks import FOLDER, inputs
from models.export import save_network, trained
from models.image_networks import IMAGE_NETWORKS, Inception, OnRows, ResidualBlock
from models.recipes import RECIPES

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
LEAST = {"mnist-cnn": 98.8, "cifar-resnet8": 70, "mnist-vit": 97}
"""Percent of the test images; of a paper's network at least what is published, but for two."""


def untrained(name: str, shape: tuple[int, ...]) -> OnRows:
    """With batch norms as training might have left them."""
    torch.manual_seed(0)
    on_rows = OnRows(IMAGE_NETWORKS[name](), shape)
    for layer in on_rows.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, std=0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return on_rows.eval()


@pytest.mark.parametrize(
    ("name", "shape", "width"),
    [("deepdig-cnn", (28, 28), 50), ("resnet34", (32, 32, 3), 512), ("googlenet", (32, 32, 3), 1024)],
)
def test_the_file_of_a_deepdig_network_has_its_logits_and_its_last_hidden_layer(
    name: str, shape: tuple[int, ...], width: int, tmp_path: Path
) -> None:
    on_rows = untrained(name, shape)
    save_network(trained(on_rows), tmp_path / "net.onnx")
    net = fo.load_network(tmp_path / "net.onnx")
    assert net.input_shape == on_rows.input_shape
    layers = list(on_rows.network.children())
    for batch in (1, 2, 5):
        images = torch.rand(batch, *on_rows.input_shape)
        with torch.no_grad():
            logits, hidden = on_rows.network(images), nn.Sequential(*layers[:-1])(images)
        assert hidden.shape == (batch, width)
        X = images.reshape(batch, -1).numpy()
        for again in (net, net.forward_only):
            np.testing.assert_allclose(again.logits(X), logits, rtol=0, atol=1e-5)
            np.testing.assert_allclose(again.embedding(X), hidden, rtol=0, atol=1e-5)


def test_maps_become_smaller_where_the_papers_say() -> None:
    sizes = {name: maps(IMAGE_NETWORKS[name]().eval(), side) for name, side in (("resnet34", 32), ("googlenet", 32))}
    assert sizes["resnet34"] == [(64, 32)] * 3 + [(128, 16)] * 4 + [(256, 8)] * 6 + [(512, 4)] * 3
    assert sizes["googlenet"] == [
        *[(256, 32), (480, 32)],
        *[(512, 16), (512, 16), (512, 16), (528, 16), (832, 16)],
        *[(832, 8), (1024, 8)],
    ]


def maps(network: nn.Module, side: int) -> list[tuple[int, int]]:
    """Channels and sides of what leaves every block."""
    found, x = [], torch.zeros(1, 3, side, side)
    for layer in network.children():
        with torch.no_grad():
            x = layer(x)
        if isinstance(layer, Inception | ResidualBlock):
            found.append((x.shape[1], x.shape[2]))
    return found


def test_there_are_networks_in_the_folder() -> None:
    assert {"mnist-cnn", "cifar-resnet8", "mnist-vit"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_the_network_of_the_report(name: str) -> None:
    report = json.loads((FOLDER / f"{name}.json").read_text())
    assert report["command"] == f"python -m models train {name} --seed {report['seed']}"
    assert report["recipe"]["architecture"] == RECIPES[name].architecture
    assert report["recipe"]["epochs"] == RECIPES[name].epochs
    accuracy = report["accuracy_percent"]["test"] / 100
    assert 100 * accuracy >= LEAST.get(name, RECIPES[name].published.get("test", 0) - 2)
    assert (FOLDER / f"{name}.onnx").stat().st_size < 4e6
    with np.load(FOLDER / f"{name}.sample.npz") as sample:
        labels = sample["labels"]
    net = fo.load_network(FOLDER / f"{name}.onnx")
    right = np.mean(net.predict(inputs(name, 200)) == labels)
    assert right == pytest.approx(accuracy, abs=3 * np.sqrt(accuracy * (1 - accuracy) / 200))
