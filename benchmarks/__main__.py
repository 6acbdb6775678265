"""python -m benchmarks: each command measures one thing and writes its rows to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks import (
    agreement,
    batch,
    before,
    beropt,
    bisection,
    first_call,
    gbrrt,
    hit_and_run,
    homotopy,
    homotopy_sensitivity,
    loans,
    network,
    networks,
    paths,
    proofs,
    proofs_milp,
    proofs_networks,
    proofs_test_set,
    runs,
    solvers,
    tiny,
)
from benchmarks.problems import BEST, BenchmarkProblems
from benchmarks.reproduce import run as reproduction
from flipopt.common.errors import FlipoptError

Command = Callable[..., Any]
RESULTS = Path("benchmarks/results")


def _out(name: str, text: str) -> Callable[[Command], Command]:
    """The option for the file that a command writes."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option("--out", type=path, default=RESULTS / name, show_default=True, help=text)


def _chosen(names: str, known: Iterable[str], what: str) -> list[str]:
    """Names with commas between them, each of them known."""
    chosen = [name for name in names.split(",") if name]
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise click.BadParameter(f"expected {what} out of {', '.join(known)}, found {', '.join(unknown)}")
    return chosen


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure flipopt. Times are compared only within one run; every row names the machine and the versions."""


@main.command("network")
@click.option("--quick", is_flag=True, help="A smoke run of a few seconds; its figures mean little.")
@_out("network.csv", "Where the rows go.")
def network_command(quick: bool, out: Path) -> None:
    """Time of logits and one gradient: DenseNetwork against torch, at several batch sizes."""
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    network.show(network.run(out, quick, console), console)
    console.print(f"written to {out}")


@main.command("loans")
@click.option("--rows", default=50, show_default=True, help="How many of the applications.")
@_out("loans.csv", "Where the rows go.")
def loans_command(rows: int, out: Path) -> None:
    """Tabular data in its own units: bounds, constraints, discrete features, points that the model agrees with."""
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    loans.show(loans.run(out, rows, console), console)
    console.print(f"written to {out}")


@main.command("first_call")
@_out("first_call.csv", "Where the rows go.")
def first_call_command(out: Path) -> None:
    """What a user waits for the first flip point: with nothing compiled, and with what was kept on disk."""
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    first_call.show(first_call.run(out), console)
    console.print(f"written to {out}")


@main.command("agreement")
@click.option("--images", default=50, show_default=True, help="How many of the shipped images.")
@click.option(
    "--solvers", default="ipopt,nlopt,scipy", show_default=True, help="Names, as `flipopt solvers` lists them."
)
@_out("agreement.csv", "Where the rows go; pairs that are there are not solved again.")
def agreement_command(images: int, solvers: str, out: Path) -> None:
    """Every (image, class) pair by several solvers: who succeeds, at what cost, and do they agree?"""
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    agreement.show(agreement.run(out, solvers.split(","), images, console), console)
    console.print(f"rows in {out}")


@main.command("homotopy")
@click.option("--cases", default="abc", show_default=True, help="a: probabilities, b: saturated, c: ReLU.")
@click.option("--images", type=int, help="How many images of each case.  [default: 100, with --sensitivity 3]")
@click.option("--processes", default=2, show_default=True, help="One core each.")
@click.option("--sensitivity", is_flag=True, help="Change each tuned value of the adaptive path instead.")
@_out("homotopy.csv", "Where the rows go; problems that are there are not solved again.")
def homotopy_command(cases: str, images: int | None, processes: int, sensitivity: bool, out: Path) -> None:
    """Direct solves against uniform and adaptive homotopy where gradients vanish, explode or jump."""
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    if sensitivity:
        out = RESULTS / "homotopy_sensitivity.csv" if out == RESULTS / "homotopy.csv" else out
        rows = homotopy_sensitivity.run(out, images or 3, console)
        homotopy_sensitivity.show(rows, console)
        homotopy_sensitivity.write_markdown(out.with_suffix(".md"), rows)
        return
    if not set(cases) <= set(homotopy.CASES):
        raise click.BadParameter(f"expected letters out of {''.join(homotopy.CASES)}, found {cases!r}")
    rows = homotopy.run(out, cases, images or 100, processes, console)
    homotopy.show(rows, console)
    homotopy.write_markdown(out.with_suffix(".md"), rows)
    console.print(f"rows in {out}, tables for the documentation in {out.with_suffix('.md')}")


@main.command("batch")
@click.option("--parts", default=",".join(batch.PARTS), show_default=True, help="What to measure.")
@click.option("--images", default=batch.IMAGES, show_default=True, help="The first test images.")
@click.option("--pairs", default=batch.PAIRS, show_default=True, help="Random pairs that are compared with IPOPT.")
@click.option("--folder", default="", help="Where `python -m models train cifar-2500 --out FOLDER` has put its files.")
@_out("batch.csv", "Where the figures go; parts that are there are not measured again.")
def batch_command(parts: str, images: int, pairs: int, folder: str, out: Path) -> None:
    """The batch solver against IPOPT one at a time and against attack libraries."""
    console, names = Console(), _chosen(parts, batch.PARTS, "parts")
    out.parent.mkdir(parents=True, exist_ok=True)
    batch.run(out, names, images, pairs, folder, console)
    batch.show(out, console)


@main.command("networks")
@click.option("--parts", default=",".join(networks.PARTS), show_default=True, help="What to measure.")
@click.option("--attacks", default=",".join(networks.ATTACKS), show_default=True, help="Whom to compare with.")
@click.option("--images", default=networks.IMAGES, show_default=True, help="The first test images.")
@_out("networks.csv", "Where the figures go; parts that are there are not measured again.")
def networks_command(parts: str, attacks: str, images: int, out: Path) -> None:
    """A convolutional network, a residual network and a vision transformer, against attack libraries."""
    out.parent.mkdir(parents=True, exist_ok=True)
    chosen = _chosen(attacks, networks.ATTACKS, "attacks")
    networks.run(out, _chosen(parts, networks.PARTS, "parts"), images, chosen, Console())


@main.command("tiny")
@click.option("--networks", "count", default=tiny.NETWORKS, show_default=True, help="How many that have a flip.")
@click.option("--first", default=0, show_default=True, help="The number of the first; others are other networks.")
@_out("tiny.csv", "Where the rows go; networks that are there are not solved again.")
def tiny_command(count: int, first: int, out: Path) -> None:
    """Random networks of two and three inputs against a fine grid of directions: what is missed, what is settled?"""
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    tiny.show(tiny.run(out, count, first, console), console)


@main.command("before")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--images", default=batch.IMAGES, show_default=True, help="The first test images.")
@click.option("--turns", default=3, show_default=True, help="Of this checkout and the other.")
@_out("before.csv", "Where the rows go.")
def before_command(folder: Path, images: int, turns: int, out: Path) -> None:
    """This checkout against the one in FOLDER (git worktree add FOLDER COMMIT): time, and distances."""
    out.parent.mkdir(parents=True, exist_ok=True)
    before.run(out, folder, images, turns, Console())


@main.command("runs")
@click.option("--pairs", default=runs.PAIRS, show_default=True, help="Flip points of images and classes.")
@click.option("--turns", default=1, show_default=True, help="Of all ways.")
@_out("runs.csv", "Where the rows go.")
def runs_command(pairs: int, turns: int, out: Path) -> None:
    """What keeping a run costs, and processes and Dask workers against threads."""
    out.parent.mkdir(parents=True, exist_ok=True)
    runs.run(out, pairs, turns, Console())
    runs.show(out, Console())


@main.command("bisection")
@click.option("--turns", default=3, show_default=True, help="Of both schemes on both networks.")
@_out("bisection.csv", "Where the rows go.")
def bisection_command(turns: int, out: Path) -> None:
    """Borderline instances of 5,000 pairs by Algorithm 1 in batches, against one pair at a time."""
    out.parent.mkdir(parents=True, exist_ok=True)
    bisection.run(out, turns, Console())
    bisection.show(out, Console())


@main.command("gbrrt")
@click.option("--turns", default=3, show_default=True, help="Of all schemes in all layers.")
@click.option("--expansions", default=gbrrt.EXPANSIONS, show_default=True, help="Steps of a tree.")
@_out("gbrrt.csv", "Where the rows go.")
def gbrrt_command(turns: int, expansions: int, out: Path) -> None:
    """Trees of GB-RRT with steps evaluated in advance, against one at a time: processor's time at equal reach."""
    out.parent.mkdir(parents=True, exist_ok=True)
    gbrrt.run(out, turns, expansions, Console())
    gbrrt.show(out, Console())


