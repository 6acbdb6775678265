"""The closest flip of every MNIST test image, proved, for the shipped ReLU network, and a robustness curve.

Branch and bound to a gap of 1e-6, from the batch solver's flips. What is finished is kept in a folder, so a run that
was stopped goes on. A row of the file is an image: the class, the class on the other side of the nearest flip known,
the bounds on its distance (rounded outwards), the batch solver's distance, the bound by linear relaxations alone,
nodes, seconds of the core that it had, and whether the bounds agree.
"""

from __future__ import annotations

import csv
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import flipopt as fo
from benchmarks.machine import facts
from benchmarks.paths import show, write_markdown
from benchmarks.rows import Row
from data_prep.datasets import load_dataset
from data_prep.sources import source
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.common.writing import atomic_path
from flipopt.runs.processes import Processes
from flipopt.runs.threads import one_blas_thread

SECONDS = 60.0
"""Of a core, the time limit of an image."""
BLOCK = 500
"""Images whose relaxations are made at once."""
DOWN, UP, NEAREST = (Context(prec=8, rounding=how) for how in (ROUND_FLOOR, ROUND_CEILING, ROUND_HALF_EVEN))
FEW_DOWN, FEW = Context(prec=4, rounding=ROUND_FLOOR), Context(prec=3)
QUANTILES = {"least": 0.0, "1%": 0.01, "10%": 0.1, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9, "99%": 0.99}
LENGTHS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
"""At which the curve is in the tables."""
MISSED = (1e-6, 1e-3)
Columns = dict[str, Array]


def run(out: Path, images: int, work: Path, processes: int, console: Console) -> None:
    """Prove what is not in ``work`` yet, and write ``out`` (.csv), a summary (.md) and a picture (.png) beside it."""
    network = fo.load_shipped("mnist-fcn").network
    columns = measured(network, test_images(console)[:images], work, processes, console)
    write_rows(out, columns)
    rows = figures(read_columns(out))
    for part in dict.fromkeys(str(row["part"]) for row in rows):
        show(part, [row for row in rows if row["part"] == part], console)
    write_markdown(out.with_suffix(".md"), rows)
    with out.with_suffix(".md").open("a") as file:
        file.write(
            "\n" + ", ".join(f"{name} {value}" for name, value in facts().items()) + f"; processes {processes}\n"
        )
    draw(read_columns(out), out.with_suffix(".png"))


def test_images(console: Console) -> Array:
    """Pixels in [0, 1], (images, 784): all test images, or, where the data set is not here, the shipped ones."""
    if source("mnist").find() is None:
        console.print("MNIST is not on this machine (python -m data_prep): the 200 images that ship with the network")
        return fo.load_shipped("mnist-fcn").X
    images = load_dataset("mnist").test.images
    return np.asarray(images.reshape(len(images), -1) / 255.0)


def measured(network: fo.DenseNetwork, X: Array, work: Path, processes: int, console: Console) -> Columns:
    """The columns of the file, (images,) each."""
    work.mkdir(parents=True, exist_ok=True)
    flips = fo.closest_flip_points(network, X, progress=True, run=work / "flips")
    fo.proofs.prove(network, X[0], flip=flips.x[0])  # compiles
    proofs = fo.proofs.prove_many(
        network,
        X,
        flips,
        seconds=SECONDS,
        effort=fo.proofs.Effort(core_seconds=True),
        progress=True,
        run=work / "proofs",
        executor=Processes(processes),
    )
    blocks = [slice(first, first + BLOCK) for first in range(0, len(X), BLOCK)]
    with one_blas_thread():
        relaxed = [fo.bounds.lower(network, X[block]) for block in tracked(blocks, "relaxations", console)]
    return {
        "row": proofs.row,
        "class": proofs.classes[:, 0],
        "other": proofs.classes[:, 1],
        "lower": proofs.lower,
        "upper": proofs.upper,
        "batch": flips.distance,
        "relaxed": np.concatenate(relaxed),
        "nodes": proofs.nodes,
        "seconds": proofs.seconds,
        "proved": proofs.proved.astype(np.int64),
    }


def write_rows(path: Path, columns: Columns) -> None:
    """A line an image. Lower bounds are rounded down, upper ones up, so what the file says is proved as well."""
    rounding = {"lower": DOWN, "upper": UP, "batch": NEAREST, "relaxed": FEW_DOWN, "seconds": FEW}
    texts = [
        [f"{rounding[name].create_decimal_from_float(float(value)):f}" for value in values]
        if name in rounding
        else [str(int(value)) for value in values]
        for name, values in columns.items()
    ]
    with atomic_path(path) as temporary, temporary.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(columns)
        lines.writerows(zip(*texts, strict=True))


