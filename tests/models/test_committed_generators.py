"""The generators in models/generators are those that their reports describe."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from benchmarks.reproduce.paper_003.networks import FOLDER
from flipopt.generative import Discriminator, Generator
from models.gans.recipes import GAN_RECIPES

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
LEAST = 0.05
"""Standard deviation of pixels over latents: a generator that collapsed has none."""


def weights(model: Generator | Discriminator) -> int:
    """Numbers in arrays of several sides: convolutions and what they are scaled by."""
    arrays = [numpy_helper.to_array(tensor) for tensor in model.model.graph.initializer]
    return sum(prod(array.shape) for array in arrays if array.ndim == 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_generator_is_that_of_its_report(name: str) -> None:
    report = json.loads(Path(FOLDER / f"{name}.json").read_text())
    recipe = GAN_RECIPES[name]
    assert report["command"] == f"python -m models gan {name} --seed 0"
    assert {key: report["recipe"][key] for key in ("latent", "width", "epochs")} == {
        "latent": recipe.latent, "width": recipe.width, "epochs": recipe.epochs,
    }  # fmt: skip
    G, D = Generator(FOLDER / f"{name}.generator.onnx"), Discriminator(FOLDER / f"{name}.discriminator.onnx")
    assert G.n_latent == recipe.latent
    assert list(G.image_shape) == list(D.input_shape) == report["image_shape"]
    for model, player in ((G, "generator"), (D, "discriminator")):
        assert 0.95 < weights(model) / report["parameters"][player] <= 1
    images = G.forward(np.random.default_rng(0).standard_normal((64, recipe.latent)))
    assert -1e-6 < images.min() < 0.1  # rounding of the last tanh
    assert 0.9 < images.max() < 1 + 1e-6
    assert images.std(axis=0).mean() > LEAST
    assert np.isfinite(D.forward(images.reshape(64, -1))).all()
