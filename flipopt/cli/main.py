"""The ``flipopt`` command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, track
from rich.table import Table

from flipopt import __version__
from flipopt.bounds import lipschitz
from flipopt.common.checks import Array
from flipopt.common.errors import FlipoptError, InputError
from flipopt.common.point_files import read_points
from flipopt.comparison.methods import METHODS, Budget
from flipopt.comparison.own import own_problems
from flipopt.comparison.rows import write_ratios
from flipopt.comparison.runner import compare as run_comparison
from flipopt.comparison.table import Comparison
from flipopt.features.shipped import SHIPPED, load_shipped
from flipopt.flips.many import stream_flip_points
from flipopt.flips.one import closest_flip_point
from flipopt.homotopy import Homotopy, transform
from flipopt.networks import DenseNetwork, load_network
from flipopt.networks.gradient_flow import gradient_flow
from flipopt.problem import flip_problem
from flipopt.report import draw_comparison, draw_flips, draw_path, write_page
from flipopt.report.comparison import show_standings
from flipopt.results import FlipResult, FlipTable, Status, save_tables
from flipopt.solvers import installed


class _Group(click.Group):
    """Turns flipopt's errors into one line and exit code 1, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FlipoptError as error:
            raise click.ClickException(str(error)) from error


def _homotopy_options(default: int | None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of a homotopy, for every command that takes them."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(
            (
                click.option(
                    "--homotopy",
                    type=click.IntRange(min=1),
                    default=default,
                    show_default=default is not None,
                    metavar="STAGES",
                    help="Follow a path from an easy form of the network, in about so many stages.",
                ),
                click.option(
                    "--tau", default=1e-5, show_default=True, help="Least slope of a neuron in the easy form."
                ),
                click.option("--uniform", is_flag=True, help="Stages of equal length, exactly so many, no recovery."),
                click.option("--elu", is_flag=True, help="Relax ReLU to an ELU instead of a PReLU."),
            )
        ):
            command = option(command)
        return command

    return add


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="flipopt")
def main() -> None:
    """How close is an input to the point where a classifier changes its mind?"""


@main.command()
@click.argument("net")
@click.option("--data", type=click.Path(path_type=Path), help="Points, one a row: .npy, .npz or .parquet.")
@click.option("--row", default=0, show_default=True, help="Row of the data at which the gradient flow is measured.")
def info(net: str, data: Path | None, row: int) -> None:
    """Layers, parameters, Lipschitz bounds and gradient flow of NET.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network: mnist-net1, mnist-net2,
    mnist-fcn, cifar-200. The gradient flow is measured at a row of the data; without data, at a shipped network's own
    images, or at the origin.
    """
    console = Console()
    network = load_shipped(net).network if net in SHIPPED else load_network(net)
    x = _chosen_row(_points(net, data, network.n_inputs), row)
    show_network(console, network, net)
    show_bounds(console, network, x)
    show_flow(console, network, x)


@main.command()
@click.option("--images", default=4, show_default=True, help="How many of the shipped images.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("flips.png"),
    show_default=True,
    help="The picture: image, flip point, difference.",
)
def demo(images: int, out: Path) -> None:
    """Find the nearest flip points of shipped MNIST images with the shipped network, check them and draw them."""
    console = Console()
    shipped = load_shipped("mnist-net1")
    if not 1 <= images <= len(shipped.X):
        raise InputError(f"--images: expected 1 to {len(shipped.X)}, found {images}")
    _require_folder(out)
    network = shipped.network
    flips = [
        closest_flip_point(network, x)
        for x in track(shipped.X[:images], "nearest of all classes", console=console, transient=True)
    ]
    show_flips(console, shipped.classes, network.probabilities(shipped.X[:images]), shipped.labels[:images], flips)
    draw_flips(out, shipped.images[:images], shipped.features, flips, shipped.classes)
    console.print(f"picture in {out}; `flipopt info mnist-net1` shows what the network is made of")


@main.command()
@click.argument("net")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .parquet file to write."
)
@click.option("--target", default="nearest", show_default=True, help="nearest, all, or a class.")
@click.option(
    "--solver", default=None, help="A name that `flipopt solvers` lists.  [default: batch, or ipopt where it cannot]"
)
@click.option("--bounds", nargs=2, type=float, help="Lower and upper bound of every feature.")
@click.option("--frozen", help="Features that may not change, by index: 0,1,5")
@click.option("--norm", type=click.Choice(["1", "2", "inf"]), default="2", show_default=True)
@click.option("--outputs", type=click.Choice(["logits", "probabilities"]), default="logits", show_default=True)
@click.option("--starts", default=1, show_default=True, help="Starting points; the best result is kept.")
@_homotopy_options(default=None)
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
    _require_folder(out)
    network = load_shipped(net).network if net in SHIPPED else load_network(net)
    points = read_points(data, network.n_inputs)[:rows]
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


