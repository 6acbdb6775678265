"""``flipopt path``: a homotopy, stage by stage."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.table import Table

from flipopt.cli.options import chosen_row, data_option, homotopy_options, net_argument, out_option, outputs_option
from flipopt.common.errors import InputError
from flipopt.features.shipped import open_network, open_points
from flipopt.flips.one import closest_flip_point
from flipopt.homotopy import Homotopy, transform
from flipopt.networks import DenseNetwork
from flipopt.problem import flip_problem
from flipopt.report import draw_path
from flipopt.results import FlipResult


@click.command()
@net_argument
@data_option("Row of the data that is the input x.")
@click.option("--target", type=int, required=True, help="The other class.")
@click.option("--solver", default="ipopt", show_default=True, help="A name that `flipopt solvers` lists.")
@outputs_option
@homotopy_options(default=10)
@out_option(
    "The picture: distance and scores along the path, gradient flow before and after the transformation.", "path.png"
)
def path(
    net: str,
    data: Path | None,
    row: int,
    target: int,
    solver: str,
    outputs: Literal["logits", "probabilities"],
    homotopy: int,
    tau: float,
    uniform: bool,
    elu: bool,
    out: Path,
) -> None:
    """Follow a homotopy to the closest flip point of one input, stage by stage, and draw it.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network, whose own images are the data
    if none is given.
    """
    console = Console()
    network = open_network(net)
    if not isinstance(network, DenseNetwork):
        raise InputError(f"NET: expected a network of dense layers, which a homotopy needs, found {net}")
    x = chosen_row(open_points(net, data, network.n_inputs), row)
    options = Homotopy(stages=homotopy, tau=tau, adaptive=not uniform, smooth=elu)
    flip = closest_flip_point(network, x, target, outputs=outputs, solver=solver, homotopy=options)
    show_stages(console, flip)
    problem = flip_problem(network, x, flip.classes, outputs=outputs)
    easy = transform(problem, options.tau, options.margin, options.smooth).at(0.0)
    draw_path(out, network, easy, x, flip)
    console.print(f"{flip.status.name}: {flip.message}\npicture in {out}")


def show_stages(console: Console, flip: FlipResult) -> None:
    """One line a stage of a homotopy."""
    table = Table(title=f"Path to the flip between classes {flip.classes[0]} and {flip.classes[1]}")
    for heading in ("t", "distance", "gap", "solver", "evaluations", "decision"):
        table.add_column(heading, justify="left" if heading in ("solver", "decision") else "right")
    for stage in flip.stages:
        distance = f"{stage.distance:.4f}" if stage.kept else "-"
        cells = (f"{stage.t:.3f}", distance, f"{stage.boundary_gap:.0e}", stage.solver)
        table.add_row(*cells, f"{stage.evaluations.forward}", stage.decision)
    console.print(table)
