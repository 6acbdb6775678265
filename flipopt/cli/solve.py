"""``flipopt solve``: closest flip points of every row of a file."""

from __future__ import annotations

import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from flipopt.cli.options import homotopy_options, net_argument, out_option, outputs_option
from flipopt.cli.tabular import features, read_constraints, usable, write_csv
from flipopt.common.checks import Array
from flipopt.common.errors import InputError, StorageError
from flipopt.common.point_files import read_table
from flipopt.features.shipped import open_network
from flipopt.flips.many import stream_flip_points
from flipopt.homotopy import Homotopy
from flipopt.networks import DenseNetwork, Network
from flipopt.problem import scale_of
from flipopt.proofs import prove_flips
from flipopt.results import FlipTable, Status, save_tables
from flipopt.runs.stopping import advise

MOST_FAULTS = 20
"""Rows with something that is no number that are named one by one."""


@click.command()
@net_argument
@click.argument("data", type=click.Path(path_type=Path))
@out_option("The .parquet or .csv file to write; may be left out with --run.", required=False)
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder that keeps what is finished: the same command goes on where it was stopped. See `flipopt runs`.",
)
@click.option(
    "--executor",
    default="threads",
    show_default=True,
    metavar="threads|processes|ADDRESS",
    help="Who does the work; ADDRESS is that of a Dask scheduler, such as tcp://host:8786.",
)
@click.option("--target", default="nearest", show_default=True, help="nearest, all, or a class.")
@click.option(
    "--solver", default=None, help="A name that `flipopt solvers` lists.  [default: batch, or ipopt where it cannot]"
)
@click.option("--bounds", nargs=2, type=float, help="Lower and upper bound of every feature.")
@click.option("--in-range", is_flag=True, help="Bounds of every feature: its least and largest value in DATA.")
@click.option(
    "--scaled", is_flag=True, help="Weights from DATA: changes count in spreads of a feature, whatever its unit."
)
@click.option("--frozen", help="Features that may not change, by name or index: age,5")
@click.option("--integers", help="Features that are whole numbers, by name or index.")
@click.option(
    "--one-of", multiple=True, help="Features of which exactly one is 1: rent,own. May be given several times."
)
@click.option(
    "--constraints",
    type=click.Path(path_type=Path),
    help='Linear constraints, a JSON file: [{"coefficients": {"amount": 1, "savings": 1}, "upper": 30000}]',
)
@click.option(
    "--valid",
    is_flag=False,
    flag_value="yes",
    metavar="[PROBABILITY]",
    help="Points that NET itself puts in the other class, or with at least this probability.",
)
@click.option("--norm", type=click.Choice(["1", "2", "inf"]), default="2", show_default=True)
@outputs_option
@click.option("--starts", default=1, show_default=True, help="Starting points; the best result is kept.")
@homotopy_options(default=None)
@click.option("--needed", is_flag=True, help="Follow the homotopy only where the direct solve fails.")
@click.option("--seed", default=0, show_default=True, help="Of the random starting points.")
@click.option("--rows", type=click.IntRange(min=1), help="Only the first rows of the data.")
@click.option(
    "--prove",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Prove that no flip is nearer: a lower bound on each distance, with so many seconds a row for ReLU networks.",
)
def solve(
    net: str,
    data: Path,
    out: Path | None,
    folder: Path | None,
    executor: str,
    target: str,
    solver: str | None,
    bounds: tuple[float, float] | None,
    in_range: bool,
    scaled: bool,
    frozen: str | None,
    integers: str | None,
    one_of: tuple[str, ...],
    constraints: Path | None,
    valid: str | None,
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
    prove: float | None,
) -> None:
    """Closest flip points of NET for every row of DATA.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network. DATA is .csv (a line of
    names first), .npy, .npz (array X or features) or .parquet (a numeric column a feature). Rows with something that is
    no number are named, and have an entry without a point.
    """
    console = Console()
    if out is None and folder is None:
        raise InputError("--out: expected a file to write, or --run with a folder, found neither")
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise InputError(f"--out: expected a name ending in .parquet or .csv, found {out}")
    how = "nothing was written; with --run FOLDER what is finished is kept"
    advise(how if folder is None else f"what is finished is kept in {folder}, and the same command goes on")
    network = open_network(net)
    table, names = read_table(data, network.n_inputs)
    points = table[:rows]
    sound, faults = usable(points, names)
    for fault in faults[:MOST_FAULTS]:
        console.print(fault, markup=False)
    if len(sound) == 0:
        raise InputError(f"{data}: expected rows of numbers, found none")
    if in_range and bounds is not None:
        raise InputError("--in-range: expected no --bounds beside it")
    if prove is not None:
        limited = any((integers, one_of, constraints, valid))
        _require_provable(network, target, norm, limited, out)
    weights = scale_of(sound) if scaled else None
    fixed = None if frozen is None else features(frozen, names, "--frozen")
    limits = _range(points) if in_range else bounds
    tables = stream_flip_points(
        network,
        points,
        _targets(target, len(points), network.n_classes),
        solver,
        progress=True,
        run=folder,
        executor=executor,
        bounds=limits,
        weights=weights,
        frozen=fixed,
        integers=None if integers is None else features(integers, names, "--integers"),
        one_of=[features(group, names, "--one-of") for group in one_of],
        constraints=() if constraints is None else read_constraints(constraints, names),
        valid=_valid(valid),
        norm=float(norm),
        outputs=outputs,
        homotopy=_homotopy(homotopy, tau, uniform, elu, needed),
        starts=starts,
        seed=seed,
    )
    if prove is not None:
        found = FlipTable.join(list(tables))
        kept = None if folder is None else folder.with_name(f"{folder.name}.proofs")
        tables = iter([prove_flips(network, points, found, prove, weights, fixed, limits, True, kept, executor)])
    summary = _Summary()
    written = _written(summary.of(tables), out, names)
    summary.show(console)
    console.print(f"{sum(summary.counts.values())} entries in {written or folder}")
    if faults:
        console.print(f"{len(faults)} rows have something that is no number, and no flip point")


