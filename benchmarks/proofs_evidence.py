"""What evidence is worth: flips that are known to be too far, and starts beside the best flips known."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import flipopt as fo
from flipopt.common.checks import Array
from flipopt.results import SAME_DISTANCE

FIRST, IMAGES = 20, 12
"""The images, which are others than those on which the steps of descents were chosen: the first 20."""
STARTS = 50
EXCESS = 0.05
"""Of flips that are deliberately too far, relative to the nearest one known."""
HALVINGS = 50
Figures = Iterator[tuple[str, str, float]]


def evidence(images: int) -> Figures:
    """Of a smooth and of a ReLU network."""
    for name in ("mnist-net1", "mnist-fcn"):
        shipped = fo.load_shipped(name)
        net, X = shipped.network, shipped.X[FIRST : FIRST + min(images, IMAGES)]
        every = fo.closest_flip_points(net, X, "all")
        order = np.lexsort((every.distance, every.row)).reshape(len(X), -1)
        near, second = every[order[:, 0]], every[order[:, 1]]
        far = np.stack([too_far(net, x, flip, row) for row, (x, flip) in enumerate(zip(X, near.x, strict=True))])
        yield from _tested(f"{name}, the nearest known", net, X, near.x, near.distance)
        yield from _tested(f"{name}, 5% farther on the boundary", net, X, far, near.distance)
        yield from _tested(f"{name}, the nearest of the second class", net, X, second.x, near.distance)
        yield from _started(f"{name}, {STARTS} starts", net, X, None, near.distance)
        others = (near.classes[:, 0] + 1) % net.n_classes
        single = fo.closest_flip_points(net, X, others)
        yield from _started(f"{name}, {STARTS} starts, one class", net, X, others, single.distance)


def too_far(net: fo.DenseNetwork, x: Array, flip: Array, seed: int) -> Array:
    """A point on the boundary farther than the flip by EXCESS: the way there is turned aside until it is as far."""
    i, distance = int(net.predict(x)), float(np.linalg.norm(flip - x))
    straight = (flip - x) / distance
    aside = np.random.default_rng(seed).standard_normal(len(x))
    aside -= (aside @ straight) * straight
    low, high = 0.0, 10.0
    for _ in range(HALVINGS):
        turn = (low + high) / 2
        way = straight + turn * aside / np.linalg.norm(aside)
        point = _crossing(net, x, (1 + 2 * EXCESS) * distance * way / np.linalg.norm(way), i)
        near = np.linalg.norm(point - x) < (1 + EXCESS) * distance
        low, high = (turn, high) if near else (low, turn)
        if abs(np.linalg.norm(point - x) / distance - 1 - EXCESS) < 1e-6:
            break
    return point


def _crossing(net: fo.DenseNetwork, x: Array, change: Array, i: int) -> Array:
    """Where the class changes on the way from x; the end if it does not."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if int(net.predict(x + middle * change)) == i else (low, middle)
    return np.asarray(x + high * change)


def _tested(what: str, net: fo.DenseNetwork, X: Array, points: Array, known: Array) -> Figures:
    fo.proofs.strong_minimum(net, X[0], points[0], samples=100)  # compiles
    tests, spent = [], []
    for x, flip in zip(X, points, strict=True):
        used = time.process_time()
        tests.append(fo.proofs.strong_minimum(net, x, flip))
        spent.append(time.process_time() - used)
    nearest = np.array([np.inf if test.nearer is None else test.nearer.distance for test in tests])
    yield what, "images", len(X)
    yield what, "too far by, median", float(np.median([test.distance for test in tests] / known - 1))
    yield what, "refuted", float(sum(test.refuted for test in tests))
    for figure, name in (
        ("uniform points", "flips_found"),
        ("likely points", "likely_found"),
        ("descents", "descents_found"),
    ):
        yield what, f"by {figure}", float(sum(getattr(test, name) > 0 for test in tests))
    yield what, "ending at the nearest known", float((nearest <= known * (1 + SAME_DISTANCE)).sum())
    yield what, "nearer than the nearest known", float((nearest < known * (1 - SAME_DISTANCE)).sum())
    yield what, "flat within, over the distance", float(np.median([t.flat_within / t.distance for t in tests]))
    yield what, "core seconds, median", float(np.median(spent))


def _started(what: str, net: fo.DenseNetwork, X: Array, targets: Array | None, known: Array) -> Figures:
    runs, spent, there = [], [], np.flatnonzero(np.isfinite(known))  # a flip to a single class may not be known
    for k in there:
        x, used = X[k], time.process_time()
        target = None if targets is None else int(targets[k])
        runs.append(fo.proofs.starts(net, x, starts=STARTS, target=target, radius=2 * known[k]))
        spent.append(time.process_time() - used)
    nearest, unseen, known = np.array([run.distance for run in runs]), [run.unseen_share for run in runs], known[there]
    yield what, "images", len(there)
    yield what, "ending at the nearest known", float((np.abs(nearest / known - 1) <= SAME_DISTANCE).sum())
    yield what, "nearer", float((nearest < known * (1 - SAME_DISTANCE)).sum())
    yield what, "farther", float((nearest > known * (1 + SAME_DISTANCE)).sum())
    yield what, "starts that agree on the nearest, median", float(np.median([run.agreed for run in runs]))
    yield what, "the least", float(min(run.agreed for run in runs))
    yield what, "different ends, median", float(np.median([len(run.minima) for run in runs]))
    yield what, "the most", float(max(len(run.minima) for run in runs))
    yield what, "expected share of unseen ends, median", float(np.median(unseen))
    yield what, "core seconds, median", float(np.median(spent))
