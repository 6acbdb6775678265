"""What `flipopt report` and `flipopt explain` are given: a network, its inputs, and what belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from flipopt.cli.options import out_option
from flipopt.cli.tabular import usable
from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import read_npy, read_npz
from flipopt.common.label_files import read_column, read_labels
from flipopt.common.point_files import csv_lines, read_table
from flipopt.common.quoting import listed, plain
from flipopt.features.shipped import SHIPPED, Shipped, load_shipped, open_network
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks import DenseNetwork, OnnxNetwork
from flipopt.problem import scale_of


@dataclass(frozen=True, eq=False)
class Audited:
    """Inputs X (rows, n_inputs), which may hold NaN, and what is known of them.

    ``images`` (rows, \\*shape) and ``features`` are for pictures of a network on wavelet coefficients, ``shape`` is
    that of inputs that are pixels; ``faults`` say which rows are not numbers.
    """

    network: DenseNetwork | OnnxNetwork
    X: Array
    labels: Array | None
    names: tuple[str, ...]
    units: tuple[str, ...] | None
    classes: tuple[str, ...] | None
    images: Array | None
    features: WaveletFeatures | None
    shape: tuple[int, ...] | None
    faults: list[str]

    @property
    def described(self) -> dict[str, Any]:
        """As arguments of the report."""
        return {
            "feature_names": self.names,
            "units": self.units,
            "class_names": self.classes,
            "images": self.images,
            "features": self.features,
            "shape": self.shape,
        }

    def measured(self, scaled: bool, bounds: tuple[float, float] | None) -> dict[str, Any]:
        """The options of a distance: weights from the inputs, bounds of every feature."""
        found: dict[str, Any] = {}
        if scaled:
            sound = self.X[np.isfinite(self.X).all(axis=1)]
            found["weights"] = scale_of(sound)
        if bounds is not None:
            found["bounds"] = bounds
        return found


def page_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --out of a command that writes a page."""
    text = "The .html file to write; it needs no other file and no network."
    return out_option(text, "report.html", suffixes=(".html", ".htm"))(command)


