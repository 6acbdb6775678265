"""``flipopt demo``: flip points of shipped images."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from flipopt.cli.options import out_option
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.progress import tracked
from flipopt.features.shipped import load_shipped
from flipopt.flips.one import closest_flip_point
from flipopt.report import draw_flips
from flipopt.results import FlipResult


@click.command()
@click.option("--images", default=4, show_default=True, help="How many of the shipped images.")
@out_option("The picture: image, flip point, difference.", "flips.png")
def demo(images: int, out: Path) -> None:
    """Find the nearest flip points of shipped MNIST images with the shipped network, check them and draw them."""
    console = Console()
    shipped = load_shipped("mnist-net1")
    if not 1 <= images <= len(shipped.X):
        raise InputError(f"--images: expected 1 to {len(shipped.X)}, found {images}")
    network, X = shipped.network, shipped.X[:images]
    flips = [closest_flip_point(network, x) for x in tracked(X, "nearest of all classes", console)]
    show_flips(console, shipped.classes, network.probabilities(X), shipped.labels[:images], flips)
    draw_flips(out, shipped.images[:images], shipped.features, flips, shipped.classes)
    console.print(f"picture in {out}; `flipopt info mnist-net1` shows what the network is made of")


def show_flips(console: Console, classes: tuple[str, ...], Z: Array, labels: Array, flips: list[FlipResult]) -> None:
    """One line a flip point, with what the check found."""
    table = Table(title="Nearest flip points, checked independently of the solver")
    for heading in ("class", "flips to", "distance", "softmax", "status", "check"):
        table.add_column(heading, no_wrap=True)
    for flip, z, label in zip(flips, Z, labels, strict=True):
        i, j = flip.classes[:2]
        source = classes[i] if i == label else f"{classes[i]} (is {classes[label]})"
        check = f"gap {flip.check.boundary_gap:.0e}, KKT {flip.check.kkt_residual:.0e}" if flip.check else "-"
        table.add_row(source, classes[j], f"{flip.distance:.4f}", f"{z.max():.4f}", flip.status.name, check)
    console.print(table)
