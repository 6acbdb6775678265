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
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console

from benchmarks.batch import figures, measure_missing
from benchmarks.batch_data import CLOSER, Measured, timed
from benchmarks.batch_report import Sheet, show, write_markdown
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.files import read_npz
from flipopt.common.writing import atomic_path
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


@dataclass(frozen=True)
class Kept:
    """Distances and times of attacks in a file (.json), by network and by attack, as many images as have been done."""

    path: Path
    name: str

    def read(self, attack: str) -> tuple[list[float], float]:
        """Distances, one an image, and seconds of CPU in total."""
        found = self._all().get(self._key, {}).get(attack, {"distances": [], "seconds": 0.0})
        return found["distances"], found["seconds"]

    def write(self, attack: str, distances: list[float], seconds: float) -> None:
        kept = self._all()
        kept.setdefault(self._key, {})[attack] = {"seconds": round(seconds, 3), "distances": distances}
        with atomic_path(self.path) as temporary:
            temporary.write_text(json.dumps(kept).replace("}, ", "},\n") + "\n")

    def _all(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    @property
    def _key(self) -> str:
        """Another network of the same name is another one."""
        return f"{self.name} {hashlib.sha256((FOLDER / f'{self.name}.onnx').read_bytes()).hexdigest()[:16]}"


def attacked(kept: Kept, attack: str, images: int) -> tuple[Array, float]:
    """Distances (images,) of an attack, inf where it failed, and seconds of CPU an image; what is kept is not run."""
    from benchmarks.peers import PEERS, PIXEL_CW, closest, missing

    distances, seconds = kept.read(attack)
    if len(distances) < images:
        net, X = network(kept.name), inputs(kept.name, images)
        if missing(attack):
            raise InputError(missing(attack))
        classes, peer = np.asarray(net.predict(X)), PIXEL_CW if attack == "cw" else PEERS[attack]
        assert callable(peer.attack)  # it is imported and compiled now, not by the clock
        while len(distances) < len(X):
            rows = slice(len(distances), len(distances) + AT_ONCE)
            started = time.process_time()
            found = closest(peer, net, X[rows], classes[rows], BOX)[0]
            seconds += time.process_time() - started
            distances = [*distances, *(float(f"{d:.9g}") for d in found)]
            kept.write(attack, distances, seconds)
    return np.array(distances[:images]), seconds / len(distances)


def own(net: TorchNetwork, X: Array) -> FlipTable:
    """Ours, as a user calls it."""
    return closest_flip_points(net, X, bounds=BOX)


def against_attacks(name: str) -> Callable[..., Measured]:
    """Ours and every attack on the same images."""

    def measure(out: Path, images: int, attacks: Sequence[str], console: Console) -> Measured:
        kept, theirs = Kept(out.with_name(f"{out.stem}_peers.json"), name), {}
        for attack in attacks:
            console.print(f"  {attack}")
            theirs[attack] = attacked(kept, attack, images)
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
        for attack, (distances, each) in theirs.items():
            found += [*compared(attack, distances, mine), (attack, "ms of CPU an image", 1e3 * each)]
        nearest = np.min([distances for distances, _ in theirs.values()], axis=0, initial=np.inf)
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
