"""python -m data_prep: a data set to a file of wavelet features."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from data_prep.datasets import load_dataset, mirrored
from data_prep.features import write_features
from data_prep.sources import SOURCES
from flipopt.common.errors import FlipoptError, InputError
from flipopt.features.wavelets import WaveletFeatures


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", type=click.Choice(list(SOURCES)))
@click.option("--features", "n_features", default=100, show_default=True, help="How many coefficients to keep.")
@click.option("--wavelet", default="haar", show_default=True, help="A discrete wavelet, as PyWavelets names it.")
@click.option("--level", type=int, help="Depth of the transform. Default: the deepest without extra coefficients.")
@click.option("--mode", default="periodization", show_default=True, help="Extension at the border.")
@click.option("--dimensions", type=click.IntRange(2, 3), help="3 goes across channels too. Default: 3 for colour.")
@click.option("--classes", help="Keep only these classes, by name: airplane,ship")
@click.option("--mirror", is_flag=True, help="Choose the coefficients on the images and their mirror images.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .npz file to write.")
def main(
    name: str,
    n_features: int,
    wavelet: str,
    level: int | None,
    mode: str,
    dimensions: int | None,
    classes: str | None,
    mirror: bool,
    out: Path,
) -> None:
    """Reduce the images of data set NAME to wavelet features chosen by pivoted QR.

    The data set is looked for under ${FLIPOPT_DATA:-~/.cache/flipopt} and where Debian's packages put it, and
    downloaded from its well-known source if it is in neither place.
    """
    console = Console()
    try:
        if out.suffix != ".npz" or not out.parent.is_dir():
            raise InputError(f"--out: expected a .npz file in a folder that exists, found {out}")
        dataset = load_dataset(name)
        if classes:
            dataset = dataset.only(classes.split(","))
        images = (mirrored(dataset.train) if mirror else dataset.train).images
        with console.status(f"pivoted QR of the coefficients of {len(images):,} images"):
            fitted = WaveletFeatures.fit(images, n_features, wavelet, level, mode, dimensions)
        with console.status("features"):
            write_features(dataset, fitted, out)
    except FlipoptError as error:
        raise click.ClickException(str(error)) from error
    transform = fitted.wavelet_transform
    console.print(
        f"{name}: {n_features} of {transform.n_coefficients} {transform.dimensions}-D {transform.wavelet} coefficients "
        f"(level {transform.level}), "
        f"{len(dataset.train.labels):,} training and {len(dataset.test.labels):,} test images"
    )
    console.print(f"written to {out} and {out.with_suffix('.features.npz')}")


if __name__ == "__main__":
    main(prog_name="python -m data_prep")
