"""Proofs for wider and deeper ReLU networks: how many within a minute of a core, and how the gap closes with time.

The networks are those of ``python -m models train mnist-2x100`` and the like, in models/networks; the images are the
first test images. A row is a network and an image: the bounds on the distance, the batch solver's distance, nodes, core
seconds, and the gap at some times. Rows are kept in a folder as they come, and a run that was stopped goes on.
"""

from __future__ import annotations

import csv
import time
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path

import numpy as np
from rich.console import Console

import flipopt as fo
from benchmarks.networks import FOLDER
from benchmarks.paths import show, write_markdown
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.checks import Array
from flipopt.common.files import read_npz
from flipopt.common.progress import tracked
from flipopt.common.writing import atomic_path
from flipopt.runs.threads import one_blas_thread

NETWORKS = {"mnist-2x100": "2 x 100", "mnist-3x100": "3 x 100", "mnist-4x50": "4 x 50", "mnist-2x200": "2 x 200"}
SECONDS = 60.0
"""Time limit of an image, of a core."""
TIMES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
"""Core seconds at which the gap is kept."""
GAPS = tuple(f"gap_{seconds:g}" for seconds in TIMES)
REAL = ("lower", "upper", "batch", "seconds", *GAPS)
COLUMNS = ("network", "row", "class", "other", "lower", "upper", "batch", "nodes", "seconds", "proved", *GAPS)
DOWN, UP = (Context(prec=8, rounding=how) for how in (ROUND_FLOOR, ROUND_CEILING))
SHARES = (0.5, 0.9, 0.99)
"""Of the images, whose gaps the picture has."""


def run(out: Path, images: int, work: Path, seconds: float, console: Console) -> None:
    """Prove what is not in ``work`` yet; then write ``out`` (.csv), a summary (.md) and a picture (.png) beside it."""
    work.mkdir(parents=True, exist_ok=True)
    measure(work / "rows.csv", images, seconds, console)
    finish(work / "rows.csv", out, images, console)


def measure(path: Path, images: int, seconds: float, console: Console) -> None:
    """The rows that the file lacks, image by image, so that what there is of it says something of every network."""
    networks = {name: fo.load_network(FOLDER / f"{name}.onnx") for name in NETWORKS}
    X = {name: sample(name)[:images] for name in NETWORKS}
    flips = {
        name: fo.closest_flip_points(network, X[name], run=path.parent / f"{name}-{images}.flips")
        for name, network in networks.items()
    }
    with keeping(path, COLUMNS, console) as add, one_blas_thread():
        known = {(row["network"], row["row"]) for row in read_rows(path, real=REAL)}
        lacking = [(name, k) for k in range(images) for name in NETWORKS if (name, str(k)) not in known]
        if lacking:
            name = lacking[0][0]
            fo.proofs.prove(networks[name], X[name][0], flip=flips[name].x[0], seconds=0)  # compiles
        for name, k in tracked(lacking, "proofs", console):
            table = flips[name]
            add([of_image(name, k, networks[name], X[name][k], table.x[k], table.distance[k], seconds)])


def sample(name: str) -> Array:
    """The first test images as rows of pixels in [0, 1]."""
    images = read_npz(FOLDER / f"{name}.sample.npz", required=("images",))["images"]
    return np.asarray(images.reshape(len(images), -1) / 255)


def of_image(name: str, k: int, network: object, x: Array, flip: Array, batch: float, seconds: float) -> Row:
    """The row of an image. The bounds are rounded outwards."""
    started = time.thread_time()
    effort = fo.proofs.Effort(core_seconds=True)
    proof = fo.proofs.prove(network, x, flip=flip, seconds=seconds, effort=effort)
    spent = time.thread_time() - started
    row: Row = {
        "network": name,
        "row": k,
        "class": proof.classes[0],
        "other": proof.classes[1],
        "lower": float(DOWN.create_decimal_from_float(proof.lower)),
        "upper": float(UP.create_decimal_from_float(proof.upper)),
        "batch": float(f"{batch:.8g}"),
        "nodes": proof.nodes,
        "seconds": float(f"{spent:.3g}"),
        "proved": int(proof.proved),
    }
    return row | {column: float(f"{gap:.3g}") for column, gap in zip(GAPS, gaps_at(proof.history), strict=True)}


