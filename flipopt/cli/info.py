"""``flipopt info``: what a network is made of."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flipopt.bounds import lipschitz
from flipopt.cli.options import chosen_row, data_option, net_argument
from flipopt.common.checks import Array
from flipopt.common.quoting import plain
from flipopt.features.shipped import SHIPPED, open_network, open_points
from flipopt.networks import DenseNetwork, OnnxNetwork
from flipopt.networks.gradient_flow import gradient_flow


@click.command()
@net_argument
@data_option("Row of the data at which the gradient flow is measured.")
def info(net: str, data: Path | None, row: int) -> None:
    """Layers, parameters, Lipschitz bounds and gradient flow of NET; of a network that is not dense, its operators.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network: mnist-net1, mnist-net2,
    mnist-fcn, cifar-200. The gradient flow is measured at a row of the data; without data, at a shipped network's own
    images, or at the origin.
    """
    console = Console()
    network = open_network(net)
    known = data is not None or net in SHIPPED
    points = open_points(net, data, network.n_inputs) if known else np.zeros((1, network.n_inputs))
    x = chosen_row(points, row)
    if not isinstance(network, DenseNetwork):
        show_graph(console, network, net)
        return
    show_network(console, network, net)
    show_bounds(console, network, x)
    show_flow(console, network, x)


def show_graph(console: Console, net: OnnxNetwork, name: str) -> None:
    """Operators and their counts, and what the logits are."""
    table = Table("operator", "nodes", title=f"{name}: {net.dtype} parameters")
    for operator, count in net.operators.most_common():
        table.add_row(escape(plain(operator)), f"{count}")
    console.print(table)
    shape = " x ".join(f"{side}" for side in net.input_shape)
    console.print(f"{net.n_parameters:,} parameters, {net.n_inputs} inputs ({shape}), {net.n_classes} classes")
    if net.note:
        console.print(f"Note: {net.note}", markup=False)
    console.print(net.why_no_derivatives or "derivatives by torch", markup=False)


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
