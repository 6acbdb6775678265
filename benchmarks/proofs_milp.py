"""Branch and bound of flipopt beside a mixed-integer solver, SCIP, on the same problems in one run.

- ``images``: the shipped ReLU network of MNIST. Both begin with the batch solver's flip; is there one that is nearer by
  more than 1e-6?
- ``random``, ``spirals``, ``loans``: small networks, where SCIP does not know the flip: it looks for the nearest one in
  a ball half as large again. Do the two distances agree?
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from rich.console import Console

import flipopt as fo
from benchmarks.paths import show, write_markdown
from benchmarks.proofs_scip import nearest
from benchmarks.rows import Row, keeping, read_rows
from benchmarks.spirals import points, spirals
from data_prep.loans import applications, paid_back
from flipopt.common.checks import Array, optional_package
from flipopt.common.progress import tracked
from flipopt.runs.threads import one_blas_thread

REAL = ("ours_lower", "ours_upper", "ours_seconds", "scip_lower", "scip_upper", "scip_seconds")
WHOLE = ("number", "inputs", "hidden", "binaries", "ours_nodes", "scip_nodes")
COLUMNS = ("part", *WHOLE, *REAL)
CLOSE = 1e-6
"""Relative gap of a proof, and difference of distances that agree."""
LARGER = 1.5
"""The ball in which SCIP looks for the flip of a small network, in distances."""
SMALL_SECONDS = 60.0
"""Core seconds of SCIP for a small network."""
SHARES = {"random": 0.6, "spirals": 0.2, "loans": 0.2}
"""Of the small networks."""
Case = tuple[int, fo.DenseNetwork, Array]


def run(out: Path, images: int, instances: int, seconds: float, console: Console) -> None:
    """Solve what is not in ``out`` (.csv) yet; tables for the documentation in the file beside it (.md)."""
    optional_package("pyscipopt", "bench", "the mixed-integer solver beside the proofs")
    counts = {part: round(share * instances) for part, share in SHARES.items()} | {"images": images}
    with keeping(out, COLUMNS, console) as add:
        done = {(row["part"], row["number"]) for row in read_rows(out, WHOLE)}
        for part, count in counts.items():
            for number, net, x in tracked(list(islice(CASES[part](), count)), part, console):
                if (part, number) not in done:
                    with one_blas_thread():
                        add([solved(part, number, net, x, seconds if part == "images" else SMALL_SECONDS)])
    rows = summary(read_rows(out, WHOLE, REAL))
    for part in dict.fromkeys(str(row["part"]) for row in rows):
        show(part, [row for row in rows if row["part"] == part], console)
    write_markdown(out.with_suffix(".md"), rows)


def solved(part: str, number: int, net: fo.DenseNetwork, x: Array, seconds: float) -> Row:
    """A row: both proofs of one input."""
    flip = fo.closest_flip_points(net, x[None]).x[0]
    fo.proofs.prove(net, x, flip=flip, tol=CLOSE, seconds=0.0)  # compiles
    started = time.process_time()
    ours = fo.proofs.prove(net, x, flip=flip, tol=CLOSE, seconds=seconds)
    used = time.process_time() - started
    if part == "images":
        scip = nearest(net, x, float(np.linalg.norm(flip - x)), seconds, CLOSE)
    else:
        scip = nearest(net, x, LARGER * ours.upper, seconds)
    return {
        "part": part,
        "number": number,
        "inputs": net.n_inputs,
        "hidden": sum(net.widths[1:-1]),
        "binaries": scip.binaries,
        "ours_nodes": ours.nodes,
        "scip_nodes": scip.nodes,
        "ours_lower": ours.lower,
        "ours_upper": ours.upper,
        "ours_seconds": float(f"{used:.4g}"),
        "scip_lower": scip.lower,
        "scip_upper": scip.upper,
        "scip_seconds": float(f"{scip.seconds:.4g}"),
    }


def summary(rows: list[Row]) -> list[Row]:
    """Figures of every part, for each of the two, and how often they agree."""
    found: list[Row] = []
    for part in dict.fromkeys(row["part"] for row in rows):
        mine = [row for row in rows if row["part"] == part]
        column = {name: np.array([row[name] for row in mine]) for name in (*WHOLE, *REAL)}
        distance = np.minimum(column["ours_upper"], column["scip_upper"])
        for name, what in (("ours", "flipopt"), ("scip", "SCIP")):
            lower, upper, seconds = (column[f"{name}_{side}"] for side in ("lower", "upper", "seconds"))
            proved = lower >= upper * (1 - CLOSE) * (1 - 1e-12)
            figures = {
                "inputs": len(mine),
                "proved to 1e-6": proved.sum(),
                "core seconds, median": np.median(seconds),
                "core seconds in all": seconds.sum(),
                "nodes, median": np.median(column[f"{name}_nodes"]),
                "lower bound over the distance, least": (lower / distance).min(),
                "lower bound over the distance, median": np.median(lower / distance),
            }
            if part != "images" and name == "scip":
                apart = np.abs(upper / column["ours_upper"] - 1)[proved]
                figures |= {"agree to 1e-6": (apart <= CLOSE).sum(), "largest difference": apart.max(initial=0.0)}
            found += [
                {"part": part, "what": what, "figure": figure, "value": float(value)}
                for figure, value in figures.items()
            ]
    return found


def _images() -> Iterator[Case]:
    shipped = fo.load_shipped("mnist-fcn")
    for number, x in enumerate(shipped.X):
        yield number, shipped.network, x


def _random() -> Iterator[Case]:
    """One to three hidden layers of up to 20 neurons in all, two to six inputs; those that have a flip not far away."""
    for number in range(10_000):
        rng = np.random.default_rng([23, number])
        hidden = int(rng.integers(1, 4))
        widths = [int(rng.integers(2, 7)), *rng.integers(3, 21 // hidden, hidden), int(rng.integers(2, 5))]
        W = [rng.standard_normal(pair) * np.sqrt(2 / pair[0]) for pair in pairwise(widths)]
        b = [0.5 * rng.standard_normal(width) for width in widths[1:]]
        net, x = fo.DenseNetwork(W, b, fo.ReLU()), rng.standard_normal(widths[0])
        around = x + 10 * rng.standard_normal((200, len(x)))
        if (net.predict(around) != net.predict(x)).any():
            yield number, net, x


def _spirals() -> Iterator[Case]:
    for number, x in enumerate(points(1000, seed=1)[0]):
        yield number, spirals("relu"), x


def _loans() -> Iterator[Case]:
    """Applications for loans in units of their standard deviation, and a network 15-12-8-2 that is trained on them."""
    import torch

    X, fresh = applications(4000, 0), applications(1000, 1)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    torch.manual_seed(0)
    linear = [torch.nn.Linear(*pair, dtype=torch.float64) for pair in pairwise((15, 12, 8, 2))]
    module = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
    inputs, labels = torch.as_tensor((X - centre) / spread), torch.as_tensor(paid_back(X, 2))
    optimiser = torch.optim.Adam(module.parameters(), 0.01)
    for _ in range(300):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(inputs), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    W, b = [layer.weight.detach().numpy().T for layer in linear], [layer.bias.detach().numpy() for layer in linear]
    net = fo.DenseNetwork(W, b, fo.ReLU())
    for number, x in enumerate((fresh - centre) / spread):
        yield number, net, x


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "images": _images,
    "random": _random,
    "spirals": _spirals,
    "loans": _loans,
}
