"""The nearest of all classes by the batch solver and by attack libraries: how close, how fast?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from benchmarks import distances
from benchmarks.batch_data import CLOSER, Data, Measured, compared, data, timed
from flipopt.common.checks import Array
from flipopt.flips.many import closest_flip_points
from flipopt.networks import DenseNetwork
from flipopt.results import FlipTable

if TYPE_CHECKING:
    from benchmarks.peers import Peer

STARTS = 4
TURNS = 3
TIMED = 250
"""Images that times are measured with."""


def peers(name: str, at_once: int) -> Callable[..., Measured]:
    """The nearest of all classes against attack libraries, on the same images.

    Distances are those of all images. Times are those of the first TIMED ones for everybody, one after the other.
    """

    def measure(out: Path, images: int, pairs: int, folder: str, console: Console) -> Measured:
        here = data(name, folder)
        X = here.X[: min(images, at_once)].astype(np.float64)
        own = partial(closest_flip_points, here.network)
        more = partial(own, starts=STARTS)
        own(X[:2])  # compiles
        mine, best = (_distances(solve(X)) for solve in (own, more))
        found: Measured = [("images", "number", float(len(X)))]
        for who, distance, solve in (("flipopt", mine, own), (f"flipopt, {STARTS} starts", best, more)):
            found += compared(who, distance, mine, timed(partial(solve, X[:TIMED])).seconds / len(X[:TIMED]))
        for peer, distance, seconds in attacked(out.with_name(f"{out.stem}_peers.json"), X, here, console):
            found += compared(peer, distance, mine, seconds)
            found.append((peer, "closer than flipopt's starts", float((distance < best * (1 - CLOSER)).mean())))
        return found

    return measure


def _distances(table: FlipTable) -> Array:
    """Infinite where there is no success, (rows,)."""
    return np.where(table.success, table.distance, np.inf)


def attacked(out: Path, X: Array, here: Data, console: Console) -> Iterator[tuple[str, Array, float]]:
    """Every peer with its distances (images,) and seconds an image.

    Distances are kept in ``out``, by network and images, and by peer.
    """
    from benchmarks.peers import PEERS, closest

    classes, key = np.asarray(here.network.predict(X)), _fingerprint(here.network, X)
    for peer in PEERS.values():
        if here.network.n_classes == 2 and peer.name.endswith("each-class"):
            continue  # there is only one other class
        console.print(f"  {peer.name}")
        with distances.keeping(out, console) as add:
            if not distances.known(out, key, peer.name)[0]:
                add(distances.rows_of(key, peer.name, closest(peer, here.network, X, classes)[0]))
        yield peer.name, np.array(distances.known(out, key, peer.name)[0]), _seconds(peer, here.network, X[:TIMED])


def _seconds(peer: Peer, network: DenseNetwork, X: Array) -> float:
    """That an attack takes, an image."""
    from benchmarks.peers import closest

    return closest(peer, network, X, np.asarray(network.predict(X)))[2] / len(X)


def _fingerprint(network: DenseNetwork, X: Array) -> str:
    """Of a network's parameters and its inputs."""
    digest = hashlib.sha256()
    for array in (*network.weights, *network.biases, X):
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


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
