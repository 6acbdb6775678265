"""Algorithm 1 of Karimi, Derr and Tang on many pairs at once, against three calls of one image for every step.

The reference does what the authors' program does: for one pair after the other it asks the network, a module of torch,
for the midpoint and for both ends in every step. Both are given random pairs of training images of two classes; the
reference fewer of them, because it takes long. What counts is the processor's time a pair, in turns within one run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import flipopt as fo
from benchmarks.networks import FOLDER
from benchmarks.rows import Row, keeping, read_rows
from data_prep.datasets import load_dataset
from flipopt.borderline import Instances
from flipopt.borderline.refinement import Refinement
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.features.shipped import load_shipped
from flipopt.paths.lines import Lines
from models.image_networks import IMAGE_NETWORKS

S, T, SIDES = 1, 2, (28, 28)
PAIRS, SINGLE = 5000, 200
"""Pairs of the batched search, and of the reference."""
BETA, MOST = 1e-4, 100
"""Largest gap, and most steps."""
COLUMNS = ("turn", "network", "scheme", "pairs", "cpu_ms_a_pair", "calls_a_chunk", "evaluations_a_pair", "success")


def networks() -> dict[str, tuple[Any, nn.Module]]:
    """The two classifiers of the paper for MNIST, each as this package has it and as a module of torch."""
    dense, path = load_shipped("mnist-fcn").network, FOLDER / "deepdig-mnist-cnn.onnx"
    return {
        "mnist-fcn": (dense, dense_module(dense)),
        "deepdig-mnist-cnn": (fo.load_network(path), convolutional_module(path)),
    }


def dense_module(network: fo.DenseNetwork) -> nn.Module:
    """Linear layers with ReLU between them, in float32."""
    layers: list[nn.Module] = []
    for W, b in zip(network.weights, network.biases, strict=True):
        layers += [layer := nn.Linear(*W.shape), nn.ReLU()]
        layer.load_state_dict({"weight": torch.tensor(W.T.copy()), "bias": torch.tensor(b)})
    return nn.Sequential(*layers[:-1]).eval()


def convolutional_module(path: Path) -> nn.Module:
    """The network with the weights in the file, of rows of pixels."""
    module = IMAGE_NETWORKS["deepdig-cnn"]()
    kept = {part.name: torch.tensor(numpy_helper.to_array(part)) for part in onnx.load(path).graph.initializer}
    module.load_state_dict({name: kept[name] for name in module.state_dict()})
    return nn.Sequential(nn.Unflatten(1, (1, *SIDES)), module).eval()


def ends(network: Any, pairs: int) -> tuple[Array, Array]:
    """Random training images of class s and of class t (pairs, n_inputs), where the network puts them there."""
    split, rng = load_dataset("mnist").train, np.random.default_rng(0)
    X = split.images.reshape(len(split.images), -1) / 255
    found = []
    for k in (S, T):
        rows = np.flatnonzero(split.labels == k)
        rows = rows[network.predict(X[rows]) == k]
        found.append(X[rng.choice(rows, pairs)])
    return found[0], found[1]


def one_by_one(module: nn.Module, A: Array, B: Array) -> int:
    """The reference; how many of the pairs end with a gap of at most beta."""

    def probabilities(x: Tensor) -> Array:
        return np.asarray(torch.softmax(module(x[None]), dim=1)[0].numpy())

    found = 0
    with torch.no_grad():
        for low, high in zip(*(torch.from_numpy(X.astype(np.float32)) for X in (A, B)), strict=True):
            for _ in range(MOST):
                middle = (low + high) / 2
                probabilities(low), probabilities(high)
                p = probabilities(middle)
                leader = int(p.argmax())
                if leader not in (S, T) or abs(p[S] - p[T]) < BETA:
                    found += leader in (S, T)
                    break
                low, high = (middle, high) if leader == S else (low, middle)
    return found


@contextmanager
def counted() -> Iterator[list[int]]:
    """The rows of every call of a network on lines while the block runs."""
    sizes: list[int] = []
    logits = Lines.logits

    def counting(lines: Lines, line: Array, alpha: Array) -> Array:
        sizes.append(len(line))
        return logits(lines, line, alpha)

    Lines.logits = counting  # type: ignore[method-assign, assignment]
    try:
        yield sizes
    finally:
        Lines.logits = logits  # type: ignore[method-assign]


def run(out: Path, turns: int, console: Console) -> None:
    """Measure both, in turns; rows to ``out`` (.csv)."""
    torch.set_num_threads(1)
    given = {name: (*both, ends(both[0], PAIRS)) for name, both in networks().items()}
    steps = [(turn, name) for turn in range(turns) for name in given]
    with keeping(out, COLUMNS, console) as add:
        for turn, name in tracked(steps, "turns", console):
            network, module, (A, B) = given[name]
            add([_single(turn, name, module, A[:SINGLE], B[:SINGLE]), _batched(turn, name, network, A, B)])


def _single(turn: int, name: str, module: nn.Module, A: Array, B: Array) -> Row:
    one_by_one(module, A[:2], B[:2])
    started = time.process_time()
    found = one_by_one(module, A, B)
    busy = time.process_time() - started
    return _row(turn, name, "three calls a step", len(A), busy, np.nan, np.nan, found / len(A))


def _batched(turn: int, name: str, network: Any, A: Array, B: Array) -> Row:
    _refined(network, A[:600], B[:600])
    started = time.process_time()
    found = _refined(network, A, B)
    busy = time.process_time() - started
    with counted() as sizes:
        _refined(network, A, B)
    chunks = -(-len(A) // Refinement().chunk)
    return _row(turn, name, "refine", len(A), busy, len(sizes) / chunks, sum(sizes) / len(A), found.success_rate)


def _refined(network: Any, A: Array, B: Array) -> Instances:
    return fo.borderline.refine(network, A, B, S, T, beta=BETA)


def _row(
    turn: int, name: str, scheme: str, pairs: int, busy: float, calls: float, evaluations: float, success: float
) -> Row:
    return {
        "turn": turn,
        "network": name,
        "scheme": scheme,
        "pairs": pairs,
        "cpu_ms_a_pair": round(1000 * busy / pairs, 4),
        "calls_a_chunk": round(calls, 1),
        "evaluations_a_pair": round(evaluations, 2),
        "success": round(success, 4),
    }


def show(out: Path, console: Console) -> None:
    """How many times less the batched search takes, turn by turn."""
    rows = read_rows(out, ("turn",), ("cpu_ms_a_pair", "calls_a_chunk", "evaluations_a_pair", "success"))
    single = {(row["turn"], row["network"]): row["cpu_ms_a_pair"] for row in rows if row["scheme"] != "refine"}
    table = Table("turn", "network", "ms a pair", "one by one", "times less", "calls a chunk", "evaluations", "success")
    for row in rows:
        if row["scheme"] == "refine":
            alone, busy = single[row["turn"], row["network"]], row["cpu_ms_a_pair"]
            cells = (f"{busy:.3f}", f"{alone:.2f}", f"{alone / busy:.1f}", f"{row['calls_a_chunk']:.1f}")
            more = (f"{row['evaluations_a_pair']:.1f}", f"{row['success']:.3f}")
            table.add_row(str(row["turn"]), row["network"], *cells, *more)
    console.print(table)