def read_columns(path: Path) -> Columns:
    """What :func:`write_rows` wrote."""
    with path.open(newline="") as file:
        head, *lines = csv.reader(file)
    values = np.array(lines, dtype=np.float64).reshape(len(lines), len(head))
    return dict(zip(head, values.T, strict=True))


def figures(columns: Columns) -> list[Row]:
    """The summary: a row a figure."""
    lower, upper, batch = columns["lower"], columns["upper"], columns["batch"]
    known = np.isfinite(upper)
    excess = np.where(np.isfinite(batch), batch, np.inf)[known] / upper[known] - 1
    rows: list[Row] = []

    def add(part: str, what: str, figure: str, value: float) -> None:
        rows.append({"part": part, "what": what, "figure": figure, "value": float(value)})

    add("all images", "mnist-fcn", "images", len(lower))
    add("all images", "mnist-fcn", "proved to 1e-6", columns["proved"].sum())
    add("all images", "mnist-fcn", "largest gap", (1 - lower / upper).max())
    add("all images", "mnist-fcn", "core seconds an image, median", np.median(columns["seconds"]))
    add("all images", "mnist-fcn", "core seconds, 99%", np.quantile(columns["seconds"], 0.99))
    add("all images", "mnist-fcn", "core seconds, largest", columns["seconds"].max())
    add("all images", "mnist-fcn", "core minutes in all", columns["seconds"].sum() / 60)
    add("all images", "mnist-fcn", "nodes, median", np.median(columns["nodes"]))
    add("all images", "mnist-fcn", "nodes, largest", columns["nodes"].max())
    for much in MISSED:
        add("batch solver", "mnist-fcn", f"flips too far by more than {much:g}", (excess > much).sum())
    add("batch solver", "mnist-fcn", "largest excess", excess[np.isfinite(excess)].max(initial=-np.inf))
    for name, share in QUANTILES.items():
        add("distance", name, "proved", np.quantile(lower, share))
        add("distance", name, "nearest flip known", np.quantile(upper, share))
        add("distance", name, "by relaxations alone", np.quantile(columns["relaxed"], share))
    for length in LENGTHS:
        add("epsilon", f"{length:g}", "images with no flip within epsilon, proved: %", 100 * (lower > length).mean())
        add("epsilon", f"{length:g}", "with no flip known: %", 100 * (upper > length).mean())
        add(
            "epsilon",
            f"{length:g}",
            "proved by relaxations alone: %",
            100 * (np.maximum(columns["relaxed"], 0) > length).mean(),
        )
    return rows


def draw(columns: Columns, path: Path) -> None:
    """The robustness curve: the share of images with no flip within epsilon."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    curves: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("upper", "no nearer flip is known (upper curve)", {"color": "#f0b27a", "lw": 5.0}),
        ("lower", "proved by branch and bound (lower curve)", {"color": "#2e6da4", "lw": 1.6}),
        ("relaxed", "proved by linear relaxations alone", {"color": "#7f8c8d", "lw": 1.4, "ls": "--"}),
    )
    count = len(columns["row"])
    for name, label, how in curves:
        lengths = np.sort(columns[name])
        axis.step(np.append(0.0, lengths), 100 * np.append(1.0, 1 - np.arange(1, count + 1) / count), where="post",
                  label=label, **how)  # fmt: skip
    middle = float(np.median(columns["lower"]))
    axis.plot([0, middle, middle], [50, 50, 0], color="0.4", lw=0.8, ls=":")
    axis.annotate(f"half of the images: {middle:.2f}", (middle, 50), xytext=(8, 2), textcoords="offset points")
    axis.set(
        xlabel="epsilon: Euclidean length of the change of an image\n(1 is what turns one pixel from black to white)",
        ylabel="share of images, %",
        title=f"How many of {count:,} MNIST test images keep their class\nunder every change up to epsilon?",
        xlim=(0, float(np.max(columns["upper"][np.isfinite(columns["upper"])])) * 1.02),
        ylim=(0, 101),
    )
    axis.grid(alpha=0.3)
    axis.legend(loc="upper right")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
    plt.close(figure)