def gaps_at(history: Array) -> Array:
    """(upper - lower) / upper at the times, (times,), of a history (k, 3); 1 before its first bounds."""
    place = np.searchsorted(history[:, 0], TIMES, side="right") - 1
    lower, upper = history[np.maximum(place, 0), 1], history[np.maximum(place, 0), 2]
    return np.where(place >= 0, (upper - lower) / upper, 1.0)


def finish(rows_path: Path, out: Path, images: int, console: Console) -> None:
    """The rows in order and without what is the same in all of them, the figures, and the picture."""
    rows = [row for row in read_rows(rows_path, real=REAL) if int(row["row"]) < images]
    order = list(NETWORKS)
    rows.sort(key=lambda row: (order.index(str(row["network"])), int(row["row"])))
    with atomic_path(out) as temporary, temporary.open("w", newline="") as file:
        lines = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        lines.writeheader()
        lines.writerows(rows)
    table = [figure for name in NETWORKS for figure in figures(name, [row for row in rows if row["network"] == name])]
    show("networks", table, console)
    write_markdown(out.with_suffix(".md"), table)
    draw(rows, out.with_suffix(".png"))


def figures(name: str, rows: list[Row]) -> list[Row]:
    """The summary of a network."""
    if not rows:
        return []
    lower, upper, batch, seconds = (column(rows, which) for which in ("lower", "upper", "batch", "seconds"))
    proved = column(rows, "proved") > 0
    found = {
        "images": len(rows),
        "proved to 1e-6: %": 100 * proved.mean(),
        "largest gap of the others": (1 - lower / upper)[~proved].max(initial=0.0),
        "core seconds, median": np.median(seconds),
        "core seconds, 90%": np.quantile(seconds, 0.9),
        "core seconds, largest": seconds.max(),
        "nodes, median": np.median(column(rows, "nodes")),
        "flips of the batch solver that are too far by 1e-6 or more": (~(batch <= upper * (1 + 1e-6))).sum(),
        "the largest excess": np.where(np.isfinite(batch), batch / upper - 1, np.inf).max(),
    }
    what = NETWORKS[name]
    return [
        {"part": "networks", "what": what, "figure": key, "value": float(f"{value:.6g}")}
        for key, value in found.items()
    ]


def column(rows: list[Row], name: str) -> Array:
    """Its numbers, (rows,)."""
    return np.array([float(row[name]) for row in rows])


def draw(rows: list[Row], path: Path) -> None:
    """The gap against time: of the median image, and of those with which nine of ten, and all but one of a hundred,
    are done."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(NETWORKS), figsize=(11, 3.4), sharey=True, layout="constrained")
    for axis, (name, label) in zip(axes, NETWORKS.items(), strict=True):
        own = [row for row in rows if row["network"] == name]
        gaps = np.array([[float(row[gap]) for gap in GAPS] for row in own]).reshape(-1, len(GAPS))
        for share, colour in zip(SHARES, ("#2e6da4", "#c06c2b", "#7f8c8d"), strict=True):
            if len(gaps):
                curve = np.quantile(gaps, share, axis=0, method="higher")
                axis.plot(TIMES, np.maximum(curve, 1e-6), color=colour, label=f"{share:.0%} of the images are below")
        axis.set(title=label, xscale="log", yscale="log", ylim=(0.8e-6, 1.2), xlabel="core seconds")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("gap: (upper - lower) / upper")
    axes[0].legend(fontsize=7, loc="lower left")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")
    plt.close(figure)
