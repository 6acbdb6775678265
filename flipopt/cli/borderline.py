"""``flipopt borderline``: borderline instances between classes, and the character of every boundary."""

from __future__ import annotations

import csv
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flipopt.borderline import Measuring, Profile, profile
from flipopt.cli.auditing import Audited, read_audited
from flipopt.cli.options import net_argument, out_option
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.quoting import plain
from flipopt.common.writing import atomic_path
from flipopt.explain.matching import as_labels, class_names
from flipopt.report.borderline import draw_profile
from flipopt.runs.stopping import advise

MOST_ROWS = 10
"""Pairs that are listed."""
SHOWN = (
    ("closest_distance", "closest flip", "{:.3g}"),
    ("rpbs_success", "RPBS", "{:.0%}"),
    ("epbs_success", "EPBS", "{:.0%}"),
    ("idc", "IDC", "{:.3f}"),
    ("edc1_borderline", "EDC1", "{:.2f}"),
    ("edc2_borderline", "EDC2", "{:.0f}%"),
)
"""Columns of the list: names, heads and forms."""


@click.command()
@net_argument
@click.argument("data", required=False, type=click.Path(path_type=Path))
@out_option("The .parquet or .csv file to write, a line an ordered pair.", required=False)
@click.option(
    "--labels",
    help="Classes of the rows: a .npy, .npz, .csv or .parquet file, or a column of DATA.  [default: predicted]",
)
@click.option("--pair", nargs=2, multiple=True, metavar="S T", help="Two classes; may be given several times.")
@click.option("--all-pairs", is_flag=True, help="All pairs of classes that have samples: the default.")
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder that keeps every boundary that is finished: the same command goes on where it was stopped.",
)
@click.option(
    "--executor",
    default="threads",
    show_default=True,
    metavar="threads|processes|ADDRESS",
    help="Who does the work; ADDRESS is that of a Dask scheduler.",
)
@click.option("--names", help="Of the classes: a,b,c, or a file with one a line.")
@click.option("--rows", type=click.IntRange(min=1), help="Only the first rows of the data.")
@click.option("--samples", default=200, show_default=True, help="Sources of a direction for RPBS and EPBS, at most.")
@click.option("--flips", default=50, show_default=True, help="Sources of a direction for closest flip points; 0: none.")
@click.option(
    "--on",
    type=click.Choice(["rpbs", "epbs", "closest"]),
    default="epbs",
    show_default=True,
    help="What IDC and EDC are measured on.",
)
@click.option("--starts", default=200, show_default=True, help="Start points of IDC, at most.")
@click.option("--bounds", nargs=2, type=float, help="Lower and upper bound of every feature of a closest flip point.")
@click.option("--seed", default=0, show_default=True, help="Of all choices.")
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), help="Heat maps: a .png, .pdf or .svg file."
)
def borderline(
    net: str,
    data: Path | None,
    out: Path | None,
    labels: str | None,
    pair: tuple[tuple[str, str], ...],
    all_pairs: bool,
    folder: Path | None,
    executor: str,
    names: str | None,
    rows: int | None,
    samples: int,
    flips: int,
    on: str,
    starts: int,
    bounds: tuple[float, float] | None,
    seed: int,
    picture: Path | None,
) -> None:
    """Characterise the decision boundaries of NET between every two classes, on the samples in DATA.

    For each ordered pair: how often Algorithm 1 of Karimi, Derr and Tang finds a borderline instance between random
    (RPBS) and embedding-nearest (EPBS) samples, how far the closest flip points are, IDC, EDC1 and EDC2. NET and DATA
    are as in `flipopt report`.
    """
    console = Console()
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise InputError(f"--out: expected a name ending in .parquet or .csv, found {out}")
    if pair and all_pairs:
        raise InputError("--all-pairs: expected no --pair beside it")
    how = "nothing was written; with --run FOLDER what is finished is kept"
    advise(how if folder is None else f"what is finished is kept in {folder}, and the same command goes on")
    options = Measuring(pairs=samples, flips=flips, on=on, starts=starts, bounds=bounds or None, seed=seed)
    given = read_audited(net, data, labels, None, None, names, None, rows)
    classes = tuple(plain(name) for name in class_names(given.classes, given.network))
    found = profile(
        given.network,
        given.X,
        _truth(given, classes),
        [[_class(k, classes) for k in two] for two in pair] or "all",
        options=options,
        run=folder,
        executor=executor,
        progress=True,
    )
    found = found.named(classes)
    _show(console, found)
    if out is not None:
        _write(found, out)
        console.print(f"{len(found)} pairs in {out}", highlight=False)
    if picture is not None:
        draw_profile(picture, found)
        console.print(f"picture in {picture}", highlight=False)


def _truth(given: Audited, classes: tuple[str, ...]) -> Array | None:
    """The labels as positions; they may be names of classes."""
    return None if given.labels is None else as_labels(given.labels, len(given.X), classes, given.network.n_classes)


def _class(text: str, classes: tuple[str, ...]) -> int:
    """A class by its name or number."""
    if text in classes:
        return classes.index(text)
    if text.isdigit() and int(text) < len(classes):
        return int(text)
    raise InputError(f"--pair: expected classes by name or from 0 to {len(classes) - 1}, found {text!r}")


def _show(console: Console, found: Profile) -> None:
    """The most fragile pairs, and everything in a few sentences."""
    table = Table("from", "to", *(head for _, head, _ in SHOWN), title="The most fragile pairs")
    some = found.most_fragile(MOST_ROWS)
    for k, (s, t) in enumerate(some.classes):
        values = [(float(getattr(some, name)[k]), form) for name, _, form in SHOWN]
        cells = ["" if np.isnan(value) else form.format(value) for value, form in values]
        table.add_row(*(escape(found.name_of(int(c))) for c in (s, t)), *cells)
    console.print(table)
    console.print(found.summary(), markup=False, highlight=False)
    for note in dict.fromkeys(note for note in found.note if note):
        console.print(f"{int((found.note == note).sum())} pairs: {plain(note)}", markup=False, highlight=False)


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
