"""``flipopt solve``: closest flip points of every row of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from flipopt.cli.options import homotopy_options, net_argument, out_option, outputs_option
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.features.shipped import open_network, open_points
from flipopt.flips.many import stream_flip_points
from flipopt.homotopy import Homotopy
from flipopt.results import FlipTable, Status, save_tables


@click.command()
@net_argument
@click.argument("data", type=click.Path(path_type=Path))
@out_option("The .parquet file to write.")
@click.option("--target", default="nearest", show_default=True, help="nearest, all, or a class.")
@click.option(
    "--solver", default=None, help="A name that `flipopt solvers` lists.  [default: batch, or ipopt where it cannot]"
)
@click.option("--bounds", nargs=2, type=float, help="Lower and upper bound of every feature.")
@click.option("--frozen", help="Features that may not change, by index: 0,1,5")
@click.option("--norm", type=click.Choice(["1", "2", "inf"]), default="2", show_default=True)
@outputs_option
@click.option("--starts", default=1, show_default=True, help="Starting points; the best result is kept.")
@homotopy_options(default=None)
@click.option("--needed", is_flag=True, help="Follow the homotopy only where the direct solve fails.")
@click.option("--seed", default=0, show_default=True, help="Of the random starting points.")
@click.option("--rows", type=int, help="Only the first rows of the data.")
def solve(
    net: str,
    data: Path,
    out: Path,
    target: str,
    solver: str | None,
    bounds: tuple[float, float] | None,
    frozen: str | None,
    norm: str,
    outputs: Literal["logits", "probabilities"],
    starts: int,
    homotopy: int | None,
    tau: float,
    uniform: bool,
    elu: bool,
    needed: bool,
    seed: int,
    rows: int | None,
) -> None:
    """Closest flip points of NET for every row of DATA.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network. DATA is .npy, .npz (array X or
    features) or .parquet (a numeric column a feature).
    """
    console = Console()
    if out.suffix != ".parquet":
        raise InputError(f"--out: expected a name ending in .parquet, found {out}")
    network = open_network(net)
    points = open_points(net, data, network.n_inputs)[:rows]
    tables = stream_flip_points(
        network,
        points,
        _targets(target, len(points), network.n_classes),
        solver,
        progress=True,
        bounds=bounds,
        frozen=None if frozen is None else _indices(frozen),
        norm=float(norm),
        outputs=outputs,
        homotopy=_homotopy(homotopy, tau, uniform, elu, needed),
        starts=starts,
        seed=seed,
    )
    summary = _Summary()
    save_tables(summary.of(tables), out)
    summary.show(console)
    console.print(f"{sum(summary.counts.values())} entries in {out}")


class _Summary:
    """Counts what passes by, so that the tables need not be kept."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.distances: list[Array] = []
        self.unsettled = 0

    def of(self, tables: Iterable[FlipTable]) -> Iterator[FlipTable]:
        for table in tables:
            self.counts.update(status.name for status in table.status)
            self.distances.append(table.distance[table.success])
            self.unsettled += int((~table.settled).sum())
            yield table

    def show(self, console: Console) -> None:
        summary = Table("status", "entries", "meaning")
        for status in Status:
            if self.counts[status.name]:
                summary.add_row(status.name, f"{self.counts[status.name]}", status.message)
        console.print(summary)
        distances = np.concatenate([*self.distances, np.empty(0)])
        if len(distances):
            low, median, high = np.quantile(distances, (0, 0.5, 1))
            console.print(f"distance of the verified: {low:.4g} to {high:.4g}, median {median:.4g}")
        if self.unsettled:
            console.print(f"{self.unsettled} nearest classes are by progress, not by solving every class to its end")


def _targets(target: str, rows: int, n_classes: int) -> Any:
    if target in ("nearest", "all"):
        return target
    if not target.isdigit() or int(target) >= n_classes:
        raise InputError(f"--target: expected nearest, all or a class from 0 to {n_classes - 1}, found {target!r}")
    return np.full(rows, int(target))


def _homotopy(stages: int | None, tau: float, uniform: bool, elu: bool, needed: bool) -> Homotopy | None:
    if stages is None:
        if uniform or elu or needed:
            raise InputError("--homotopy: expected a number of stages with --uniform, --elu or --needed, found none")
        return None
    when = "needed" if needed else "always"
    return Homotopy(stages=stages, tau=tau, adaptive=not uniform, smooth=elu, when=when)


def _indices(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--frozen: expected indices such as 0,1,5, found {text!r}") from None
