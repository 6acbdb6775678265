"""What every tuned value of the batch solver is worth: each halved, doubled or switched off, on images of its own.

The images are test images beyond the first thousand, which no other benchmark uses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.batch_data import CLOSER, Measured, held_out
from flipopt.common.checks import Array
from flipopt.flips.many import closest_flip_points
from flipopt.networks import DenseNetwork
from flipopt.results import FlipTable
from flipopt.solvers import Batch

IMAGES = {"mnist-net1": 1000, "cifar-200": 500, "mnist-fcn": 2000}
NETWORKS = {"steps": ("mnist-net1", "cifar-200"), "smooth": ("mnist-net1", "cifar-200"), "kinked": ("mnist-fcn",)}
"""Where each group of options is tried."""


def variants(group: str) -> Iterator[tuple[str, Batch]]:
    """The solver with each value of a group changed, and what was changed."""
    for name, options in _changed(getattr(Batch(), group)):
        yield f"{group}.{name}", Batch(**{group: options})


def _changed(options: Any) -> Iterator[tuple[str, Any]]:
    """Options with each of their values changed, and what was changed."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            yield from (
                (f"{field.name}.{name}", replace(options, **{field.name: new})) for name, new in _changed(value)
            )
            continue
        for other in _others(field.name, value):
            yield f"{field.name} = {other}", replace(options, **{field.name: other})


def _others(name: str, value: Any) -> list[Any]:
    """Half and double; of a factor, of what it differs from 1 by; of a list, none of it or all but one."""
    if isinstance(value, tuple):
        without = [value[:k] + value[k + 1 :] for k in range(len(value))] if len(value) > 1 else []
        halves = [tuple(share / 2 for share in value), tuple(2 * share for share in value)] if name == "soften" else []
        return [*halves, (), *without]
    if name in ("close", "hopeless", "around", "fall", "ascent"):
        return [1 + (value - 1) / 2, 1 + 2 * (value - 1)]
    return [type(value)(value / 2), type(value)(value * 2)]


def sensitivity(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """Time, verified share and distances of every variant, each between two runs of the default."""
    found: Measured = []
    for group, names in NETWORKS.items():
        for name in names:
            network, X = held_out(name, min(images * IMAGES[name] // 1000, IMAGES[name]))
            targets = _targets(network, X) if group == "steps" else "nearest"
            closest_flip_points(network, X[:2])  # compiles
            before, usual = _run(network, X, targets, Batch())
            for what, solver in variants(group):
                changed, table = _run(network, X, targets, solver)
                after, _ = _run(network, X, targets, Batch())
                console.print(f"  {name}, {what}")
                found += _worth(f"{name}, {what}", table, usual, 2 * changed / (before + after))
                before = after
    return found


def _targets(network: DenseNetwork, X: Array) -> Array:
    """A random class for every image: the iteration by itself, with third classes in its way."""
    i = np.asarray(network.predict(X))
    return np.asarray((i + np.random.default_rng(0).integers(1, network.n_classes, len(X))) % network.n_classes)


def _run(network: DenseNetwork, X: Array, targets: Any, solver: Batch) -> tuple[float, FlipTable]:
    """Processor seconds, since other programs may run beside this one, and the table."""
    started = time.process_time()
    table = closest_flip_points(network, X, targets, solver=solver)
    return time.process_time() - started, table


def _worth(what: str, table: FlipTable, usual: FlipTable, time_ratio: float) -> Measured:
    distance = np.where(table.success, table.distance, np.inf)
    return [
        (what, "time", time_ratio),
        (what, "evaluations", float(table.evaluations.sum() / usual.evaluations.sum())),
        (what, "verified", float(table.success.mean())),
        (what, "closer", float((distance < usual.distance * (1 - CLOSER)).mean())),
        (what, "farther", float((distance > usual.distance * (1 + CLOSER)).mean())),
    ]
