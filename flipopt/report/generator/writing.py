"""The page about a query of a generator: sections in the order in which they are read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.writing import require_place
from flipopt.generative import Discriminator, Generator
from flipopt.report.audit.section import number
from flipopt.report.audit.writing import Contents, made, write_contents
from flipopt.report.generator.alike import alike, common
from flipopt.report.generator.asked import query, samples, units
from flipopt.report.generator.reach import reach, tree
from flipopt.report.generator.study import Explored, Exploring
from flipopt.report.generator.study import study as studied

FOOTER = (
    "Written by flipopt. The signs of all samples were checked by another computation than the one that found them."
)


def write_generator_report(
    path: str | Path,
    G: Generator,
    z0: ArrayLike,
    layers: Sequence[int] | None = None,
    *,
    how: Exploring | None = None,
    discriminator: Discriminator | None = None,
    classifier: Any = None,
    class_names: Sequence[str] | None = None,
    features: Any = None,
    shape: Sequence[int] | None = None,
    title: str | None = None,
    progress: bool = False,
) -> Explored:
    """Look at a query of a generator layer by layer, and write what was found as one self-contained page.

    Parameters
    ----------
    path
        The .html file to write. It opens from disk and needs no network.
    G, z0
        The generator and the query, a latent vector (d,).
    layers
        Numbers of layers, from 1; by default all but one that makes the pixels themselves.
    how
        With which settings, an :class:`Exploring`.
    discriminator
        For the similarity of images in its layers, equation (2).
    classifier, class_names, features
        A network of images of pixels from 0 to 1, which says what class the samples have; what its classes are called;
        and for a network on wavelet coefficients its ``features``.
    shape
        Of images that come as a row of numbers: (28, 28), (32, 32, 3) or (3, 32, 32).
    title
        Of the page.
    progress
        Show progress bars.

    Returns
    -------
    Explored
        What was found: every layer's essential units, samples and measures.
    """
    began = time.perf_counter()
    require_place(Path(path))
    found = studied(
        G, z0, layers, how=how, discriminator=discriminator, classifier=classifier, class_names=class_names,
        features=features, shape=shape, progress=progress,
    )  # fmt: skip
    write_contents(path, "page.html", contents(found, title or "A query of a generator"), began)
    return found


def contents(study: Explored, title: str) -> Contents:
    """Everything that the page says."""
    sections = tuple(part(study) for part in (query, units, samples, common, tree, alike, reach))
    return Contents(title, made(), FOOTER, _tiles(study), sections, {})


def _tiles(study: Explored) -> tuple[tuple[str, str], ...]:
    """The few numbers that come first."""
    found = [one.exploration for one in study.layers]
    needed = [one.essential.mask.sum() / max(one.essential.active, 1) for one in study.layers]
    return (
        (f"{study.generator.n_latent:,}", "latent numbers"),
        (f"{len(study.layers)}", "layers looked at" if len(study.layers) > 1 else "layer looked at"),
        (f"{np.mean(needed):.0%}", "of the active units are essential" + (", on average" if len(needed) > 1 else "")),
        (f"{sum(len(one.accepted) - 1 for one in found):,}", "samples"),
        (f"{np.mean(np.concatenate([one.verified for one in found])):.0%}", "of their signs verified"),
        (number(float(np.mean([one.deviation.value for one in study.layers])), 2), "mean deviation of a pixel"),
    )