@main.command("hit-and-run")
@click.option("--seeds", default=3, show_default=True, help="Of polytopes and chains.")
@_out("hit_and_run.csv", "Where the rows go; what is there is not run again.")
def hit_and_run_command(seeds: int, out: Path) -> None:
    """Uniform points of polytopes by hit-and-run, against hopsy: time, mixing, moments."""
    out.parent.mkdir(parents=True, exist_ok=True)
    hit_and_run.run(out, seeds, Console())
    hit_and_run.show(out, Console())


@main.command("beropt")
@click.option("--queries", default=beropt.QUERIES, show_default=True, help="With the relaxation, in four layers each.")
@click.option("--scored", default=1, show_default=True, help="Of these also by the score function, without torch.")
@_out("beropt.csv", "Where the rows go; what is there is not run again.")
def beropt_command(queries: int, scored: int, out: Path) -> None:
    """Essential units of a trained generator for a target error: whether it is reached, with how many, at what cost."""
    out.parent.mkdir(parents=True, exist_ok=True)
    beropt.run(out, queries, scored, Console())
    beropt.show(out, Console())


@main.command("paths")
@click.option("--parts", default=",".join(paths.PARTS), show_default=True, help="What to measure.")
@click.option("--lines", default=paths.LINES, show_default=True, help="Lines between test images.")
@click.option("--samples", default=paths.SAMPLES, show_default=True, help="Of one class, for connectivity.")
@_out("paths.csv", "Where the figures go.")
def paths_command(parts: str, lines: int, samples: int, out: Path) -> None:
    """Crossings along lines, proved and sampled, against a fine scan and Lipschitz bounds; connectivity of a region."""
    out.parent.mkdir(parents=True, exist_ok=True)
    paths.run(out, _chosen(parts, paths.PARTS, "parts"), lines, samples, Console())


