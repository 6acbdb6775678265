"""``flipopt explain``: one input, and what would change the network's mind about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flipopt.cli.auditing import Audited, audit_options, read_audited
from flipopt.cli.options import net_argument, out_option
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.quoting import plain
from flipopt.explain import TrustScore, trust, trust_score
from flipopt.flips.many import closest_flip_points
from flipopt.flips.one import closest_flip_point
from flipopt.report.audit.fragile import changes
from flipopt.report.audit.section import number, share
from flipopt.report.audit.study import Given, Study, named_by
from flipopt.report.plots import plot_flip
from flipopt.results import FlipResult, FlipTable

MOST_REFERENCE = 100
"""Other rows of DATA that an input is compared with where there is no reference."""


@click.command()
@net_argument
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("--row", default=0, show_default=True, help="Row of the data that is the input, from 0.")
@audit_options
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    help="Flip points of rows of DATA, as `flipopt solve` writes them, to compare the input with; without it the "
    f"first {MOST_REFERENCE} other rows are solved.",
)
@out_option("A picture: what changes, and the line to the flip.", required=False)
def explain(
    net: str,
    data: Path | None,
    row: int,
    labels: str | None,
    images: Path | None,
    shape: str | None,
    names: str | None,
    units: Path | None,
    scaled: bool,
    bounds: tuple[float, float] | None,
    reference: Path | None,
    out: Path | None,
) -> None:
    """One input of NET: its class, how much to trust it, the distances to all classes, and what would flip it.

    NET and DATA are as in `flipopt report`. The percentile says how many other inputs are nearer to a flip.
    """
    console = Console()
    inputs = read_audited(net, data, labels, images, shape, names, units, None)
    if not 0 <= row < len(inputs.X):
        raise InputError(f"--row: expected 0 to {len(inputs.X) - 1}, found {row}")
    x = inputs.X[row]
    if not np.isfinite(x).all():
        name = plain(inputs.names[int(np.argmax(~np.isfinite(x)))])
        raise InputError(f"--row: expected a row of numbers, found that {name} of row {row} is none")
    measure = inputs.measured(scaled, bounds)
    given = Given.read(inputs.network, inputs.X, inputs.labels, **inputs.described, **measure)
    every = closest_flip_points(given.network, x[None], targets="all", **measure)
    nearest = every.nearest()
    show_class(console, given, row)
    show_distances(console, given, every)
    if not np.isfinite(nearest.distance[0]):
        console.print("No flip point was found, so that nothing more can be said.")
        return
    flip = closest_flip_point(given.network, x, int(nearest.classes[0, 1]), **measure)
    console.print(_trusted(given, inputs, row, flip, reference, measure, console).summary(), markup=False)
    show_changes(console, given, row, nearest)
    if out is not None:
        _draw(out, given, inputs, row, flip)
        console.print(f"picture in {out}", highlight=False)


def show_class(console: Console, given: Given, row: int) -> None:
    """The predicted class and the ones behind it."""
    z = given.network.probabilities(given.X[row])
    order = np.argsort(-z, kind="stable")[:3]
    words = [f"“{plain(given.classes[k])}” {share(float(z[k]))}" for k in order]
    label = "" if given.labels is None else f"; its label is “{plain(given.classes[given.labels[row]])}”"
    console.print(f"Row {row} is {words[0]} by softmax, then {', '.join(words[1:])}{label}.", markup=False)


def show_distances(console: Console, given: Given, every: FlipTable) -> None:
    """A line a class, the nearest first."""
    table = Table("class", "distance", "status", title="Distances to all classes")
    order = np.argsort(np.where(np.isfinite(every.distance), every.distance, np.inf), kind="stable")
    for k in order:
        name = escape(plain(given.classes[every.classes[k, 1]]))
        table.add_row(name, number(float(every.distance[k]), 4), every.status[k].name)
    console.print(table)
    for status in dict.fromkeys(every.status):
        console.print(f"{status.name}: {status.message}", markup=False, highlight=False)


def show_changes(console: Console, given: Given, row: int, nearest: FlipTable) -> None:
    """The features that the nearest flip changes most; of an image, how much and where."""
    target = plain(given.classes[nearest.classes[0, 1]])
    if given.pictures is not None:
        console.print(_where(given, row, nearest, target), markup=False, highlight=False)
        return
    moved = FlipTable.join([nearest])
    moved.row[:] = row
    grid = changes(Study.of(given, moved), 0)
    table = Table(*grid.head, title=f"What makes it “{escape(target)}”")
    for column in table.columns[1:]:
        column.justify = "right"
    for cells in grid.rows:
        table.add_row(*(escape(plain(cell)) for cell in cells))
    console.print(table)


def _where(given: Given, row: int, nearest: FlipTable, target: str) -> str:
    assert given.pictures is not None
    change = given.pictures.changes(nearest.x - given.X[row])[0]
    grey = change if change.ndim == 2 else np.abs(change).max(axis=2) * np.sign(change.mean(axis=2))
    y, x = np.unravel_index(int(np.abs(grey).argmax()), grey.shape)
    squares = np.sort((grey**2).ravel())[::-1]
    half = int(np.searchsorted(np.cumsum(squares), squares.sum() / 2)) + 1
    return (
        f"It becomes “{target}” by changes of pixels of at most {number(float(np.abs(grey).max()), 2)}, the largest at "
        f"line {y}, column {x}; half of the squared change is in {half} of {grey.size} pixels."
    )


def _trusted(
    given: Given,
    inputs: Audited,
    row: int,
    flip: FlipResult,
    reference: Path | None,
    measure: dict[str, Any],
    console: Console,
) -> TrustScore:
    """How near a flip the input is among the flips of a file, or of other rows of the data."""
    if reference is not None:
        flips = FlipTable.load(reference)
        others = flips[flips.row != row] if len(flips) and flips.row.max() < len(given.X) else flips
    else:
        rows = _others(given.X, row)
        console.print(f"Compared with {len(rows)} other rows of the data.", highlight=False)
        others = closest_flip_points(given.network, given.X[rows], progress=True, **measure)
        others.row[:] = rows[others.row]
    compared: Any = others
    if given.labels is not None and len(others) and others.row.max() < len(given.X):
        compared = trust(others, given.network, given.X, named_by(given.network, given.labels))
    return replace(trust_score(flip, given.network, given.X[row], compared), classes=given.classes)


def _others(X: Array, row: int) -> Array:
    """Rows but this one that are numbers, the first of them."""
    sound = np.flatnonzero(np.isfinite(X).all(axis=1))
    return np.asarray(sound[sound != row][:MOST_REFERENCE])


def _draw(out: Path, given: Given, inputs: Audited, row: int, flip: FlipResult) -> None:
    looks = given.pictures
    plot_flip(
        flip,
        out,
        x=given.X[row],
        network=given.network,
        shape=None if looks is None or looks.features is not None else looks.shape,
        image=None if inputs.images is None or inputs.features is None else inputs.images[row],
        features=inputs.features,
        names=given.features,
        classes=given.classes,
        spreads=given.spreads if looks is None else None,
    )
