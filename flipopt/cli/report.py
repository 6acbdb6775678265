"""``flipopt report``: the audit of a model as one page."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from flipopt.cli.auditing import audit_options, page_option, read_audited
from flipopt.cli.options import net_argument
from flipopt.report.audit import write_report
from flipopt.runs.stopping import advise

MOST_FAULTS = 20
"""Rows with something that is no number that are named one by one."""


@click.command()
@net_argument
@click.argument("data", required=False, type=click.Path(path_type=Path))
@page_option
@audit_options
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder that keeps the flip points that are finished: the same command goes on where it was stopped.",
)
@click.option("--rows", type=click.IntRange(min=1), help="Only the first rows of the data.")
@click.option(
    "--boundaries",
    is_flag=True,
    help="Measure the boundaries between all pairs of classes too, as `flipopt characterise` does; takes longer.",
)
@click.option(
    "--prove",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Prove that no flip is nearer, with so many seconds an input; for dense ReLU networks without --bounds.",
)
@click.option("--title", help="Of the page.  [default: the name of NET]")
def report(
    net: str,
    data: Path | None,
    out: Path,
    labels: str | None,
    images: Path | None,
    shape: str | None,
    names: str | None,
    units: Path | None,
    scaled: bool,
    bounds: tuple[float, float] | None,
    folder: Path | None,
    rows: int | None,
    boundaries: bool,
    prove: float | None,
    title: str | None,
) -> None:
    """Audit NET on the inputs in DATA, and write one page that is read from top to bottom.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network, whose own 200 images are the
    inputs if there is no DATA. DATA is .csv (a line of names first), .npy, .npz (array X or features; or images, whose
    pixels or features are then the inputs) or .parquet. Without labels nothing is said of mistakes.
    """
    console = Console()
    how = "nothing was written; with --run FOLDER what is finished is kept"
    advise(how if folder is None else f"what is finished is kept in {folder}, and the same command goes on")
    given = read_audited(net, data, labels, images, shape, names, units, rows)
    for fault in given.faults[:MOST_FAULTS]:
        console.print(fault, markup=False)
    found = write_report(
        out,
        given.network,
        given.X,
        given.labels,
        title=title or f"Audit of {Path(net).name}",
        run=folder,
        progress=True,
        boundaries=boundaries,
        prove=prove,
        **given.described,
        **given.measured(scaled, bounds),
    )
    for section in found.sections:
        console.print(Text.assemble((section.title, "bold"), ": ", section.answer))
    console.print(f"page in {out}, {out.stat().st_size / 1e6:.1f} MB", highlight=False)