def _written(tables: Iterator[FlipTable], out: Path | None, names: tuple[str, ...]) -> Path | None:
    """Write tables as they come, if anywhere. What there is no space for in ``out`` is written elsewhere, and said."""
    if out is None:
        deque(tables, maxlen=0)
        return None
    passed: list[FlipTable] = []
    try:
        _write(_noted(tables, passed), out, names)
    except StorageError as error:
        if not passed:  # before anything was computed
            raise
        other = Path(tempfile.mkdtemp(prefix="flipopt-")) / f"flips{out.suffix}"
        _write(chain(passed, tables), other, names)
        raise StorageError(f"{error}; the table is in {other} instead") from error
    return out


def _noted(tables: Iterable[FlipTable], passed: list[FlipTable]) -> Iterator[FlipTable]:
    for table in tables:
        passed.append(table)
        yield table


def _write(tables: Iterable[FlipTable], out: Path, names: tuple[str, ...]) -> None:
    if out.suffix == ".csv":
        write_csv(tables, out, names)
    else:
        save_tables(tables, out)


def _require_provable(network: Network, target: str, norm: str, limited: bool, out: Path | None) -> None:
    """Before anything is computed."""
    if not isinstance(network, DenseNetwork):
        raise InputError(
            f"--prove: expected a dense network, of which bounds are known, found {type(network).__name__}"
        )
    if target != "nearest" or norm != "2" or limited:
        raise InputError(
            "--prove: expected nearest flips in the 2-norm without --integers, --one-of, --constraints or --valid, "
            "found others"
        )
    if out is None or out.suffix != ".parquet":
        raise InputError(f"--prove: expected --out FILE.parquet, which keeps what is proved, found {out}")


class _Summary:
    """Counts what passes by, so that the tables need not be kept."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.distances: list[Array] = []
        self.unsettled = self.proved = 0
        self.bounds: list[Array] = []

    def of(self, tables: Iterable[FlipTable]) -> Iterator[FlipTable]:
        for table in tables:
            self.counts.update(status.name for status in table.status)
            self.distances.append(table.distance[table.success])
            self.unsettled += int((~table.settled & ~table.proved).sum())
            self.proved += int(table.proved.sum())
            bounded = np.isfinite(table.distance) & np.isfinite(table.lower_bound)
            self.bounds.append(table.lower_bound[bounded] / np.maximum(table.distance[bounded], np.finfo(float).tiny))
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
        bounds = np.concatenate([*self.bounds, np.empty(0)])
        if len(bounds):
            share = min(float(np.median(bounds)), 1.0)
            console.print(f"{self.proved} distances are proved; lower bound over distance: median {share:.4g}")
        if self.unsettled:
            console.print(f"{self.unsettled} nearest classes are by progress, not by solving every class to its end")


def _range(points: Array) -> tuple[Array, Array]:
    """The least and largest number of every feature; a value that is no number does not count."""
    numbers = np.isfinite(points)
    return np.where(numbers, points, np.inf).min(axis=0), np.where(numbers, points, -np.inf).max(axis=0)


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


def _valid(text: str | None) -> bool | float:
    if text is None or text == "yes":
        return text is not None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--valid: expected nothing or a probability, found {text!r}") from None
