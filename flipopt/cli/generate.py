"""``flipopt generate``: which units of a generator an image needs, and what images of their region have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from flipopt.cli.auditing import names_of, page_option, sides_of
from flipopt.cli.options import chosen_row
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.files import write_npz
from flipopt.common.point_files import read_points
from flipopt.common.quoting import quoted
from flipopt.common.writing import require_place
from flipopt.features.shipped import SHIPPED, load_shipped, open_network
from flipopt.generative import Discriminator, Generator
from flipopt.report.generator import Explored, Exploring, write_generator_report
from flipopt.report.generator.seen import drawn
from flipopt.report.generator.study import layers_of
from flipopt.runs.stopping import advise

FILE = click.Path(path_type=Path)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)
LAYERS = "From 1; may be given several times.  [default: all but one that makes the pixels]"
QUERY = "The seed that the latent vector is drawn from, standard normal; or a .npy, .npz, .csv or .parquet file."


def exploring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The fields of :class:`Exploring`."""
    error = "Relative error of the image that the essential units may have by themselves."
    on_the_way = "Refuse steps that leave the region on their way; takes longer."
    points = "Of hit-and-run, which says how large each region is; 0 for none."
    given = Exploring()
    options = (
        click.option("--target-error", default=given.target_error, show_default=True, help=error),
        click.option("--expansions", default=given.expansions, show_default=True, help="Steps of the tree."),
        click.option("--delta", type=float, help="Length of a step.  [default: 0.08 times interval times sqrt(d)]"),
        click.option("--interval", default=given.interval, show_default=True, help="The tree is in query +- interval."),
        click.option("--segments", is_flag=True, help=on_the_way),
        click.option("--samples", default=given.samples, show_default=True, help="Samples that are compared, at most."),
        click.option("--points", default=given.points, show_default=True, help=points),
        click.option("--seed", default=given.seed, show_default=True, help="Of all other choices."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("generator", type=FILE)
@page_option
@click.option("--layer", "layers", multiple=True, metavar="NUMBER", help=LAYERS)
@click.option("--query", default="0", show_default=True, metavar="SEED|FILE", help=QUERY)
@click.option("--row", default=0, show_default=True, help="Which latent vector of the file.")
@exploring_options
@click.option("--discriminator", type=FILE, help="An .onnx file, for the similarity of images in its layers.")
@click.option("--classifier", metavar="NET", help="A network of the images, which says what class they have.")
@click.option("--names", help="Of its classes: a,b,c, or a file with one a line.")
@click.option("--shape", help="Of images that come as a row of numbers: 28x28, 32x32x3 or 3x32x32.")
@click.option("--latents", type=NEW_FILE, help="A .npz file for the samples and units of every layer.")
@click.option("--title", help="Of the page.  [default: the name of GENERATOR and the query]")
def generate(
    generator: Path,
    out: Path,
    layers: tuple[str, ...],
    query: str,
    row: int,
    discriminator: Path | None,
    classifier: str | None,
    names: str | None,
    shape: str | None,
    latents: Path | None,
    title: str | None,
    **settings: Any,
) -> None:
    """Look at an image of GENERATOR, an .onnx file, layer by layer, and write what was found as one page.

    For each layer: which units the image needs (BerOpt), samples of the region in which these keep their sign (GB-RRT),
    where the samples' images vary and what they have in common, whether they are more alike than others that are as far
    away, and how much of the region was seen. All three algorithms are those of Jeon, Jeong and Choi (2020).
    """
    console = Console()
    advise("nothing was written")
    if latents is not None:
        if latents.suffix != ".npz":
            raise InputError(f"--latents: expected a name ending in .npz, found {latents}")
        require_place(latents)
    how = Exploring(**settings)
    sides = None if shape is None else sides_of(shape)
    G = Generator(generator)
    if sides is None and not drawn(G.image_shape):
        raise InputError(
            f"{generator}: expected a generator of images, found outputs of shape {G.image_shape}; of images that come "
            "as a row of numbers say the --shape"
        )
    chosen = _layers(G, layers)
    z0, called = _query(G, query, row)
    found = write_generator_report(
        out,
        G,
        z0,
        chosen,
        how=how,
        discriminator=None if discriminator is None else Discriminator(discriminator),
        shape=sides,
        title=title or f"{generator.name}, {called}",
        progress=True,
        **_classifier(classifier, names),
    )
    show(console, found)
    console.print(f"page in {out}, {out.stat().st_size / 1e6:.1f} MB", highlight=False)
    if latents is not None:
        write_npz(latents, arrays_of(found))
        console.print(f"samples and units in {latents}", highlight=False)


def _layers(G: Generator, layers: tuple[str, ...]) -> list[int] | None:
    """Numbers of layers that the file has; None for all."""
    if not layers or layers == ("all",):
        return None
    for text in layers:
        if not text.isdigit():
            raise InputError(f"--layer: expected a number from 1 to {len(G.layers)} or all, found {quoted(text)}")
        G.layer(int(text), "--layer")
    return [layer.number for layer in layers_of(G, [int(text) for text in layers])]


def _query(G: Generator, query: str, row: int) -> tuple[Array, str]:
    """The latent vector (d,), and what to call it."""
    if query.isdigit():
        return np.random.default_rng(int(query)).standard_normal(G.n_latent), f"query {int(query)}"
    if not Path(query).suffix:
        raise InputError(f"--query: expected a whole number >= 0 or the name of a file, found {quoted(query)}")
    points = read_points(query, G.n_latent)
    return chosen_row(points, row), f"row {row} of {Path(query).name}"


def _classifier(net: str | None, names: str | None) -> dict[str, Any]:
    """As arguments of the page."""
    if net is None:
        return {}
    shipped = load_shipped(net) if net in SHIPPED else None
    return {
        "classifier": open_network(net),
        "class_names": names_of(names) or (None if shipped is None else shipped.classes),
        "features": None if shipped is None else shipped.features,
    }


def show(console: Console, study: Explored) -> None:
    """What was found in each layer, in a few sentences."""
    for one in study.layers:
        console.print(Text(f"Layer {one.layer.number}", "bold"))
        for words in (one.essential, one.exploration, *([one.chains] if one.chains is not None else [])):
            console.print(str(words), markup=False, highlight=False)


def arrays_of(study: Explored) -> dict[str, Array]:
    """The query and, of every layer, the samples, which of them each was expanded from, and the units."""
    arrays = {"query": study.query}
    for one in study.layers:
        k = one.layer.number
        arrays |= {
            f"samples_{k}": one.exploration.accepted,
            f"parents_{k}": one.exploration.tree,
            f"essential_{k}": one.essential.mask,
            f"smallest_{k}": one.essential.smallest,
            f"theta_{k}": one.essential.theta,
        }
    return arrays
