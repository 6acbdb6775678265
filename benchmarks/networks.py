"""Image networks of the kinds in everyday use against attack libraries: how close, how sure, how fast?

A convolutional network with batch norm, ReLU and max-pooling, a residual network, and a vision transformer, as
``python -m models train`` has written them to models/networks. The images are the 200 test images beside each, pixels
stay in [0, 1], and the nearest of all classes other than the predicted one is sought, also where that is wrong. The
stepsize of C&W was chosen on the first ten of them. Attacks' distances and times are kept in a file of their own,
image by image, since they take hours and do not change when flipopt does; their times are those of the processor,
whatever else it had to do. By the clock times are compared only within the parts that take turns.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Console

from benchmarks import distances
from benchmarks.batch import figures, measure_missing
from benchmarks.batch_data import CLOSER, Measured, timed
from benchmarks.batch_report import Sheet, show, write_markdown
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.files import read_npz
from flipopt.flips.many import closest_flip_points
from flipopt.networks import TorchNetwork, load_network
from flipopt.results import FlipTable, Status

FOLDER = Path(__file__).parent.parent / "models" / "networks"
NAMES = ("mnist-cnn", "cifar-resnet8", "mnist-vit")
ATTACKS = ("ddn-200", "ddn-1000", "fab", "fmn", "brendel-bethge", "cw")
IMAGES = 200
BOX = (0.0, 1.0)
AT_ONCE = 50
"""Images that are attacked before what was found is kept, and that turns are timed with."""
TURNS, THREADS = 3, 2
COMPARED = ("median distance", "median of ours / theirs", "ratio, largest", "closer", "farther")
SHEETS = tuple(
    sheet
    for name in NAMES
    for sheet in (
        Sheet(f"{name}, pixels in [0, 1]", name, ("solved", "converged", *COMPARED, "ms of CPU an image")),
        Sheet(f"{name}, in turns: medians of {TURNS}", f"{name}-turns", ("ms an image",)),
    )
)
"""Of ours, solved is at least on the boundary. Of an attack, the ratios are ours / theirs, and closer and farther count
where it is so by more than CLOSER."""


def network(name: str) -> TorchNetwork:
    """A trained network from its ONNX file, in float64."""
    return cast(TorchNetwork, load_network(FOLDER / f"{name}.onnx")).astype(np.float64)


def inputs(name: str, images: int) -> Array:
    """The first images of the network's sample as rows (images, n) in [0, 1], channels first."""
    pixels = read_npz(FOLDER / f"{name}.sample.npz", required=("images",))["images"][:images] / 255
    channels_first = pixels.transpose(0, 3, 1, 2) if pixels.ndim == 4 else pixels
    return np.asarray(channels_first.reshape(len(pixels), -1))


def fingerprint(name: str) -> str:
    """The name, and what tells another network of the same name from it."""
    return f"{name} {hashlib.sha256((FOLDER / f'{name}.onnx').read_bytes()).hexdigest()[:16]}"


def attacked(out: Path, name: str, attack: str, images: int, console: Console) -> tuple[Array, float]:
    """Distances (images,) of an attack, inf where it failed, and seconds of CPU an image; ``out`` (.json) keeps them,
    and what is there is not run."""
    from benchmarks.peers import PEERS, PIXEL_CW, closest, missing

    key = fingerprint(name)
    with distances.keeping(out, console) as add:
        done = len(distances.known(out, key, attack)[0])
        if done < images:
            net, X = network(name), inputs(name, images)
            if missing(attack):
                raise InputError(missing(attack))
            classes, peer = np.asarray(net.predict(X)), PIXEL_CW if attack == "cw" else PEERS[attack]
            assert callable(peer.attack)  # it is imported and compiled now, not by the clock
            for first in range(done, len(X), AT_ONCE):
                rows = slice(first, first + AT_ONCE)
                started = time.process_time()
                found = closest(peer, net, X[rows], classes[rows], BOX)[0]
                add(distances.rows_of(key, attack, found, time.process_time() - started, first))
    every, seconds = distances.known(out, key, attack)
    return np.array(every[:images]), seconds / len(every)


