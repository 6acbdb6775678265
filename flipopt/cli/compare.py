"""``flipopt compare``: solvers and formulations on the same problems."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from flipopt.cli.options import net_argument, out_option
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.comparison.methods import METHODS, Budget
from flipopt.comparison.optima import proved_optima
from flipopt.comparison.own import own_problems
from flipopt.comparison.rows import write_ratios
from flipopt.comparison.runner import compare as run_comparison
from flipopt.comparison.table import Comparison
from flipopt.features.shipped import open_network
from flipopt.proofs.instance import require_piecewise_linear
from flipopt.report import draw_comparison, write_page
from flipopt.report.comparison import show_standings
from flipopt.runs.stopping import advise


@click.command()
@net_argument
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--rows", type=click.IntRange(min=1), default=20, show_default=True, help="The first rows of the data.")
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
    "--prove",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Prove the least distances, with so many seconds a row, and show the gap to them; for dense ReLU networks.",
)
@out_option(
    "The rows; what is there is not run again. A page (.html) and a picture (.png) are put beside it.", "compare.csv"
)
def compare(
    net: str,
    data: Path | None,
    rows: int,
    target: str,
    methods: str,
    seconds: float,
    prove: float | None,
    out: Path,
) -> None:
    """Compare solvers and formulations on NET, at the first rows of DATA.

    NET is a .npz or .onnx file, a folder of CSV files, or the name of a shipped network, whose own images are the data
    if none is given. Methods run one at a time; every point is verified, and failures are rows.
    """
    console = Console()
    names = [name.strip() for name in methods.split(";" if ";" in methods else ",") if name.strip()]
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise InputError(f"--methods: expected some of {'; '.join(METHODS)}, found {methods!r}")
    if prove is not None:
        require_piecewise_linear(open_network(net))
        if target != "nearest":
            raise InputError(f"--prove: expected --target nearest, of which there are proofs, found {target}")
    problems = own_problems(net, None if data is None else str(data), rows, target)
    chosen = {name: METHODS[name] for name in names}
    advise("the rows so far are kept, and the same command goes on")
    with progress_bar("problems and methods", console=console) as advance:
        found = run_comparison(problems, chosen, out, Budget(seconds), advance, console.print)
    optima = {}
    if prove is not None:
        with progress_bar("proofs", console=console) as advance:
            optima = proved_optima(problems, prove, advance)
    comparison = Comparison.of(found, proved=optima)
    write_ratios(out, comparison.best_known)
    show_standings(console, comparison)
    page, picture = out.with_suffix(".html"), out.with_suffix(".png")
    write_page(page, comparison)
    draw_comparison(picture, comparison)
    console.print(f"rows in {out}, profiles in {page} and {picture}")
