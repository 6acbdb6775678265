"""``flipopt borderline``: borderline instances between classes, and the character of every boundary."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from flipopt.borderline import Profile, profile
from flipopt.cli.boundaries import Asked, boundary_options, show
from flipopt.cli.options import net_argument, out_option
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.report.borderline import draw_profile


@click.command()
@net_argument
@click.argument("data", required=False, type=click.Path(path_type=Path))
@out_option("The .parquet or .csv file to write, a line an ordered pair.", required=False)
@boundary_options
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), help="Heat maps: a .png, .pdf or .svg file."
)
def borderline(net: str, data: Path | None, out: Path | None, picture: Path | None, **options: Any) -> None:
    """Characterise the decision boundaries of NET between every two classes, on the samples in DATA.

    For each ordered pair: how often Algorithm 1 of Karimi, Derr and Tang finds a borderline instance between random
    (RPBS) and embedding-nearest (EPBS) samples and, with --maps, between what DeepDIG's autoencoders make; how far the
    closest flip points are, IDC, EDC1 and EDC2. NET and DATA are as in `flipopt report`.
    """
    console = Console()
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise InputError(f"--out: expected a name ending in .parquet or .csv, found {out}")
    asked = Asked.read(net, data, **options)
    found = profile(
        asked.given.network,
        asked.given.X,
        asked.labels,
        asked.pairs,
        instances=asked.instances(console),
        options=asked.measuring,
        run=asked.run,
        executor=asked.executor,
        progress=True,
    )
    found = found.named(asked.classes)
    show(console, found)
    if out is not None:
        _write(found, out)
        console.print(f"{len(found)} pairs in {out}", highlight=False)
    if picture is not None:
        draw_profile(picture, found)
        console.print(f"picture in {picture}", highlight=False)


def _write(found: Profile, out: Path) -> None:
    """A Parquet file, or a .csv file with nothing where a number could not be had."""
    if out.suffix == ".parquet":
        return found.save(out)
    columns = found.to_arrow().to_pydict()
    with atomic_path(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for cells in zip(*columns.values(), strict=True):
            writer.writerow(["" if cell != cell else cell for cell in cells])
    return None
