"""The models: found, or trained to their accuracies, and shipped ones with noise for a quick run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.kept import computed
from benchmarks.reproduce.paper_004.sets import JUDGE
from flipopt.networks.protocol import Network
from flipopt.runs.rows import Row
from models.target_files import EPOCHS, network_file, report_file, write_targets
from models.targets import NOT_REACHED, TARGET_RECIPES

TARGETS = (97.5, 98.0, 98.5)
"""Accuracies in percent."""
NINE = {name: {"mlp2": 1, "cnn2": 1, "vit2": 1, "vit3": 2}.get(name, 0) for name in TARGET_RECIPES}
"""The nine recipes with a seed each. AdamW multiplies weights by 1 - step size * weight decay, which in float32 is 1
for all of them, so that recipes which differ in their weight decay alone make the same network of the same seed."""
KINDS = {"mlp": "MLP", "cnn": "CNN", "vit": "ViT"}
"""The paper's names of architectures, by how the names of their recipes begin."""
SEEDS = 10
"""Of a recipe, in Figure 2."""
FOLDER = "targets"
"""Of the networks, in the folder of what is kept; ``python -m models targets NAME --out`` may have put them there."""
NOISE = {97.5: 0.08, 98.0: 0.06, 98.5: 0.04}
"""In the weights of a quick run's networks, in standard deviations of these."""


def same(name: str) -> list[str]:
    """Recipes that make the network of this one from the same seed, this one among them: see NINE."""
    plain = {key: replace(recipe, name="", weight_decay=0.0) for key, recipe in TARGET_RECIPES.items()}
    return [key for key in plain if plain[key] == plain[name]]


@dataclass(frozen=True, order=True)
class Model:
    """Which network: of a recipe, with a seed, at a target accuracy."""

    name: str
    seed: int
    target: float

    @property
    def words(self) -> str:
        """As its file is called."""
        return network_file(Path(), self.name, self.seed, self.target).stem

    @property
    def kind(self) -> str:
        """Its architecture."""
        return KINDS[self.name[:3]]

    def file(self, desk: Desk) -> Path:
        """Where it is, if it is, also under the name of a recipe that makes the same network."""
        names = (self.name, *same(self.name))
        files = [network_file(desk.work / FOLDER, name, self.seed, self.target) for name in names]
        return next((file for file in files if file.exists()), files[0])


NINE_AT_TARGETS = tuple(Model(name, seed, target) for target in TARGETS for name, seed in NINE.items())
"""The 27 of Tables 2 to 4."""


def network(desk: Desk, model: Model) -> Network | None:
    """The network, or None where there is none, as its target was not reached or it has not been trained."""
    if desk.quick:
        return _noisy(model)
    file = model.file(desk)
    return fo.load_network(file) if file.exists() else None


def train(desk: Desk, models: Iterable[Model]) -> None:
    """Train what has no report yet, a recipe and seed a core; one that was stopped goes on."""
    if desk.quick or not desk.training:
        return
    folder = desk.work / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sorted({(same(model.name)[0], model.seed) for model in models}, reverse=True)  # the slowest first
    loads = {f"{name}.seed{seed}": (name, seed, folder) for name, seed in wanted if not ended(desk, name, seed)}
    if loads:
        columns = ("name", "seed", "target", "reached")
        computed(
            folder / "trainings.csv", columns, "trainings", loads, train_one, desk.console, again=loads.__contains__
        )


def ended(desk: Desk, name: str, seed: int) -> bool:
    """Whether a recipe has been trained for all accuracies to the end, so that what is not there was not reached."""
    files = [report_file(desk.work / FOLDER, other, seed) for other in same(name)]
    return any(_to_the_end(json.loads(file.read_text())) for file in files if file.exists())


def _to_the_end(report: dict[str, Any]) -> bool:
    found = [report["targets"].get(f"{target:g}") for target in TARGETS]
    return None not in found and (NOT_REACHED not in found or report["epochs"] >= EPOCHS)


def train_one(load: tuple[str, int, Path]) -> list[Row]:
    """Train in a process of its own: a row a target."""
    torch.set_num_threads(1)
    name, seed, folder = load
    facts = write_targets(TARGET_RECIPES[name], seed, TARGETS, folder, show=False)
    return [
        {"name": name, "seed": seed, "target": target, "reached": not isinstance(found, str)}
        for target, found in facts["targets"].items()
    ]


def _noisy(model: Model) -> fo.DenseNetwork:
    """The judge with noise in its weights."""
    rng, shipped = np.random.default_rng(crc32(model.words.encode())), fo.load_shipped(JUDGE).network
    weights = [
        W + (NOISE[model.target] * W.std() * rng.standard_normal(W.shape)).astype(W.dtype) for W in shipped.weights
    ]
    return fo.DenseNetwork(weights, shipped.biases, shipped.activations)
