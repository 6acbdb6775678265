"""The ``flipopt`` command."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from flipopt import __version__, lipschitz
from flipopt.checks import Array, as_rows
from flipopt.errors import FileFormatError, FlipoptError, InputError
from flipopt.files import read_npz, require_file
from flipopt.networks import DenseNetwork, load_network
from flipopt.networks.flow import gradient_flow
from flipopt.shipped import SHIPPED, load_shipped


class _Group(click.Group):
    """Turns flipopt's errors into one line and exit code 1, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FlipoptError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="flipopt")
def main() -> None:
    """How close is an input to the point where a classifier changes its mind?"""


@main.command()
@click.argument("net")
@click.option("--data", type=click.Path(path_type=Path), help="Points, one a row: .npy, or .npz with X or features.")
@click.option("--row", default=0, show_default=True, help="Row of the data at which the gradient flow is measured.")
def info(net: str, data: Path | None, row: int) -> None:
    """Layers, parameters, Lipschitz bounds and gradient flow of NET.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network: mnist-net1, mnist-net2,
    cifar-200. The gradient flow is measured at a row of the data; without data, at a shipped network's own images, or
    at the origin.
    """
    console = Console()
    network = load_shipped(net).network if net in SHIPPED else load_network(net)
    points = _points(net, data, network.n_inputs)
    if not 0 <= row < len(points):
        raise InputError(f"--row: expected 0 to {len(points) - 1}, found {row}")
    show_network(console, network, net)
    show_bounds(console, network, points[row])
    show_flow(console, network, points[row])


@main.command()
def demo() -> None:
    """Classify the shipped MNIST images with the shipped network, and show what the network is made of."""
    console = Console()
    shipped = load_shipped("mnist-net1")
    show_sample(console, shipped.classes, shipped.network, shipped.X, shipped.labels)
    show_network(console, shipped.network, shipped.name)
    show_bounds(console, shipped.network, shipped.X[0])
    show_flow(console, shipped.network, shipped.X[0])


def show_sample(console: Console, classes: tuple[str, ...], net: DenseNetwork, X: Array, labels: Array) -> None:
    """How many of the sample of each class are right, and how sure the network is."""
    predicted, certainty = net.predict(X), net.probabilities(X).max(axis=1)
    table = Table("class", "images", "right", "mean softmax", "mean softmax of mistakes", title="Shipped images")
    for k, name in [*enumerate(classes), (None, "all")]:
        these = labels == k if k is not None else np.ones(len(labels), dtype=bool)
        right = predicted[these] == labels[these]
        wrong = f"{certainty[these][~right].mean():.3f}" if not right.all() else "-"
        table.add_row(name, f"{these.sum()}", f"{right.sum()}", f"{certainty[these].mean():.3f}", wrong)
    console.print(table)


def show_network(console: Console, net: DenseNetwork, name: str) -> None:
    """Layers and parameters."""
    table = Table("layer", "inputs", "neurons", "activation", "parameter", title=f"{name}: {net.dtype} parameters")
    for k, W in enumerate(net.weights, 1):
        activation = net.activations[k - 1] if k < net.n_layers else None
        value = np.asarray(activation.parameter_value) if activation and activation.tunable else None
        shown = "" if value is None or activation is None else f"{activation.parameter} = {_spread(value)}"
        kind = type(activation).__name__ if activation else "output"
        table.add_row(f"{k}", f"{W.shape[0]}", f"{W.shape[1]}", kind, shown)
    console.print(table)
    console.print(f"{net.n_parameters:,} parameters, {net.n_inputs} inputs, {net.n_classes} classes\n")


def show_bounds(console: Console, net: DenseNetwork, x: Array) -> None:
    """Global and local Lipschitz bounds, and the distance they prove."""
    table = Table(
        "norm",
        "logits anywhere",
        "probabilities anywhere",
        "logits at x",
        "no flip within",
        title="Lipschitz bounds (upper), and a proved lower bound on the distance to a flip",
    )
    J = net.jacobian(x.astype(np.float64))
    for norm, label in ((2, "2"), (np.inf, "inf")):
        everywhere = (lipschitz.global_bound(net, norm, outputs) for outputs in ("logits", "probabilities"))
        cells = (*everywhere, float(np.linalg.norm(J, norm)), lipschitz.distance_lower_bound(net, x, norm))
        table.add_row(label, *(f"{value:.3e}" for value in cells))
    console.print(table)


def show_flow(console: Console, net: DenseNetwork, x: Array) -> None:
    """Slopes of every hidden layer, and the gain from there to the logits."""
    z = net.probabilities(x)
    title = f"Gradient flow at x: class {int(z.argmax())}, softmax {z.max():.4f}"
    table = Table("layer", "smallest slope", "median", "largest", "norm of dy/dc", title=title)
    for flow in gradient_flow(net, x):
        cells = (flow.smallest_slope, flow.median_slope, flow.largest_slope, flow.jacobian_norm)
        table.add_row(f"{flow.layer}", *(f"{value:.2e}" for value in cells))
    console.print(table)


def _spread(values: Array) -> str:
    return f"{float(values):.4g}" if values.ndim == 0 else f"{values.min():.4g} to {values.max():.4g}"


def _points(net: str, data: Path | None, n_inputs: int) -> Array:
    """Rows to measure at."""
    if data is None:
        return load_shipped(net).X if net in SHIPPED else np.zeros((1, n_inputs))
    return np.atleast_2d(as_rows(_read_points(data), n_inputs, str(data)))


def _read_points(path: Path) -> Array:
    if path.suffix == ".npz":
        arrays = read_npz(path)
        for name in ("X", "features"):
            if name in arrays:
                return arrays[name]
        raise FileFormatError(f"{path}: expected an array X or features, found {', '.join(arrays) or 'nothing'}")
    if path.suffix != ".npy":
        raise FileFormatError(f"{path}: expected .npy or .npz")
    require_file(path)
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"{path}: not a readable npy file: {error}") from error
