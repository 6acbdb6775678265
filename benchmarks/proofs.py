"""Proofs of closest flips: how many, how fast, what solvers miss; lower bounds beside them.

- ``images``: the shipped ReLU network of MNIST. Branch and bound from the batch solver's flips, one image at a time.
- ``pixels``: the same within the range of pixels, 0 to 1, which nearly every change of an image meets.
- ``misses``: the batch solver's flips and time on MNIST training images, of which there are more, beside proved minima.
- ``checked``: saved proofs of the first images, and what the independent checker takes for them.
- ``soundness``: bounds of small random networks against the enumeration of all linear pieces.
- ``mutants``: saved proofs of images and small networks, which are to be accepted, and mutants of them, which are not.
- ``bounds``: lower bounds over distances, by Lipschitz bounds and by the best of all, on three shipped networks.
- ``evidence``: what strong-minimum tests and many starts say of flips that are too far, and of the best ones known.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console

import flipopt as fo
from benchmarks.paths import show, write_markdown
from benchmarks.proofs_evidence import evidence
from benchmarks.proofs_soundness import mutants, soundness
from benchmarks.rows import keeping, read_rows
from data_prep.datasets import load_dataset
from data_prep.sources import source
from flipopt.common.checks import Array
from flipopt.common.progress import tracked
from flipopt.runs.threads import one_blas_thread

COLUMNS = ("part", "what", "figure", "value")
CHECKED, PIXELS = 5, 10
"""Images for what takes long."""
SECONDS = 60.0
"""Time limit of an image for branch and bound, of a core."""
FEW = 20
"""Images of the deep networks, whose lower bounds take half a second each."""
TIMES = 5
"""As many images as elsewhere where misses are counted, which are few."""
MISSED = 1e-3
"""By which a flip is farther than the proved minimum if it counts as a miss."""
Figures = Iterator[tuple[str, str, float]]


def run(out: Path, parts: list[str], images: int, console: Console) -> None:
    """Measure the parts; a row a figure to ``out`` (.csv)."""
    with keeping(out, COLUMNS, console) as add:
        for part in tracked(parts, "parts", console):
            with one_blas_thread():
                rows = [
                    {"part": part, "what": what, "figure": figure, "value": float(f"{value:.6g}")}
                    for what, figure, value in PARTS[part](images)
                ]
            add(rows)
            show(part, rows, console)
    write_markdown(out.with_suffix(".md"), read_rows(out, real=("value",)))


def _images(images: int) -> Figures:
    shipped = fo.load_shipped("mnist-fcn")
    yield from _proofs("mnist-fcn", shipped.network, shipped.X[:images])


def _pixels(images: int) -> Figures:
    shipped = fo.load_shipped("mnist-fcn")
    yield from _proofs("mnist-fcn, pixels in [0, 1]", shipped.network, shipped.X[: min(images, PIXELS)], (0, 1))


def _misses(images: int) -> Figures:
    net, X = fo.load_shipped("mnist-fcn").network, _training_images(images * TIMES)
    fo.closest_flip_points(net, X[:2])  # compiles
    used = time.process_time()
    flips = fo.closest_flip_points(net, X)
    used = time.process_time() - used
    proofs = fo.proofs.prove_many(net, X, flips, seconds=SECONDS)
    excess = flips.distance / proofs.upper - 1
    yield "mnist-fcn", "images", len(X)
    yield "mnist-fcn", "proved to 1e-6", float(proofs.proved.sum())
    yield "mnist-fcn", "flips too far by more than 0.1%", float((excess > MISSED).sum())
    yield "mnist-fcn", "the largest excess", float(excess.max())
    yield "mnist-fcn", "core ms an image for the flips", used / len(X) * 1e3


def _training_images(images: int) -> Array:
    """Pixels in [0, 1], (images, 784); the shipped ones where the data set is not here."""
    if source("mnist").find() is None:
        return fo.load_shipped("mnist-fcn").X[:images]
    pixels = load_dataset("mnist").train.images[:images]
    return np.asarray(pixels.reshape(len(pixels), -1) / 255.0)


def _proofs(what: str, net: fo.DenseNetwork, X: Array, bounds: tuple[float, float] | None = None) -> Figures:
    flips, effort = fo.closest_flip_points(net, X, bounds=bounds), fo.proofs.Effort(core_seconds=True)
    fo.proofs.prove(net, X[0], flip=flips.x[0], bounds=bounds, seconds=0.0)  # compiles
    proofs, spent = [], []
    for x, flip in zip(X, flips.x, strict=True):
        used = time.process_time()
        proofs.append(fo.proofs.prove(net, x, flip=flip, seconds=SECONDS, bounds=bounds, effort=effort))
        spent.append(time.process_time() - used)
    upper = np.array([proof.upper for proof in proofs])
    root = np.array([proof.history[0, 1] for proof in proofs])
    yield what, "images", len(X)
    yield what, "proved to 1e-6", float(sum(proof.proved for proof in proofs))
    yield what, "largest gap", float(max(proof.gap for proof in proofs))
    yield what, "core seconds, median", float(np.median(spent))
    yield what, "core seconds, largest", float(np.max(spent))
    yield what, "nodes, median", float(np.median([proof.nodes for proof in proofs]))
    yield what, "nodes, largest", float(max(proof.nodes for proof in proofs))
    yield what, "bound at the root over the distance, median", float(np.median(root / upper))
    excess = flips.distance / upper - 1
    yield what, "flips of the batch solver that are too far by 1e-6 or more", float((excess > 1e-6).sum())
    yield what, "the largest excess", float(excess.max())


def _checked(images: int) -> Figures:
    shipped = fo.load_shipped("mnist-fcn")
    accepted, spent, refused = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.npz"
        for x in shipped.X[:CHECKED]:
            proof = fo.proofs.prove(shipped.network, x)
            proof.save(path)
            used = time.process_time()
            accepted += fo.proofs.check(shipped.network, path).accepted
            spent.append(time.process_time() - used)
            with np.load(path) as file:
                changed = dict(file)
            np.savez(path, **(changed | {"lower": changed["lower"] * (1 + 1e-5)}))
            refused += not fo.proofs.check(shipped.network, path).accepted
    yield "mnist-fcn", "saved proofs", float(CHECKED)
    yield "mnist-fcn", "accepted", float(accepted)
    yield "mnist-fcn", "refused when they claim 1e-5 more", float(refused)
    yield "mnist-fcn", "core seconds of a check, median", float(np.median(spent))


def _bounds(images: int) -> Figures:
    for name, rows in (("mnist-fcn", images), ("mnist-net1", FEW), ("cifar-200", FEW)):
        shipped = fo.load_shipped(name)
        X = shipped.X[:rows]
        distance = fo.closest_flip_points(shipped.network, X).distance
        for method in ("lipschitz", "best"):
            used = time.process_time()
            proved = fo.bounds.lower(shipped.network, X, method=method)
            used = time.process_time() - used
            yield f"{name}, {method}", "images", len(X)
            yield f"{name}, {method}", "lower bound over distance, median", float(np.median(proved / distance))
            yield f"{name}, {method}", "core ms an image", used / len(X) * 1e3


PARTS: dict[str, Callable[[int], Figures]] = {
    "images": _images,
    "pixels": _pixels,
    "misses": _misses,
    "checked": _checked,
    "soundness": soundness,
    "mutants": mutants,
    "bounds": _bounds,
    "evidence": evidence,
}
