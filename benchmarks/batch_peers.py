"""The nearest of all classes by the batch solver and by attack libraries: how close, how fast?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.batch_data import CLOSER, Measured, compared, data, timed
from flipopt.many import closest_flip_points


def peers(name: str, at_once: int) -> Callable[..., Measured]:
    """The nearest of all classes against attack libraries, on the same images."""

    def measure(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
        from benchmarks.peers import PEERS, closest

        here = data(name, folder)
        X = here.X[: min(images, at_once)].astype(np.float64)
        classes = np.asarray(here.network.predict(X))
        closest_flip_points(here.network, X[:2])  # compiles
        ours = timed(lambda: closest_flip_points(here.network, X))
        mine = np.where(ours.value.success, ours.value.distance, np.inf)
        more = timed(lambda: closest_flip_points(here.network, X, starts=STARTS))
        best = np.where(more.value.success, more.value.distance, np.inf)
        found: Measured = [("images", "number", float(len(X)))]
        for who, distance, seconds in (
            ("flipopt", mine, ours.seconds),
            (f"flipopt, {STARTS} starts", best, more.seconds),
        ):
            found += compared(who, distance, mine, seconds)
        for peer in PEERS.values():
            console.print(f"  {peer.name}")
            distance, _, seconds = closest(peer, here.network, X, classes)
            found += compared(peer.name, distance, mine, seconds)
            found.append((peer.name, "closer than flipopt's starts", float((distance < best * (1 - CLOSER)).mean())))
        return found

    return measure


STARTS = 4
TURNS = 3


def turns(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
    """Time an image, nearest of all classes, against DDN's with 200 steps: in turns, on a noisy machine."""
    from benchmarks.peers import PEERS, closest

    found: Measured = []
    for name, at_once in (("mnist-net1", 1000), ("mnist-fcn", 1000), *([("cifar-2500", 200)] if folder else [])):
        here = data(name, folder)
        X = here.X[: min(images, at_once)].astype(np.float64)
        classes = np.asarray(here.network.predict(X))
        closest_flip_points(here.network, X[:2])  # compiles
        own = partial(closest_flip_points, here.network, X)
        times = [(timed(own).seconds, closest(PEERS["ddn-200"], here.network, X, classes)[2]) for _ in range(TURNS)]
        for who, seconds in zip(("flipopt", "ddn-200"), np.median(times, axis=0), strict=True):
            found.append((f"{name}, {who}", "ms an image", 1e3 * float(seconds) / len(X)))
    return found
