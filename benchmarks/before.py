"""This checkout against another one, in turns on the same inputs: is it as fast, and as close?

Each turn is a process of its own that imports flipopt from one of the two folders. A network that is not dense goes
there as a traced torch module, so that the other checkout need not know how to read it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import networks
from benchmarks.batch_data import data
from benchmarks.rows import Row, keeping
from flipopt.common.checks import Array
from flipopt.common.progress import progress_bar

COLUMNS = ("network", "targets", "images", "seconds", "seconds_before", "ratio", "farther", "nearer", "verified")
CASES = (("mnist-net1", "nearest"), ("mnist-net2", "nearest"), ("mnist-fcn", "nearest"), ("cifar-200", "nearest"),
         ("mnist-net1", "all"), ("mnist-vit", "nearest"))  # fmt: skip
SAME = 1e-6
"""Relative difference of distances up to which they are the same."""
SCRIPT = """
import sys, time
import numpy as np
import flipopt as fo
name, targets, points, module, out = sys.argv[1:]
X = np.load(points)
if module:
    import torch
    network = fo.TorchNetwork(torch.jit.load(module), (X.shape[1],))
else:
    network = fo.load_shipped(name).network
fo.closest_flip_points(network, X[:2], targets)
started = time.perf_counter()
flips = fo.closest_flip_points(network, X, targets)
seconds = time.perf_counter() - started
np.savez(out, distance=flips.distance, success=flips.success, seconds=seconds)
"""


def run(out: Path, folder: Path, images: int, turns: int, console: Console) -> None:
    """Measure every case and write a row each."""
    rows: list[Row] = []
    with keeping(out, COLUMNS, console) as add, progress_bar("cases", len(CASES), console=console) as advance:
        for row in _rows(folder, images, turns):
            add([row])
            rows.append(row)
            advance(len(rows))
    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*(f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in COLUMNS))
    console.print(table)


def _rows(folder: Path, images: int, turns: int) -> Iterator[Row]:
    here = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as scratch:
        for name, targets in CASES:
            X = networks.inputs(name, images) if name in networks.NAMES else data(name).X[:images].astype(np.float64)
            np.save(Path(scratch) / "X.npy", X)
            module = _traced(name, X[:2], Path(scratch)) if name in networks.NAMES else ""
            runs = [_turn(root, name, targets, module, Path(scratch)) for _ in range(turns) for root in (here, folder)]
            now, before = runs[0::2], runs[1::2]
            seconds, earlier = (float(np.median([seconds for seconds, _ in some])) for some in (now, before))
            distance, reference = now[0][1], before[0][1]
            yield {
                "network": name, "targets": targets, "images": len(X), "seconds": round(seconds, 3),
                "seconds_before": round(earlier, 3), "ratio": seconds / earlier,
                "farther": float((distance > reference * (1 + SAME)).mean()),
                "nearer": float((distance < reference * (1 - SAME)).mean()),
                "verified": float(np.isfinite(distance).mean()),
            }  # fmt: skip


def _traced(name: str, X: Array, scratch: Path) -> str:
    """The path of an image network as a module of rows like X, in float64."""
    import torch

    from benchmarks.peers import as_module

    module = as_module(networks.network(name), torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(module, torch.tensor(X)), scratch / f"{name}.pt")  # type: ignore[no-untyped-call]
    return str(scratch / f"{name}.pt")


def _turn(root: Path, name: str, targets: str, module: str, scratch: Path) -> tuple[float, Array]:
    """Seconds, and distances, infinite where nothing was verified, by the flipopt in the folder ``root``."""
    points, out = str(scratch / "X.npy"), str(scratch / "out.npz")
    arguments = [sys.executable, "-P", "-c", SCRIPT, name, targets, points, module, out]
    subprocess.run(arguments, env=os.environ | {"PYTHONPATH": str(root.resolve())}, check=True)
    with np.load(scratch / "out.npz") as found:
        return float(found["seconds"]), np.where(found["success"], found["distance"], np.inf)