def picture_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How inputs look."""
    path = click.Path(path_type=Path)
    text = "The images that DATA are features of: .npz (array images) or .npy."
    command = click.option("--shape", help="Of inputs that are pixels: 28x28, 32x32x3 or 3x32x32.")(command)
    return click.option("--images", type=path, help=text)(command)


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that both commands have."""
    path = click.Path(path_type=Path)
    options = (
        click.option("--labels", help="True classes: a .npy, .npz, .csv or .parquet file, or a column of DATA."),
        picture_options,
        click.option("--names", help="Of the classes: a,b,c, or a file with one a line."),
        click.option("--units", type=path, help="Of the features: a .csv file with a line feature,unit for each."),
        click.option("--scaled", is_flag=True, help="Distances in spreads of the features, whatever their units."),
        click.option("--bounds", nargs=2, type=float, help="Lower and upper bound of every feature."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_audited(
    net: str,
    data: Path | None,
    labels: str | None,
    images: Path | None,
    shape: str | None,
    names: str | None,
    units: Path | None,
    rows: int | None,
) -> Audited:
    """Everything from its files; without DATA a shipped network's own images."""
    network = open_network(net)
    shipped = load_shipped(net) if net in SHIPPED else None
    raw = _raw_images(data)
    truth: Array | None
    if data is None:
        if shipped is None:
            raise InputError(
                "DATA: expected a file of inputs, found none; only shipped networks have inputs of their own"
            )
        points, columns, truth, raw = shipped.X, _numbered(network.n_inputs), shipped.labels, shipped.images
    elif raw is not None:
        points, columns = _inputs_of(raw, network, shipped, data), _numbered(network.n_inputs)
        truth = None if labels is None else _labels(labels, data, len(points))
    else:
        column = None if labels is None or Path(labels).suffix else labels
        points, columns = read_table(data, network.n_inputs, without=column)
        truth = None if labels is None else _labels(labels, data, len(points))
    if data is None and labels is not None:
        truth = _labels(labels, Path(), len(points))
    pictured = raw if images is None else _images(images)
    if pictured is not None and len(pictured) != len(points):
        raise FileFormatError(f"{images}: expected {len(points)} images, one a row of DATA, found {len(pictured)}")
    part = slice(rows)
    features = shipped.features if shipped is not None and pictured is not None else None
    classes = names_of(names) or (shipped.classes if shipped is not None else None)
    return Audited(
        network=network,
        X=points[part],
        labels=None if truth is None else truth[part],
        names=columns,
        units=None if units is None else _units(units, columns),
        classes=classes,
        images=None if pictured is None else pictured[part],
        features=features,
        shape=_shape(shape, shipped, network.n_inputs),
        faults=usable(points[part], columns)[1],
    )


def _numbered(n_inputs: int) -> tuple[str, ...]:
    return tuple(f"x{k}" for k in range(n_inputs))


def _raw_images(data: Path | None) -> Array | None:
    """The array ``images`` of a .npz file that has no inputs besides."""
    if data is None or data.suffix != ".npz":
        return None
    arrays = read_npz(data, finite=False)
    return None if "X" in arrays or "features" in arrays else arrays.get("images")


def _inputs_of(images: Array, network: DenseNetwork | OnnxNetwork, shipped: Shipped | None, data: Path) -> Array:
    """The inputs of raw images: features of a shipped network, or pixels in [0, 1] as a network takes them."""
    if images.dtype.kind not in "uif" or images.ndim not in (3, 4):
        raise FileFormatError(f"{data}: expected images (rows, height, width[, channels]), found shape {images.shape}")
    if shipped is not None and shipped.features is not None:
        return np.asarray(shipped.features.transform(images))
    pixels = images / 255 if images.dtype == np.uint8 else images.astype(np.float64)
    shape = tuple(getattr(network, "input_shape", ()))
    if pixels.ndim == 4 and len(shape) == 3 and pixels.shape[3] == shape[0] and pixels.shape[1:] != shape:
        pixels = np.moveaxis(pixels, 3, 1)
    if pixels[0].size != network.n_inputs:
        raise FileFormatError(f"{data}: expected images of {network.n_inputs} numbers, found shape {images.shape}")
    return np.asarray(pixels.reshape(len(pixels), -1), dtype=np.float64)


def _images(path: Path) -> Array:
    if path.suffix == ".npy":
        return read_npy(path)
    arrays = read_npz(path)
    if "images" not in arrays:
        raise FileFormatError(f"{path}: expected an array images, found {listed(arrays) or 'nothing'}")
    return arrays["images"]


def _labels(labels: str, data: Path, rows: int) -> Array:
    """A file of labels, or a column of DATA."""
    if Path(labels).suffix in (".npy", ".npz", ".csv", ".parquet"):
        return read_labels(labels, rows)
    column = read_column(data, labels) if data.suffix else None
    if column is None:
        raise InputError(
            f"--labels: expected a .npy, .npz, .csv or .parquet file, or a column of DATA, found {labels!r}"
        )
    if column.shape != (rows,):
        raise InputError(f"--labels: expected {rows} labels, one a row of DATA, found shape {column.shape}")
    return column


def names_of(names: str | None) -> tuple[str, ...] | None:
    """The names of classes that the option --names has, or the file that it names."""
    if names is None:
        return None
    if Path(names).suffix in (".txt", ".csv"):
        return tuple(line[0].strip() for line in csv_lines(Path(names)))
    return tuple(name.strip() for name in names.split(","))


def _units(path: Path, columns: tuple[str, ...]) -> tuple[str, ...]:
    """A unit for each feature, empty where the file has none."""
    found: dict[str, str] = {}
    for line in csv_lines(path):
        if len(line) != 2:
            raise FileFormatError(f"{path}: expected lines of feature and unit, found {len(line)} cells")
        found[line[0].strip()] = line[1].strip()
    unknown = [name for k, name in enumerate(found) if name not in columns and not (k == 0 and name == "feature")]
    if unknown:
        raise FileFormatError(f"{path}: expected features such as {listed(columns)}, found {plain(unknown[0])!r}")
    return tuple(found.get(name, "") for name in columns)


def _shape(text: str | None, shipped: Shipped | None, n_inputs: int) -> tuple[int, ...] | None:
    if text is None:
        plain_pixels = shipped is not None and shipped.features is None
        return tuple(shipped.images.shape[1:]) if plain_pixels and shipped is not None else None
    shape = sides_of(text)
    if int(np.prod(shape)) != n_inputs:
        raise InputError(f"--shape: expected {n_inputs} pixels, as the network has inputs, found {text}")
    return shape


def sides_of(text: str) -> tuple[int, ...]:
    """The sides that the option --shape names."""
    sides = text.lower().split("x")
    if not all(side.isdigit() and 0 < len(side) < 6 for side in sides) or len(sides) not in (2, 3):
        raise InputError(f"--shape: expected sides such as 28x28 or 3x32x32, found {text!r}")
    return tuple(int(side) for side in sides)
