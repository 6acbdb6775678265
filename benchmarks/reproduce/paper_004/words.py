"""Sentences and means that the studies of 004 share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004.networks import FOLDER, TARGETS, Model, ended
from flipopt.common.checks import Array
from models.target_files import EPOCHS

OVER = "choices of latent vectors"


def at(target: float) -> str:
    """An accuracy as the paper writes it."""
    return f"{target:g}%"


def mean(values: Sequence[float] | Array, digits: int = 1, unit: str = "%") -> str:
    """A mean with its standard deviation."""
    found = np.asarray(values, dtype=np.float64)
    if len(found) == 0 or not np.isfinite(found).all():
        return "—"
    spread = f" ± {found.std(ddof=1):.{digits}f}" if len(found) > 1 else ""
    return f"{found.mean():.{digits}f}{spread}{unit}"


def missing(desk: Desk, wanted: Sequence[Model], there: Sequence[Model]) -> str:
    """Which networks there are not, and what would train them; nothing if all are there."""
    lacking = [model for model in wanted if model not in set(there)]
    missed = [model for model in lacking if ended(desk, model.name, model.seed)]
    untrained = [model for model in lacking if model not in missed]
    text = ""
    if missed:
        text += f" In {EPOCHS} epochs these accuracies were not reached: {_listed(missed)}."
    if untrained:
        text += (
            f" Not trained, or not far enough, when this was written: {_listed(untrained)}; `python -m models targets "
            f"NAME --seed SEED --out reproduction/{FOLDER}` trains one, and this command all by itself, in hours."
        )
    return text


def _listed(models: Sequence[Model]) -> str:
    """Recipes, with the accuracies that lack where not all do: mlp2 (seed 1) at 98.5%, vit1 (seed 0), ..."""
    by_name: dict[str, list[str]] = {}
    for model in models:
        by_name.setdefault(f"{model.name} (seed {model.seed})", []).append(at(model.target))
    return ", ".join(
        name if len(targets) == len(TARGETS) else f"{name} at {' and '.join(targets)}"
        for name, targets in by_name.items()
    )
