"""What training to target accuracies leaves behind: a network for every target that was reached, and a report."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from data_prep.datasets import load_dataset
from models.export import save_network, trained, write_report
from models.targets import TargetRecipe, target_report, train_to_targets

EPOCHS = 20
"""At most."""


def network_file(folder: Path, name: str, seed: int, target: float) -> Path:
    """Where the network of a recipe, a seed and a target is."""
    return folder / f"{name}.seed{seed}.at{target:g}.onnx"


def report_file(folder: Path, name: str, seed: int) -> Path:
    """Where the report of a run is, which is written when the run has ended."""
    return folder / f"{name}.seed{seed}.targets.json"


def write_targets(
    recipe: TargetRecipe, seed: int, targets: Sequence[float], out: Path, epochs: int = EPOCHS, show: bool = True
) -> dict[str, Any]:
    """Train on MNIST until every target has a network in the folder ``out``, or for so many epochs; the report.

    A run that was interrupted goes on from its checkpoint, in the same folder.
    """
    name, asked = recipe.name, "-".join(f"{target:g}" for target in targets)
    checkpoint = out / f"{name}.seed{seed}.targets{asked}.checkpoint"
    outcome = train_to_targets(
        recipe,
        load_dataset("mnist"),
        targets,
        seed,
        lambda target, model: save_network(trained(deepcopy(model)), network_file(out, name, seed, target)),
        epochs,
        checkpoint=checkpoint,
        show=show,
    )
    facts = target_report(recipe, outcome, targets, seed, epochs)
    write_report(facts, report_file(out, name, seed))
    checkpoint.unlink(missing_ok=True)
    return facts