def own(net: TorchNetwork, X: Array) -> FlipTable:
    """Ours, as a user calls it."""
    return closest_flip_points(net, X, bounds=BOX)


def against_attacks(name: str) -> Callable[..., Measured]:
    """Ours and every attack on the same images."""

    def measure(out: Path, images: int, attacks: Sequence[str], console: Console) -> Measured:
        kept, theirs = out.with_name(f"{out.stem}_peers.json"), {}
        for attack in attacks:
            console.print(f"  {attack}")
            theirs[attack] = attacked(kept, name, attack, images, console)
        net, X = network(name), inputs(name, images)
        own(net, X[:2])  # compiles
        started = time.process_time()
        flips = own(net, X)
        seconds = time.process_time() - started
        converged = flips.status == Status.CONVERGED
        there = converged | (flips.status == Status.ON_BOUNDARY)
        mine = np.where(there, flips.distance, np.inf)
        found: Measured = [
            ("flipopt", "solved", float(there.mean())),
            ("flipopt", "converged", float(converged.mean())),
            ("flipopt", "median distance", float(np.median(mine))),
            ("flipopt", "ms of CPU an image", 1e3 * seconds / len(X)),
        ]
        for attack, (distance, each) in theirs.items():
            found += [*compared(attack, distance, mine), (attack, "ms of CPU an image", 1e3 * each)]
        nearest = np.min([distance for distance, _ in theirs.values()], axis=0, initial=np.inf)
        return [*found, *compared("the nearest of all attacks", nearest, mine)] if theirs else found

    return measure


def compared(attack: str, theirs: Array, mine: Array) -> Measured:
    """Distances (images,) of an attack, inf where there is none, against ours."""
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isinf(theirs), 0.0, mine / theirs)
    return [
        (attack, "solved", float(np.isfinite(theirs).mean())),
        (attack, "median distance", float(np.median(theirs))),
        (attack, "median of ours / theirs", float(np.median(ratio))),
        (attack, "ratio, largest", float(ratio.max())),
        (attack, "closer", float((theirs < mine * (1 - CLOSER)).mean())),
        (attack, "farther", float((theirs > mine * (1 + CLOSER)).mean())),
    ]


def turns(name: str) -> Callable[..., Measured]:
    """Time an image, in turns with DDN on a noisy machine, all with the same number of torch's threads."""

    def measure(out: Path, images: int, attacks: Sequence[str], console: Console) -> Measured:
        import torch

        from benchmarks.peers import PEERS, closest

        net, X = network(name), inputs(name, min(images, AT_ONCE))
        classes, threads = np.asarray(net.predict(X)), torch.get_num_threads()
        own(net, X[:2])  # compiles
        rivals = [attack for attack in attacks if attack.startswith("ddn")]
        torch.set_num_threads(THREADS)
        try:
            times = [
                [timed(partial(own, net, X)).seconds, *(closest(PEERS[r], net, X, classes, BOX)[2] for r in rivals)]
                for _ in range(TURNS)
            ]
        finally:
            torch.set_num_threads(threads)
        medians = np.median(times, axis=0)
        return [
            (who, "ms an image", 1e3 * float(seconds) / len(X))
            for who, seconds in zip(("flipopt", *rivals), medians, strict=True)
        ]

    return measure


PARTS: dict[str, Callable[..., Measured]] = {
    **{name: against_attacks(name) for name in NAMES},
    **{f"{name}-turns": turns(name) for name in NAMES},
}


def run(out: Path, parts: Iterable[str], images: int, attacks: Sequence[str], console: Console) -> None:
    """Measure the parts that are not in ``out`` (.csv) yet, and write the tables beside it."""
    measure_missing(out, {part: partial(PARTS[part], out, images, attacks, console) for part in parts}, console)
    known = figures(out)
    show(known, console, SHEETS)
    write_markdown(out.with_suffix(".md"), known, SHEETS)
    console.print(f"figures in {out}, tables for the documentation beside it")
