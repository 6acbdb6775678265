"""The trained generators in models/generators are those that their reports describe."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.gbrrt import FOLDER
from flipopt.generative import Discriminator, Generator, deviation
from models.gans.judged import IMAGES, JUDGES, judged
from models.gans.recipes import GAN_RECIPES

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
JUDGED = [name for name in NAMES if GAN_RECIPES[name].dataset in JUDGES]
LARGEST = 6_000_000
"""Bytes of a generator and its discriminator."""


def test_there_is_one() -> None:
    assert "dcgan-mnist" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_files_have_the_layers_and_pixels_of_the_report(name: str) -> None:
    facts = json.loads((FOLDER / f"{name}.json").read_text())
    recipe, shape = GAN_RECIPES[name], tuple(facts["image_shape"])
    assert facts["command"].startswith(f"python -m models gan {name} --seed {facts['seed']}")
    files = [FOLDER / f"{name}.{part}.onnx" for part in ("generator", "discriminator")]
    assert sum(path.stat().st_size for path in files) < LARGEST
    G, D = Generator(files[0]), Discriminator(files[1])
    assert (G.n_latent, G.image_shape, D.input_shape) == (recipe.latent, shape, shape)
    if recipe.kind == "dcgan":
        width = facts["recipe"]["width"]
        assert [layer.shape[0] for layer in G.layers[:4]] == [8 * width, 4 * width, 2 * width, width]
        assert [layer.name for layer in G.layers[:4]] == [f"layer{k}" for k in (1, 2, 3, 4)]
        assert [layer.activation for layer in G.layers] == ["Relu"] * 4 + ["Tanh"]
        assert [layer.activation for layer in D.layers] == ["LeakyRelu"] * 4
    z = np.random.default_rng(1).standard_normal((200, G.n_latent))
    images = G.forward(z)
    assert images.min() >= -1e-6  # onnxruntime's tanh goes beyond 1 by a rounding
    assert images.max() <= 1 + 1e-6
    assert images.max() - images.min() > 0.99
    assert deviation(G, z).value > 0.1  # not one image again and again
    scores = D.forward(images)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", JUDGED)
def test_a_classifier_is_as_sure_of_its_digits_as_the_report_says(name: str) -> None:
    facts = json.loads((FOLDER / f"{name}.json").read_text())
    found = judged(FOLDER / f"{name}.generator.onnx", facts["recipe"]["dataset"])["judged"]
    assert found["sure"] == pytest.approx(facts["judged"]["sure"], abs=5 / IMAGES)  # rounding differs by machine
    assert np.abs(np.subtract(found["classes"], facts["judged"]["classes"])).max() <= 5
    assert found["sure"] > 0.8
    assert min(found["classes"]) > IMAGES / 50  # every digit is made
