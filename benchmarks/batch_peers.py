"""The nearest of all classes by the batch solver and by attack libraries: how close, how fast?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.batch_data import CLOSER, Data, Measured, compared, data, timed
from flipopt.checks import Array
from flipopt.many import closest_flip_points

STARTS = 4
TURNS = 3


def peers(name: str, at_once: int) -> Callable[..., Measured]:
    """The nearest of all classes against attack libraries, on the same images."""

    def measure(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
        here = data(name, folder)
        X = here.X[: min(images, at_once)].astype(np.float64)
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
        for peer, (distance, seconds) in attacked(out.with_name(f"{out.stem}_peers.json"), name, X, here, console):
            found += compared(peer, distance, mine, seconds)
            found.append((peer, "closer than flipopt's starts", float((distance < best * (1 - CLOSER)).mean())))
        return found

    return measure


def attacked(out: Path, name: str, X: Array, here: Data, console: Console) -> Iterator[tuple[str, tuple[Array, float]]]:
    """Every peer with its distances (images,) and seconds. They are kept in ``out``, by network and peer: attacks take
    half an hour, and do not change when the batch solver does."""
    from benchmarks.peers import PEERS, closest

    kept: dict[str, dict[str, Any]] = json.loads(out.read_text()) if out.exists() else {}
    known = kept.setdefault(name, {})
    classes = np.asarray(here.network.predict(X))
    for peer in PEERS.values():
        if len(known.get(peer.name, {}).get("distances", ())) != len(X):
            console.print(f"  {peer.name}")
            distances, _, seconds = closest(peer, here.network, X, classes)
            known[peer.name] = {"seconds": round(seconds, 3), "distances": [float(f"{d:.9g}") for d in distances]}
            out.write_text(json.dumps(kept).replace(']}, "', ']},\n"') + "\n")
        yield peer.name, (np.array(known[peer.name]["distances"]), known[peer.name]["seconds"])


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
