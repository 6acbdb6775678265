"""The settings of 004 beside ours, each read off what was made, not off the paper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from torch import nn

from benchmarks.reproduce.paper_004.networks import KINDS, TARGETS
from benchmarks.reproduce.paper_004.sets import GENERATOR, Sets
from benchmarks.reproduce.record import Number, setting
from models.gans.dcgan import DEVIATION, DcganGenerator
from models.image_networks import Attention, TransformerBlock
from models.targets import TARGET_RECIPES, Watch, initial

PLACE = "004.setup"
SHAPE = (28, 28)
HIGHEST = (
    "Ours is the highest accuracy that tables have for all models; those of CNNs above it are in Figure 2 alone, whose "
    "curves are not printed as numbers."
)
MAPS = (
    "The generator that 003 is reproduced with, which has half as many maps before the image: it is used here as it is."
)


def settings(found: Sets) -> list[Number]:
    """All but those of people and of the figures."""
    first = found.first
    rows = [
        ("latent", "numbers of a latent vector", first.latents.shape[1]),
        ("pairs", "lines between two latent vectors", len(first.pairs)),
        ("steps", "images on a line", len(first) // len(first.pairs)),
        ("images", "images", len(first)),
    ]
    return [
        *(setting(f"{PLACE}.{name}", what, ours) for name, what, ours in rows),
        *_generator(),
        *_architectures(),
        setting(f"{PLACE}.target_accuracy_tolerance_percent", "distance from a target accuracy, %", Watch().tolerance),
        *(
            setting(f"{PLACE}.highest_target_percent.{kind}", f"highest target accuracy of {kind}s, %", TARGETS[-1])
            if kind != "CNN"
            else setting(
                f"{PLACE}.highest_target_percent.CNN", "highest target accuracy of CNNs, %", TARGETS[-1], HIGHEST
            )
            for kind in KINDS.values()
        ),
        *_training(),
    ]


def _generator() -> Iterator[Number]:
    """As its report says, beside its file."""
    recipe: dict[str, Any] = json.loads(GENERATOR.with_name("dcgan-mnist.json").read_text())["recipe"]
    place = f"{PLACE}.dcgan"
    layers = len(DcganGenerator(recipe["width"], recipe["latent"]).layers)
    yield setting(f"{place}.layers", "layers of the generator", layers)
    yield setting(f"{place}.feature_maps", "maps of the generator before the image", recipe["width"], MAPS)
    yield setting(f"{place}.weights_std", "standard deviation of its initial weights", DEVIATION)
    yield setting(f"{place}.adam_learning_rate", "Adam's step size for it", recipe["generator_rate"])
    yield setting(f"{place}.beta_1", "Adam's beta 1 for it", recipe["betas"][0])


def _architectures() -> Iterator[Number]:
    mlp, cnn, vit = (initial(TARGET_RECIPES[f"{name}1"], SHAPE) for name in KINDS)
    blocks = _all(vit, TransformerBlock)
    counted = {
        "MLP.hidden": ("units of a hidden layer of the MLP", _all(mlp, nn.Linear)[1].in_features),
        "CNN.convolutions": ("convolutions of the CNN", len(_all(cnn, nn.Conv2d))),
        "CNN.dense": ("dense layers of the CNN", len(_all(cnn, nn.Linear))),
        "CNN.dropout": ("dropout of the CNN", _all(cnn, nn.Dropout)[0].p),
        "ViT.blocks": ("blocks of the ViT", len(blocks)),
        "ViT.heads": ("heads of the ViT", _all(vit, Attention)[0].heads),
        "ViT.mlp": ("units of the dense layers of the ViT", blocks[0].dense[1].out_features),
    }
    for name, (what, ours) in counted.items():
        yield setting(f"{PLACE}.{name}", what, ours)


def _all(module: nn.Module, kind: type[nn.Module]) -> list[Any]:
    return [part for part in module.modules() if isinstance(part, kind)]


WORDS = {"learning_rate": "step size", "batch": "batch", "weight_decay": "weight decay"}
NOT_STATED = {"cnn3": ("weight_decay",), "vit3": ("weight_decay",)}
"""What the paper says of recipes of which it does not say all."""


def _training() -> Iterator[Number]:
    for name, recipe in TARGET_RECIPES.items():
        title = f"{KINDS[name[:3]]}{name[3:]}"
        for field in NOT_STATED.get(name, tuple(WORDS)):
            yield setting(f"{PLACE}.training.{title}.{field}", f"{WORDS[field]} of {title}", getattr(recipe, field))
