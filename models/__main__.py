"""python -m models: train the papers' networks and generators and export them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
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
from models.gans.export import export as export_gan
from models.gans.export import report as report_gan
from models.gans.recipes import GAN_RECIPES
from models.gans.training import prepare as prepare_gan
from models.gans.training import train as train_gan
from models.recipes import RECIPES
from models.target_files import EPOCHS, write_targets
from models.targets import TARGET_RECIPES
from models.training import prepare, train


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Train the networks of the papers, small image networks and generators, and export them as npz and ONNX."""


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    """Options of every training."""
    options = (
        click.option(
            "--seed", default=0, show_default=True, help="Decides the initial weights and the order of the images."
        ),
        click.option(
            "--device", default="auto", show_default=True, help="cpu, cuda, ...; auto takes CUDA if it is there."
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("trained"),
            show_default=True,
            help="Folder for what training leaves behind: networks and a report, and what belongs to them.",
        ),
        click.option("--threads", default=0, help="CPU threads; 0 leaves it to torch."),
        click.option("--epochs", type=click.IntRange(min=1), help="In place of the recipe's."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _place(device: str, out: Path, threads: int) -> str:
    """Make the folder, set the threads; the device that is meant."""
    out.mkdir(parents=True, exist_ok=True)
    if threads:
        torch.set_num_threads(threads)
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


@main.command("train")
@click.argument("name", type=click.Choice(list(RECIPES)))
@_shared
@click.option("--subset", type=click.Path(path_type=Path), help="Train on the rows in this .npz file alone.")
@click.option("--extra", type=click.Path(path_type=Path), help="Train on the points in this .npz file too.")
def train_command(
    name: str,
    seed: int,
    device: str,
    out: Path,
    threads: int,
    epochs: int | None,
    subset: Path | None,
    extra: Path | None,
) -> None:
    """Train NAME. A run that was interrupted goes on from its last epoch when it is started again."""
    device = _place(device, out, threads)
    recipe = RECIPES[name] if epochs is None else replace(RECIPES[name], epochs=epochs)
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


@main.command("gan")
@click.argument("name", type=click.Choice(list(GAN_RECIPES)))
@_shared
def gan_command(name: str, seed: int, device: str, out: Path, threads: int, epochs: int | None) -> None:
    """Train the generator NAME and its discriminator; NAME.png shows samples after every epoch.

    A run that was interrupted goes on from its last epoch when it is started again.
    """
    device = _place(device, out, threads)
    recipe = GAN_RECIPES[name] if epochs is None else replace(GAN_RECIPES[name], epochs=epochs)
    checkpoint = out / f"{name}.seed{seed}.epochs{recipe.epochs}.checkpoint"  # some networks grow with their share
    resumed = checkpoint.exists()
    try:
        images = prepare_gan(recipe)
        start = time.perf_counter()
        gan = train_gan(recipe, images, seed, device, checkpoint, out / f"{name}.png")
        seconds = None if resumed else round(time.perf_counter() - start)  # the time of what was interrupted is lost
        shape = tuple(images.shape[1:])
        export_gan(gan, recipe, shape, report_gan(recipe, gan, shape, seed, device, seconds), out)
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error
    checkpoint.unlink(missing_ok=True)
    click.echo(f"written to {out / name}.*")


@main.command("targets")
@click.argument("name", type=click.Choice(list(TARGET_RECIPES)))
@_shared
@click.option("--target", "targets", type=float, multiple=True, default=(97.5, 98.0, 98.5), show_default=True)
def targets_command(
    name: str, seed: int, device: str, out: Path, threads: int, epochs: int | None, targets: tuple[float, ...]
) -> None:
    """Train NAME until it has each --target accuracy on the test set, in percent, and keep the network at each.

    One run serves all targets; which of them are not reached within the epochs (20) is said. On the CPU. A run that was
    interrupted goes on when it is started again.
    """
    _place(device, out, threads)
    try:
        facts = write_targets(TARGET_RECIPES[name], seed, targets, out, epochs or EPOCHS)
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error
    for target, found in facts["targets"].items():
        click.echo(
            f"{target}%: " + (found if isinstance(found, str) else f"{found['accuracy']}% after {found['steps']} steps")
        )
    click.echo(f"best {facts['best']}%; written to {out / f'{name}.seed{seed}'}.*")


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