@main.command("proofs")
@click.option("--parts", default=",".join(proofs.PARTS), show_default=True, help="What to measure.")
@click.option("--images", default=200, show_default=True, help="Of the shipped ones.")
@_out("proofs.csv", "Where the figures go.")
def proofs_command(parts: str, images: int, out: Path) -> None:
    """Proofs that flips are the closest ones: time, nodes, what solvers miss; lower bounds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    proofs.run(out, _chosen(parts, proofs.PARTS, "parts"), images, Console())


@main.command("proofs_networks")
@click.option("--images", default=100, show_default=True, help="Of each network, the first test images of MNIST.")
@click.option("--seconds", default=proofs_networks.SECONDS, show_default=True, help="Of a core, for an image.")
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("proofs-networks.run"),
    show_default=True,
    help="Folder of flips and rows: a run that was stopped goes on from it.",
)
@_out("proofs-networks.csv", "Where the rows go; a summary (.md) and a picture (.png) are written beside it.")
def proofs_networks_command(images: int, seconds: float, work: Path, out: Path) -> None:
    """Wider and deeper ReLU networks: flips proved within a minute, and how the gap closes with time."""
    out.parent.mkdir(parents=True, exist_ok=True)
    proofs_networks.run(out, images, work, seconds, Console())


@main.command("proofs_milp")
@click.option("--images", default=20, show_default=True, help="Of the shipped ones.")
@click.option("--instances", default=120, show_default=True, help="Small networks, on which distances are compared.")
@click.option("--seconds", default=120.0, show_default=True, help="Core seconds of SCIP for an image.")
@_out("proofs_milp.csv", "Where the rows go; what is there is not solved again.")
def proofs_milp_command(images: int, instances: int, seconds: float, out: Path) -> None:
    """Proofs beside a mixed-integer solver, SCIP: what each proves in what time, and whether distances agree."""
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        proofs_milp.run(out, images, instances, seconds, Console())
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error


@main.command("proofs_test_set")
@click.option("--images", default=10_000, show_default=True, help="The first test images of MNIST.")
@click.option("--processes", default=2, show_default=True, help="One core each.")
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("proofs-test-set.run"),
    show_default=True,
    help="Folder of flips and proofs: a run that was stopped goes on from it.",
)
@_out("proofs-test-set.csv", "Where the rows go; a summary (.md) and a picture (.png) are written beside it.")
def proofs_test_set_command(images: int, processes: int, work: Path, out: Path) -> None:
    """The closest flip of every MNIST test image, proved to 1e-6, and the robustness curve that follows."""
    out.parent.mkdir(parents=True, exist_ok=True)
    proofs_test_set.run(out, images, work, processes, Console())


@main.command("solvers")
@click.option("--quick", is_flag=True, help="A smoke run of some minutes; its figures mean little.")
@click.option("--methods", default="", help="Names, with ; between them.  [default: all]")
@click.option("--known", default=BenchmarkProblems.known, show_default=True, help="Problems a size with known answers.")
@click.option("--images", default=BenchmarkProblems.images, show_default=True, help="Images of every trained network.")
@click.option("--prove", type=click.FloatRange(min=0), metavar="SECONDS", help="Prove the optima of ReLU networks.")
@_out("solvers.csv", "The rows; what is there is not run again.")
def solvers_command(quick: bool, methods: str, known: int, images: int, prove: float | None, out: Path) -> None:
    """Solvers, formulations and attacks on the same problems, with performance and data profiles."""
    out.parent.mkdir(parents=True, exist_ok=True)
    names = [name.strip() for name in methods.split(";") if name.strip()]
    unknown = set(names) - set(solvers.methods())
    if unknown:
        raise click.BadParameter(
            f"expected methods out of {'; '.join(solvers.methods())}, found {'; '.join(sorted(unknown))}"
        )
    problems = solvers.QUICK if quick else BenchmarkProblems(known, images)
    names = names or list(solvers.QUICK_METHODS if quick else solvers.methods())
    seconds = solvers.QUICK_SECONDS if quick else solvers.SECONDS
    solvers.run(out, problems, names, out.with_name("best.csv") if quick else BEST, Console(), seconds, prove)


@main.command(
    "reproduce",
    help=f"""The figures of the papers beside ours.

    NAME is all, 000, 001, 002, 003 or 004 for a paper, page to write docs/explanation/reproduction.md anew from the
    records, or a study: {", ".join(reproduction.STUDIES)}.""",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--quick", is_flag=True, help="A smoke run on the shipped samples; its figures mean nothing.")
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=reproduction.WORK,
    show_default=True,
    help="Folder of flip points, networks and checkpoints: a study that was stopped goes on from it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=reproduction.RESULTS,
    show_default=True,
    help="Folder of the records (.json) and pictures (.png).",
)
@click.option(
    "--training/--no-training",
    default=True,
    show_default=True,
    help="Whether 004 trains networks and looks for closest flips where they are missing, which takes hours.",
)
def reproduce_command(names: tuple[str, ...], quick: bool, work: Path, out: Path, training: bool) -> None:
    """Run studies, or write the page."""
    try:
        if names == ("page",):
            reproduction.write_page(out)
        else:
            reproduction.run(names, quick, work, out, Console(), training)
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
