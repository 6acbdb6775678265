"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

net_argument = click.argument("net")
outputs_option = click.option(
    "--outputs", type=click.Choice(["logits", "probabilities"]), default="logits", show_default=True
)


def data_option(row_help: str) -> Decorator:
    """The options --data and --row: a file of points, and which of them."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option("--row", default=0, show_default=True, help=row_help)(command)
        path = click.Path(path_type=Path)
        return click.option("--data", type=path, help="Points, one a row: .npy, .npz or .parquet.")(command)

    return add


def out_option(
    text: str, default: str | None = None, required: bool = True, suffixes: tuple[str, ...] = ()
) -> Decorator:
    """The option --out, a file in a folder that exists, whose name ends in one of ``suffixes``, if there are any; if it
    is not required and has no default it may be left out."""
    path = click.Path(path_type=Path, dir_okay=False)
    shown: dict[str, Any] = {"required": required}
    shown = shown if default is None else {"default": Path(default), "show_default": True}

    def checked(_context: click.Context, _option: click.Parameter, out: Path | None) -> Path | None:
        if out is not None and not out.parent.is_dir():
            raise InputError(f"--out: expected a folder that exists, found {out.parent}")
        if out is not None and suffixes and out.suffix not in suffixes:
            raise InputError(f"--out: expected a name ending in {suffixes[0]}, found {out}")
        return out

    return click.option("--out", type=path, help=text, callback=checked, **shown)


def homotopy_options(default: int | None) -> Decorator:
    """The options of a homotopy, by default in so many stages, or none."""
    options = (
        click.option(
            "--homotopy",
            type=click.IntRange(min=1),
            default=default,
            show_default=default is not None,
            metavar="STAGES",
            help="Follow a path from an easy form of the network, in about so many stages.",
        ),
        click.option("--tau", default=1e-5, show_default=True, help="Least slope of a neuron in the easy form."),
        click.option("--uniform", is_flag=True, help="Stages of equal length, exactly so many, no recovery."),
        click.option("--elu", is_flag=True, help="Relax ReLU to an ELU instead of a PReLU."),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def chosen_row(points: Array, row: int) -> Array:
    """The point of the option --row."""
    if not 0 <= row < len(points):
        raise InputError(f"--row: expected 0 to {len(points) - 1}, found {row}")
    return np.asarray(points[row])
