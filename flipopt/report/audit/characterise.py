"""The boundaries of a model as one page: what the model is, and what is between its classes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline import Instances, Measuring, Profile
from flipopt.common.errors import InputError
from flipopt.common.writing import require_place
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks.protocol import Network
from flipopt.report.audit.boundaries import boundaries, measure
from flipopt.report.audit.model import model
from flipopt.report.audit.section import number, share
from flipopt.report.audit.study import Given
from flipopt.report.audit.writing import Contents, made, write_contents

FOOTER = "Written by flipopt. A closest flip point is called verified where an independent check found it stationary."


def characterise(
    path: str | Path,
    network: Network,
    X: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    pairs: Any = "all",
    instances: Instances | None = None,
    measuring: Measuring | None = None,
    images: Any = None,
    features: WaveletFeatures | None = None,
    shape: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    title: str | None = None,
    run: str | Path | None = None,
    executor: Any = None,
    progress: bool = False,
) -> Profile:
    """Measure the boundaries between classes, and write what was found as one self-contained page.

    The page has what the model is, heat maps of distances, success, IDC and EDC of all pairs of classes, and the most
    fragile pairs with a sample of each and what flips it.

    Parameters
    ----------
    path
        The .html file to write. It opens from disk and needs no network.
    network, X, labels
        As in :func:`write_report`; without labels the classes are the predicted ones.
    pairs, instances, run, executor
        As in :func:`flipopt.borderline.profile`: which pairs, borderline instances of another method to measure IDC and
        EDC on, a folder that keeps what is finished, and who computes.
    measuring
        How much is measured, a :class:`~flipopt.borderline.Measuring`.
    images, features, shape, feature_names, units, class_names
        As in :func:`write_report`.
    title
        Of the page.
    progress
        Show a progress bar.

    Returns
    -------
    Profile
        What was measured, by the names of the page.
    """
    began = time.perf_counter()
    require_place(Path(path))
    options = Measuring() if measuring is None else measuring
    if not isinstance(options, Measuring):
        raise InputError(f"measuring: expected Measuring, found {type(measuring).__name__}")
    given = Given.read(network, X, labels, images, features, shape, feature_names, units, class_names)
    found = measure(given, options, pairs, instances, run, executor, progress)
    sections = (model(given), boundaries(given, found, options, instances))
    name = title or "Boundaries of a classifier"
    write_contents(path, "page.html", Contents(name, made(), FOOTER, _tiles(given, found), sections, {}), began)
    return found


def _tiles(given: Given, found: Profile) -> tuple[tuple[str, str], ...]:
    """The few numbers that come first."""
    tiles = [(f"{len(given):,}", "inputs")]
    if given.wrong is not None and given.sound.any():
        tiles.append((share(float(1 - given.wrong[given.sound].mean())), "right"))
    tiles.append((f"{len(found):,}", "ordered pairs of classes"))
    for name, words in (
        ("closest_distance", "median distance to the closest flip"),
        ("rpbs_success", "of random pairs end on the boundary"),
        ("idc", "median IDC"),
    ):
        values = getattr(found, name)[np.isfinite(getattr(found, name))]
        if len(values):
            middle = float(np.median(values))
            tiles.append((share(middle) if name == "rpbs_success" else number(middle), words))
    return tuple(tiles)
