"""``flipopt label``: a page on which people say what images show."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console

from flipopt.cli.options import out_option
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.disagreement.labelling import DIGITS, Answers, Server, Task, read_images, write_form
from flipopt.disagreement.labels import merge as merged
from flipopt.disagreement.labels import read_labels
from flipopt.runs.stopping import advise


@click.command()
@click.argument("images", type=click.Path(path_type=Path))
@out_option("The answers, a line each: labeller,image,label,seconds.", required=False, suffixes=(".csv",))
@click.option("--names", default=",".join(DIGITS), show_default=True, help="Of the classes, separated by commas.")
@click.option("--shape", metavar="HxW", help="Of an image, where IMAGES are rows of pixels, such as 28x28.")
@click.option("--question", help="Above every image.")
@click.option(
    "--form",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Serve nothing: write a page of its own for people elsewhere, who send back what they download there.",
)
@click.option(
    "--merge",
    "parts",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="Serve nothing: check the answers in this file, and write those of all such files to --out.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address of this machine to be reached at.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="0: any that is free.")
def label(
    images: Path,
    out: Path | None,
    names: str,
    shape: str | None,
    question: str | None,
    form: Path | None,
    parts: tuple[Path, ...],
    host: str,
    port: int,
) -> None:
    """Let people label IMAGES on a page that only this machine can reach, and keep every answer as it is given.

    IMAGES is a .npy file, or a .npz file with an array images or X: bytes, or numbers from 0 to 1. Several people may
    label, each under a name; everybody sees all images in an order of their own, and none of what models say. The same
    command goes on with what is in the file. The address has a secret in it; hand out the whole of it.
    """
    console = Console()
    task = Task.of(_images(images, shape), [name.strip() for name in names.split(",")], question)
    if form is not None:
        write_form(form, task.images, task.classes, task.question)
        console.print(f"page in {form}, {form.stat().st_size / 1e6:.1f} MB", highlight=False)
        return
    if out is None:
        raise InputError("--out: expected a .csv file for the answers, found none")
    if parts:
        _merge(console, task, parts, out)
        return
    _serve(console, task, out, host, port)


def _images(path: Path, shape: str | None) -> Array:
    if shape is None:
        return read_images(path)
    sides = shape.lower().split("x")
    if not 2 <= len(sides) <= 3 or not all(side.isascii() and side.isdigit() for side in sides):
        raise InputError(f"--shape: expected such as 28x28 or 32x32x3, found {shape}")
    return read_images(path, [int(side) for side in sides])


def _merge(console: Console, task: Task, parts: tuple[Path, ...], out: Path) -> None:
    found = merged([read_labels(part, len(task.images), task.classes) for part in parts])
    found.save(out)
    console.print(found.summary(), markup=False, highlight=False)
    console.print(f"written to {out}", highlight=False)


def _serve(console: Console, task: Task, out: Path, host: str, port: int) -> None:
    answers = Answers(out, len(task.images), len(task.classes))
    advise(f"all answers are in {out}, and the same command goes on")
    try:
        with Server(task, answers, host, port) as server:
            size = "x".join(str(side) for side in np.shape(task.images)[1:])
            console.print(f"{len(task.images)} images of {size}, {answers.count} answers in {out}", highlight=False)
            print(f"open {server.address}", flush=True)  # one line, however narrow the terminal
            console.print("Ctrl-C ends it; answers are kept as they are given", highlight=False)
            server.serve_forever(poll_interval=0.2)
    finally:
        answers.close()