@main.command("path")
@click.argument("net")
@click.option("--data", type=click.Path(path_type=Path), help="Points, one a row: .npy, .npz or .parquet.")
@click.option("--row", default=0, show_default=True, help="Row of the data that is the input x.")
@click.option("--target", type=int, required=True, help="The other class.")
@click.option("--solver", default="ipopt", show_default=True, help="A name that `flipopt solvers` lists.")
@click.option("--outputs", type=click.Choice(["logits", "probabilities"]), default="logits", show_default=True)
@_homotopy_options(default=10)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("path.png"),
    show_default=True,
    help="The picture: distance and scores along the path, gradient flow before and after the transformation.",
)
def path_command(
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
    _require_folder(out)
    network = load_shipped(net).network if net in SHIPPED else load_network(net)
    if data is None and net not in SHIPPED:
        raise InputError("--data: expected a file of points, found none")
    x = _chosen_row(_points(net, data, network.n_inputs), row)
    options = Homotopy(stages=homotopy, tau=tau, adaptive=not uniform, smooth=elu)
    flip = closest_flip_point(network, x, target, outputs=outputs, solver=solver, homotopy=options)
    show_stages(console, flip)
    problem = flip_problem(network, x, flip.classes, outputs=outputs)
    easy = transform(problem, options.tau, options.margin, options.smooth).at(0.0)
    draw_path(out, network, easy, x, flip)
    console.print(f"{flip.status.name}: {flip.message}\npicture in {out}")


@main.command("solvers")
def solvers_command() -> None:
    """What is installed here, and how to get the rest."""
    table = Table("name", "here", "note")
    for line in installed():
        table.add_row(line.name, "yes" if line.available else "no", escape(line.note))
    Console().print(table)


@main.command()
@click.argument("net")
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--rows", default=20, show_default=True, help="The first rows of the data.")
@click.option("--target", default="nearest", show_default=True, help="nearest, or a class.")
@click.option(
    "--methods",
    "--solvers",
    "methods",
    default=",".join(name for name in METHODS if "," not in name),
    show_default=True,
    help=f"Names, with ; between them if one has a comma: {'; '.join(METHODS)}.",
)
@click.option("--seconds", default=60.0, show_default=True, help="Of one method on one problem.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("compare.csv"),
    show_default=True,
    help="The rows; what is there is not run again. A page (.html) and a picture (.png) are put beside it.",
)
def compare(net: str, data: Path | None, rows: int, target: str, methods: str, seconds: float, out: Path) -> None:
    """Compare solvers and formulations on NET, at the first rows of DATA.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network, whose own images are the data
    if none is given. Methods run one at a time; every point is verified, and failures are rows.
    """
    console = Console()
    _require_folder(out)
    names = [name.strip() for name in methods.split(";" if ";" in methods else ",") if name.strip()]
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise InputError(f"--methods: expected some of {'; '.join(METHODS)}, found {methods!r}")
    problems = own_problems(net, None if data is None else str(data), rows, target)
    chosen = {name: METHODS[name] for name in names}
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("problems and methods")
        found = run_comparison(
            problems, chosen, out, Budget(seconds), lambda done, total: bar.update(task, completed=done, total=total)
        )
    comparison = Comparison.of(found)
    write_ratios(out, comparison.best_known)
    show_standings(console, comparison)
    page, picture = out.with_suffix(".html"), out.with_suffix(".png")
    write_page(page, comparison)
    draw_comparison(picture, comparison)
    console.print(f"rows in {out}, profiles in {page} and {picture}")


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


def _chosen_row(points: Array, row: int) -> Array:
    if not 0 <= row < len(points):
        raise InputError(f"--row: expected 0 to {len(points) - 1}, found {row}")
    return np.asarray(points[row])


def _indices(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--frozen: expected indices such as 0,1,5, found {text!r}") from None


def _require_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise InputError(f"--out: expected a folder that exists, found {out.parent}")


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
    return read_points(data, n_inputs)
