"""The audit of a model as one page: sections in the order in which they are read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline import Measuring
from flipopt.common.checks import Array, as_number, as_whole
from flipopt.common.errors import InputError
from flipopt.common.writing import require_place
from flipopt.features.wavelets import WaveletFeatures
from flipopt.flips.many import closest_flip_points
from flipopt.networks.protocol import Network
from flipopt.report.audit.advice import advice, entries
from flipopt.report.audit.boundaries import boundaries as section_between
from flipopt.report.audit.boundaries import measurable, measure, nothing_between
from flipopt.report.audit.bounds import proved, require_provable, with_proofs
from flipopt.report.audit.classes import classes
from flipopt.report.audit.connectivity import connectivity
from flipopt.report.audit.details import ALPHAS, columns, details, listed
from flipopt.report.audit.directions import directions
from flipopt.report.audit.distances import distances
from flipopt.report.audit.fragile import fragile
from flipopt.report.audit.inputs import inputs
from flipopt.report.audit.model import model
from flipopt.report.audit.section import Section, number, share
from flipopt.report.audit.study import Given, Study
from flipopt.report.audit.trust import trust
from flipopt.report.rendering import write_html
from flipopt.results import FlipTable, Status

BETWEEN, PROOFS = "_boundaries", "_proofs"
"""Folders within that of a run; readers of Parquet pass over names that begin with _."""


@dataclass(frozen=True)
class Contents:
    """All that the page shows.

    Attributes
    ----------
    title, made, footer
        Of the page, when and by what it was made, and its last words.
    tiles
        The few numbers that come first, each with what it is.
    sections
        A :class:`Section` each question, in the order of the page.
    data
        What the script of the page draws.
    """

    title: str
    made: str
    footer: str
    tiles: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    data: dict[str, Any]


def write_report(
    path: str | Path,
    network: Network,
    X: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    flips: FlipTable | None = None,
    images: Any = None,
    features: WaveletFeatures | None = None,
    shape: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    title: str | None = None,
    run: str | Path | None = None,
    progress: bool = False,
    stored: int = 200,
    sample: int = 40,
    seed: int = 0,
    boundaries: Measuring | bool = False,
    prove: float | None = None,
    **options: Any,
) -> Contents:
    """Audit a classifier on inputs of your own, and write what was found as one self-contained page.

    Parameters
    ----------
    path
        The .html file to write. It opens from disk and needs no network.
    network, X
        As in :func:`~flipopt.closest_flip_points`. A row that is not finite is named and left out.
    labels
        True classes (rows,), as positions or as names of classes. Without them nothing is said of mistakes.
    flips
        Flip points of rows of X that are there already; by default they are computed.
    images, features, shape
        For inputs that are images: the shape of one, such as (28, 28), if the network's ``input_shape`` does not say
        it. For a network on wavelet coefficients: its ``features``, and the images (rows, \\*shape) themselves.
    feature_names, units, class_names
        What things are called; by default as the network or the table X has them, and without units.
    title
        Of the page.
    run
        A folder that keeps the flip points that are finished, so that the same call goes on where it was stopped.
    progress
        Show progress bars.
    stored
        Inputs whose line to the flip the page keeps for clicks.
    sample
        Inputs of each class whose lines are looked at for connectivity.
    seed
        Of the samples.
    boundaries
        Whether to measure the boundaries between all pairs of classes too, which takes longer: as
        :class:`~flipopt.borderline.Measuring` says, or by default with the same bounds and seed.
    prove
        Seconds an input to prove that its flip is the closest, for ReLU networks in the 2-norm without bounds; see
        :func:`flipopt.proofs.prove_flips`.
    options
        All further ones are those of :func:`~flipopt.closest_flip_point`: bounds, weights, norm, frozen, ...

    Returns
    -------
    Contents
        What the page says: every section has its ``answer``.
    """
    began = time.perf_counter()
    require_place(Path(path))
    given = Given.read(
        network, X, labels, images, features, shape, feature_names, units, class_names, **options,
    )  # fmt: skip
    stored, sample, seed = as_whole(stored, "stored"), as_whole(sample, "sample", least=2), as_whole(seed, "seed")
    if not isinstance(boundaries, bool | Measuring):
        raise InputError(f"boundaries: expected True, False or Measuring, found {type(boundaries).__name__}")
    if prove is not None:
        prove = as_number(prove, "prove", least=0.0)
        require_provable(given)
    if flips is None:
        flips = closest_flip_points(given.network, given.X, progress=progress, run=run, **options)
    study = Study.of(given, flips)
    if prove is not None:
        study = with_proofs(study, prove, None if run is None else Path(run) / PROOFS, progress)
    extra = () if boundaries is False else (_between(study, boundaries, seed, run, progress),)
    found = contents(study, title or "Audit of a classifier", stored, sample, seed, progress, extra)
    write_contents(path, "audit.html", found, began)
    return found


def write_contents(path: str | Path, template: str, found: Contents, began: float) -> None:
    """What a page shows, whose making ``began`` at a time of ``time.perf_counter``."""
    footer = f"{found.footer} Made in {number(time.perf_counter() - began, 2)} seconds."
    parts = {"title": found.title, "made": found.made, "tiles": found.tiles, "sections": found.sections}
    write_html(path, template, found.data, **parts, footer=footer)


def made() -> str:
    """When, and by what."""
    return f"{datetime.now(UTC):%d %B %Y}, flipopt {version('flipopt')}."


def _between(study: Study, asked: Measuring | bool, seed: int, run: str | Path | None, progress: bool) -> Section:
    """The section on boundaries between classes, kept in a folder of its own within the run's."""
    if not measurable(study):
        return nothing_between()
    how = asked if isinstance(asked, Measuring) else Measuring(bounds=study.options.get("bounds"), seed=seed)
    kept = None if run is None else Path(run) / BETWEEN
    return section_between(study, measure(study, how, run=kept, progress=progress), how)


