"""GB-RRT with its expansions evaluated in advance, many together, against one at a time: at equal reach, as all grow
the same tree.

- ``ahead``: :func:`flipopt.generative.explore`.
- ``one at a time``: the same with a batch of 1, so that onnxruntime is asked for one row after the other.
- ``torch``: Algorithm 2, its sixth line as "at least delta", as one would write it down with a module of torch: the
  network up to the layer for one point after the other, and the distances to all samples so far.

All three are given the same random points. What counts is the processor's time, in turns within one run. The third one
rounds otherwise, so that a sign may differ; the rows say how many samples each has found, and how far they came.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.generative import Generator, essential, explore
from flipopt.generative.exploration import SLACK, STEP
from models.gans.dcgan import DcganGenerator

FOLDER = Path(__file__).parents[1] / "models" / "generators"
NAME = "dcgan-mnist"
LAYERS, QUERY, EXPANSIONS, TARGET = (1, 2, 3, 4), 0, 4096, 0.1
"""Hidden layers, the seed of the query's latent vector, steps, and the error that the essential units may have."""
SCHEMES = ("ahead", "one at a time", "torch")
COLUMNS = (
    "turn", "layer", "units", "scheme", "expansions", "cpu_seconds", "samples", "rejected", "mean_distance",
    "largest_distance", "evaluations",
)  # fmt: skip
Found = tuple[Array, int, int]
"""Samples (k, d), how many expansions were rejected, and rows that the network was evaluated for."""


def generator() -> Generator:
    """The committed one."""
    return Generator(FOLDER / f"{NAME}.generator.onnx")


def latent(G: Generator, seed: int) -> Array:
    """The latent vector (d,) of a query."""
    return np.random.default_rng(seed).standard_normal(G.n_latent)


