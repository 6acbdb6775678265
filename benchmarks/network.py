"""Time of one evaluation, logits and one gradient, against torch and against the machine's matrix-product peak."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.machine import facts, fastest, product_peak
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.features.shipped import load_shipped
from flipopt.networks import DenseNetwork
from flipopt.runs.rows import write_rows
from flipopt.runs.threads import cores

BATCHES = (1, 32, 512, 4096)
COLUMNS = ("method", "dtype", "batch", "us_per_sample", "fraction_of_peak", "times_torch", "peak_gflops")


def run(out: Path, quick: bool, console: Console) -> list[dict[str, Any]]:
    """Measure every method, precision and batch size on the shipped mnist-net1; rows to ``out`` (.csv)."""
    torch.set_num_threads(cores())
    shipped, rng, rows = load_shipped("mnist-net1"), np.random.default_rng(0), []
    machine = facts()
    peaks = {dtype: product_peak(dtype, seconds=0.3 if quick else 2.0) for dtype in ("float64", "float32")}
    cases = [(dtype, batch) for dtype in peaks for batch in BATCHES]
    for dtype, batch in tracked(cases, "network", console):
        net = shipped.network.astype(dtype)
        X = shipped.X[rng.integers(len(shipped.X), size=batch)].astype(dtype)
        V = rng.standard_normal((batch, net.n_classes)).astype(dtype)
        operations = 4.0 * sum(W.size for W in net.weights) * batch  # forward and backward
        seconds = _alternate([_in_numpy(net, X, V), _in_torch(net, X, V)], 3 if quick else 15)
        for method, time in zip(("DenseNetwork", "torch"), seconds, strict=True):
            measured = (time / batch * 1e6, operations / time / peaks[dtype], time / seconds[1], peaks[dtype] / 1e9)
            values = (method, dtype, batch, *(float(f"{value:.4g}") for value in measured))
            rows.append(dict(zip(COLUMNS, values, strict=True)) | machine)
    write_rows(out, (*COLUMNS, *machine), rows)
    return rows


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """The rows as a table."""
    table = Table(
        "method",
        "precision",
        "batch",
        "us a sample",
        "of product peak",
        "time / torch's",
        title="logits and one gradient, mnist-net1",
    )
    for row in rows:
        table.add_row(
            row["method"],
            row["dtype"],
            f"{row['batch']}",
            f"{row['us_per_sample']:.1f}",
            f"{row['fraction_of_peak']:.0%}",
            f"{row['times_torch']:.2f}",
        )
    console.print(table)
    peaks = {row["dtype"]: row["peak_gflops"] for row in rows}
    console.print(", ".join(f"{dtype} peak {peak:.0f} GFLOP/s" for dtype, peak in peaks.items()))


def _alternate(tasks: list[Callable[[], object]], rounds: int) -> list[float]:
    """The fastest time of each task, the tasks taking turns so that a noisy moment hits them alike."""
    best = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for k, task in enumerate(tasks):
            best[k] = min(best[k], fastest(task, 3, 0.3))
    return best


def _in_numpy(net: DenseNetwork, X: Array, V: Array) -> Callable[[], object]:
    """Logits and gradient by flipopt."""

    def evaluate() -> object:
        Y, pullback = net.linearize(X)
        return Y, pullback(V)

    return evaluate


def _in_torch(net: DenseNetwork, X: Array, V: Array) -> Callable[[], object]:
    """The same network in torch, logits and gradient by autograd."""
    layers = [(torch.tensor(W), torch.tensor(b)) for W, b in zip(net.weights, net.biases, strict=True)]
    sigmas = [float(activation.parameter_value) for activation in net.activations]
    x, v = torch.tensor(X, requires_grad=True), torch.tensor(V)

    def evaluate() -> object:
        y = x
        for (W, b), sigma in zip(layers[:-1], sigmas, strict=True):
            y = torch.erf(torch.addmm(b, y, W) / sigma)
        y = torch.addmm(layers[-1][1], y, layers[-1][0])
        return y, torch.autograd.grad(y, x, v)

    return evaluate
