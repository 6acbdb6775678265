"""What training leaves behind: the generator and the discriminator as ONNX, with named layers, and a report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
from torch import Tensor, nn

from models.export import versions, write_report
from models.gans.judged import judged
from models.gans.pair import Gan
from models.gans.recipes import GAN_RECIPES, GanRecipe
from models.onnx_files import onnx_model, save_onnx

ACTIVATIONS = ("Relu", "LeakyRelu")


class Pixels(nn.Module):
    """A generator as a function of latents (batch, latent) with values (batch, channels, side, side) in [0, 1]."""

    def __init__(self, generator: nn.Module) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, z: Tensor) -> Tensor:
        images: Tensor = self.generator(z)
        return (images + 1) / 2


class OnPixels(nn.Module):
    """A discriminator as a function of images in [0, 1], (batch, channels, side, side), with scores (batch, 1).

    Its batch norm uses running averages over everything that it scored while it was trained: two thirds of the images
    were generated ones.
    """

    def __init__(self, discriminator: nn.Module) -> None:
        super().__init__()
        self.discriminator = discriminator

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.discriminator(2 * x - 1)
        return scores


def export(gan: Gan, recipe: GanRecipe, shape: tuple[int, ...], facts: dict[str, Any], folder: Path) -> None:
    """Write NAME.generator.onnx, NAME.discriminator.onnx and NAME.json to ``folder``; ``shape`` is that of an image."""
    folder.mkdir(parents=True, exist_ok=True)
    save_generator(gan.result, recipe.latent, folder / f"{recipe.name}.generator.onnx")
    save_discriminator(gan.discriminator, shape, folder / f"{recipe.name}.discriminator.onnx")
    seen = judged(folder / f"{recipe.name}.generator.onnx", recipe.dataset)
    write_report(facts | seen, folder / f"{recipe.name}.json")


def save_generator(generator: nn.Module, latent: int, path: Path) -> None:
    """``z`` (batch, latent) to ``images`` (batch, channels, side, side) in [0, 1] by way of ``layer1``, ``layer2``...

    Those tensors are what goes into the activations, after batch norm: where one is 0 is a generative boundary.
    """
    model = onnx_model(Pixels(generator.cpu()), (latent,), "z", "images")
    _rename(model.graph, _layers(model.graph))
    save_onnx(model, path)


def save_discriminator(discriminator: nn.Module, shape: tuple[int, ...], path: Path) -> None:
    """``images`` (batch, \\*shape) in [0, 1] to ``scores`` (batch, 1), with ``layer1``, ... as in the generator.

    ``features`` is what the last activation gives.
    """
    model = onnx_model(OnPixels(discriminator.cpu()), shape, "images", "scores")
    last = [node.output[0] for node in model.graph.node if node.op_type in ACTIVATIONS][-1]
    _rename(model.graph, {**_layers(model.graph), last: "features"})
    save_onnx(model, path)


def _layers(graph: onnx.GraphProto) -> dict[str, str]:
    """New names of what goes into activations, in the order of computing, which ONNX demands of nodes."""
    inputs = [node.input[0] for node in graph.node if node.op_type in ACTIVATIONS]
    return {name: f"layer{k}" for k, name in enumerate(inputs, start=1)}


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Give tensors within ``graph`` other names."""
    for node in graph.node:
        for tensors in (node.input, node.output):
            tensors[:] = [names.get(name, name) for name in tensors]
    for value in graph.value_info:
        value.name = names.get(value.name, value.name)


def report(
    recipe: GanRecipe, gan: Gan, shape: tuple[int, ...], seed: int, device: str, seconds: int | None
) -> dict[str, Any]:
    """Settings, sizes and losses, ready for JSON."""
    discriminator, generator = gan.losses[-1]
    return {
        "command": f"python -m models gan {recipe.name} --seed {seed}"
        + (f" --epochs {recipe.epochs}" if recipe.epochs != GAN_RECIPES[recipe.name].epochs else ""),
        "seed": seed,
        "device": device,
        "seconds": seconds,
        "versions": versions(),
        "recipe": {key: value for key, value in asdict(recipe).items() if key not in ("name", "paper")},
        "paper": recipe.paper,
        "image_shape": list(shape),
        "pixels": [0, 1],
        "parameters": {"generator": _size(gan.result), "discriminator": _size(gan.discriminator)},
        "losses": {"discriminator": round(discriminator, 4), "generator": round(generator, 4)},
    }


def _size(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
