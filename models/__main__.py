"""python -m models: train the papers' networks and export them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from flipopt.common.errors import FlipoptError
from flipopt.common.files import write_npz
from models.additions import only_rows, with_points
from models.export import export, report, trained
from models.recipes import RECIPES
from models.training import prepare, train


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Train the networks of the papers, and small image networks, and export them as npz and ONNX."""


@main.command("train")
@click.argument("name", type=click.Choice(list(RECIPES)))
@click.option("--seed", default=0, show_default=True, help="Decides the initial weights and the order of the images.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, ...; auto takes CUDA if it is there.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("trained"),
    show_default=True,
    help="Folder for the network, its features if it has any, a sample of images and the report.",
)
@click.option("--threads", default=0, help="CPU threads; 0 leaves it to torch.")
@click.option("--subset", type=click.Path(path_type=Path), help="Train on the rows in this .npz file alone.")
@click.option("--extra", type=click.Path(path_type=Path), help="Train on the points in this .npz file too.")
@click.option("--epochs", type=click.IntRange(min=1), help="In place of the recipe's: a small subset needs more.")
def train_command(
    name: str,
    seed: int,
    device: str,
    out: Path,
    threads: int,
    subset: Path | None,
    extra: Path | None,
    epochs: int | None,
) -> None:
    """Train NAME. A run that was interrupted goes on from its last epoch when it is started again."""
    if threads:
        torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = RECIPES[name] if epochs is None else replace(RECIPES[name], epochs=epochs)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    try:
        with console.status("data set and features"):
            data = prepare(recipe)
            data = data if subset is None else only_rows(data, recipe, subset)
            data = data if extra is None else with_points(data, extra)
        tag = "".join(f".{facts['crc32']:08x}" for facts in data.changes.values())  # of other data: another run
        checkpoint = out / f"{name}.seed{seed}{tag}.checkpoint"
        resumed = checkpoint.exists()
        start = time.perf_counter()
        net = trained(train(recipe, data, seed, device, checkpoint))
        seconds = None if resumed else round(time.perf_counter() - start)  # the time of what was interrupted is lost
        facts = report(recipe, net, data, seed, device, seconds)
        export(net, data, facts, out, name)
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error
    checkpoint.unlink(missing_ok=True)
    _show(console, {name: facts})
    console.print(f"written to {out / name}.*")


@main.command("inputs")
@click.argument("name", type=click.Choice(list(RECIPES)))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The .npz file: X and labels.")
@click.option("--rows", type=int, help="The first so many; all by default.")
def inputs_command(name: str, out: Path, rows: int | None) -> None:
    """Write what NAME is trained on, inputs of the network each, for `flipopt solve` and the analyses of flips."""
    try:
        data = prepare(RECIPES[name])
        X, labels = data.inputs(data.train.images[:rows]), data.train.labels
        write_npz(out, {"X": X.astype(np.float32), "labels": labels})
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{len(X):,} of {len(labels):,} rows of {X.shape[1]} numbers, and all labels, in {out}")


@main.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def report_command(files: tuple[Path, ...]) -> None:
    """Print the accuracies in report FILES (.json) beside the published ones."""
    _show(Console(), {file.stem: json.loads(file.read_text()) for file in files})


def _show(console: Console, reports: dict[str, dict[str, dict[str, float]]]) -> None:
    table = Table("network", "set", "accuracy %", "published %")
    for name, facts in reports.items():
        published = facts["published_percent"]
        for split, accuracy in facts["accuracy_percent"].items():
            table.add_row(name, split, f"{accuracy:.2f}", f"{published[split]:.2f}" if split in published else "")
    console.print(table)


if __name__ == "__main__":
    main(prog_name="python -m models")
