"""``flipopt characterise``: the boundaries between all classes of a network, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from flipopt.cli.auditing import page_option, picture_options
from flipopt.cli.boundaries import Asked, boundary_options, show
from flipopt.cli.options import net_argument
from flipopt.report.audit import characterise as write_page


@click.command()
@net_argument
@click.argument("data", required=False, type=click.Path(path_type=Path))
@page_option
@boundary_options
@picture_options
@click.option("--title", help="Of the page.  [default: the name of NET]")
def characterise(net: str, data: Path | None, out: Path, title: str | None, **options: Any) -> None:
    """Measure the boundaries between all classes of NET on the samples in DATA, and write one page about them.

    The page has heat maps of the distance to closest flip points, of success, IDC, EDC1 and EDC2, as `flipopt
    borderline` measures them, and the most fragile pairs with a sample of each. NET and DATA are as in `flipopt
    report`.
    """
    console = Console()
    asked = Asked.read(net, data, **options)
    found = write_page(
        out,
        asked.given.network,
        asked.given.X,
        asked.labels,
        pairs=asked.pairs,
        instances=asked.instances(console),
        measuring=asked.measuring,
        title=title or f"Boundaries of {Path(net).name}",
        run=asked.run,
        executor=asked.executor,
        progress=True,
        **asked.given.described | {"class_names": asked.classes},
    )
    show(console, found)
    console.print(f"page in {out}, {out.stat().st_size / 1e6:.1f} MB", highlight=False)