def contents(
    study: Study,
    title: str,
    stored: int,
    sample: int,
    seed: int,
    progress: bool = False,
    extra: tuple[Section, ...] = (),
) -> Contents:
    """Everything that the page says of a study, with ``extra`` sections before the advice."""
    lower, why_not = proved(study, progress)
    joined, alone = connectivity(study, sample, seed, progress)
    todo = advice(study, alone)
    chosen = listed(study, entries(todo, study), stored)
    kept = details(study, chosen)
    sections = (
        model(study),
        distances(study, lower, why_not),
        fragile(study),
        inputs(study, len(kept)),
        classes(study),
        trust(study),
        directions(study),
        joined,
        *extra,
        todo,
    )
    data: dict[str, Any] = {
        "classes": study.classes,
        "rows": columns(study, lower, chosen),
        "statuses": {status.name: status.message for status in Status},
        "details": kept,
        "alphas": ALPHAS.round(4),
        "log": lower is not None and _far_apart(lower, study),
    }
    for section in sections:
        data |= section.data
    footer = "Written by flipopt: every flip point was checked independently of the solver that found it."
    return Contents(title, made(), footer, _tiles(study), sections, data)


def _far_apart(lower: Array, study: Study) -> bool:
    """Whether the proved distances are so much smaller that both are seen on a logarithmic axis only."""
    some = study.found & (lower > 0)
    return bool(some.any() and np.median(lower[some] / study.distance[some]) < 0.05)


def _tiles(study: Study) -> tuple[tuple[str, str], ...]:
    """The few numbers that come first."""
    found = study.distance[study.found]
    tiles = [(f"{len(study):,}", "inputs")]
    if study.wrong is not None and study.sound.any():
        tiles.append((share(float(1 - study.wrong[study.sound].mean())), "right"))
        tiles.append((f"{int(study.wrong.sum()):,}", "mistakes"))
    if len(found):
        tiles.append((number(float(np.median(found))), "median distance to a flip"))
        tiles.append((number(float(found.min())), "smallest distance"))
        sure, how = (study.proved, "proved") if study.searched else (study.flips.success, "verified")
        tiles.append((share(float(sure.mean())), f"{how} closest"))
    return tuple(tiles)