def module(path: Path) -> nn.Sequential:
    """The generator as a module of torch, with the weights in the file; entry 2 l - 2 makes layer l, 2 l - 1 is ReLU.

    The file has batch norm within the convolutions.
    """
    kept = {part.name: torch.tensor(numpy_helper.to_array(part)) for part in onnx.load(path).graph.initializer}
    latent_, width = kept["generator.layers.0.0.weight"].shape[:2]
    parts: list[nn.Module] = []
    for k, layer in enumerate(DcganGenerator(width // 8, latent_).layers):
        old, name = next(iter(layer.children())), f"generator.layers.{k}.0.weight"
        bias = kept.get(f"{name}_bias", kept.get(f"generator.layers.{k}.0.bias"))
        assert isinstance(old, nn.ConvTranspose2d)
        sides: dict[str, Any] = {"kernel_size": old.kernel_size, "stride": old.stride, "padding": old.padding}
        new = nn.ConvTranspose2d(old.in_channels, old.out_channels, bias=bias is not None, **sides)
        new.load_state_dict({"weight": kept[name]} | ({} if bias is None else {"bias": bias}))
        parts += [new, nn.ReLU() if k < 4 else nn.Tanh()]
    return nn.Sequential(*parts).eval().requires_grad_(False)


def ahead(G: Generator, z0: Array, layer: int, mask: Array, expansions: int) -> Found:
    """By this package."""
    found = explore(G, z0, layer, mask, expansions=expansions)
    return found.accepted, len(found.rejected), found.evaluations


def one_at_a_time(G: Generator, z0: Array, layer: int, mask: Array, expansions: int) -> Found:
    """By this package, each expansion when its turn comes."""
    found = explore(G, z0, layer, mask, expansions=expansions, batch=1)
    return found.accepted, len(found.rejected), found.evaluations


def by_torch(G: Generator, z0: Array, layer: int, mask: Array, expansions: int) -> Found:
    """Algorithm 2 written down."""
    part, interval, delta = module(G.path)[: 2 * layer - 1], 1.0, STEP * len(z0) ** 0.5
    rng, units = np.random.default_rng(0), np.flatnonzero(mask)

    def signs(z: Array) -> Array:
        values = part(torch.tensor(z, dtype=torch.float32).reshape(1, -1, 1, 1))
        return np.asarray(np.sign(values.numpy().reshape(-1)[units]))

    wanted, rejected = signs(z0), 0
    Q, size = np.empty((expansions + 1, len(z0))), 1
    Q[0] = z0
    for _ in range(expansions):
        z = rng.uniform(z0 - interval, z0 + interval)
        q = Q[np.linalg.norm(Q[:size] - z, axis=1).argmin()]
        new = (z - q) / np.linalg.norm(z - q) * delta + q
        if not (signs(new) * wanted >= 0).all():
            rejected += 1
        elif np.linalg.norm(Q[:size] - new, axis=1).min() >= delta * (1 - SLACK):
            Q[size], size = new, size + 1
    return Q[:size], rejected, expansions + 1


WAYS: dict[str, Callable[[Generator, Array, int, Array, int], Found]] = dict(
    zip(SCHEMES, (ahead, one_at_a_time, by_torch), strict=True)
)


def run(out: Path, turns: int, expansions: int, console: Console) -> None:
    """Measure all schemes in all layers, in turns; rows to ``out`` (.csv)."""
    torch.set_num_threads(1)
    G = generator()
    z0 = latent(G, QUERY)
    masks = {layer: essential(G, z0, layer, target_error=TARGET, progress=True).mask for layer in LAYERS}
    steps = [(turn, layer, scheme) for turn in range(turns) for layer in LAYERS for scheme in SCHEMES]
    with keeping(out, COLUMNS, console) as add:
        for turn, layer, scheme in tracked(steps, "turns", console):
            add([{"turn": turn} | measured(G, z0, layer, masks[layer], scheme, expansions)])


def measured(G: Generator, z0: Array, layer: int, mask: Array, scheme: str, expansions: int) -> Row:
    """Processor's time of a scheme, after a few steps to warm up."""
    WAYS[scheme](G, z0, layer, mask, min(10, expansions))
    started = time.process_time()
    samples, rejected, evaluations = WAYS[scheme](G, z0, layer, mask, expansions)
    busy = time.process_time() - started
    distances = np.linalg.norm(samples - z0, axis=1)[1:]
    return {
        "layer": layer,
        "units": int(mask.sum()),
        "scheme": scheme,
        "expansions": expansions,
        "cpu_seconds": round(busy, 4),
        "samples": len(samples) - 1,
        "rejected": rejected,
        "mean_distance": round(float(distances.mean()), 6) if len(distances) else 0.0,
        "largest_distance": round(float(distances.max(initial=0.0)), 6),
        "evaluations": evaluations,
    }


def show(out: Path, console: Console) -> None:
    """How many times less each layer takes, in the median of the turns."""
    numbers = ("cpu_seconds", "mean_distance")
    rows = read_rows(out, ("turn", "layer", "units", "samples"), numbers)
    table = Table("layer", "units", "ahead, s", "times less than one at a time", "than torch", "samples", "distance")
    for layer in sorted({row["layer"] for row in rows}):
        mine = [row for row in rows if row["layer"] == layer]
        by = {scheme: [row for row in mine if row["scheme"] == scheme] for scheme in SCHEMES}
        seconds = {scheme: np.array([row["cpu_seconds"] for row in found]) for scheme, found in by.items()}
        samples = "; ".join(f"{found[0]['samples']:,}" for found in by.values())
        reach = "; ".join(f"{found[0]['mean_distance']:.4f}" for found in by.values())
        ratios = [f"{np.median(seconds[scheme] / seconds['ahead']):.1f}" for scheme in SCHEMES[1:]]
        table.add_row(str(layer), str(mine[0]["units"]), f"{np.median(seconds['ahead']):.2f}", *ratios, samples, reach)
    console.print(table)
