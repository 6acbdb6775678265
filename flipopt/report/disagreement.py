"""Pictures of who disagrees where: the heat map of Figure 4 and the curves of Figure 2 of Vlaar (004)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_sequence
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.disagreement import Curves, Study

MODELS, PEOPLE = ("#9ecae1", "#3182bd", "#08519c"), ("#fcae91", "#de2d26", "#a50f15")
"""Where only models, or only people, are split over two, three or more classes."""
AGREE, BOTH, DIFFERENT = "#bdbdbd", "#ffffff", "#fdae6b"
SPLIT = ("2 classes", "3 classes", "4 or more")


def draw_disagreement(path: str | Path, study: Study, rows: Sequence[str] | None = None) -> None:
    """A square an image, a row for each block of images, to ``path`` (.png, .pdf, .svg): Figure 4.

    Blue where models disagree and people do not, red where people do and models do not, the darker the more classes
    there are; white where both do, grey where neither does, orange where both agree on different classes.

    Parameters
    ----------
    path
        The file.
    study
        What :func:`flipopt.disagreement.study` found. Blocks of one size are rows; else rows have a common length.
    rows
        Names of the rows.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    order, width = _places(study.blocks)
    count = -(-len(order) // width)
    names = None if rows is None else [str(name) for name in as_sequence(rows, "rows", "names")]
    if names is not None and len(names) != count:
        raise InputError(f"rows: expected {count} names, found {len(names)}")
    colours = _colours(study)
    figure = Figure(figsize=(max(5.0, 0.34 * width + 3.0), max(2.4, 0.34 * count + 0.9)), layout="constrained")
    axis: Any = figure.subplots()
    for place, image in enumerate(order):
        y, x = divmod(place, width)
        axis.add_patch(_square(x, y, colours[image]))
    axis.set(xlim=(-0.6, width - 0.4), ylim=(count - 0.4, -0.6), aspect="equal", xticks=[])
    axis.set_yticks(range(count) if names else [], names or [], fontsize=8)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    found = [(colour, words, colours.count(colour)) for colour, words in _words(study).items()]
    patches = [
        Patch(facecolor=colour, edgecolor="0.5", lw=0.5, label=f"{words}: {number}")
        for colour, words, number in found
        if number
    ]
    figure.legend(handles=patches, loc="outside right center", frameon=False, fontsize=8)
    people = "" if study.labels is None else f", {len(study.labels)} people"
    axis.set_title(f"{len(study.predicted)} models{people}, {len(order)} images", fontsize=10)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150, bbox_inches="tight")


def _places(blocks: Array) -> tuple[Array, int]:
    """The images in the order of their squares, and squares in a row."""
    sizes = np.bincount(blocks)
    width = int(sizes[0]) if len(set(sizes.tolist())) == 1 and sizes[0] > 1 else 0
    if not width:
        width = max(1, round(1.5 * len(blocks) ** 0.5))
        return np.arange(len(blocks)), width
    return np.argsort(blocks, kind="stable"), width


def _colours(study: Study) -> list[str]:
    """One an image."""
    people = np.ones_like(study.models.split) if study.people is None else study.people.split
    different = np.zeros(len(people), dtype=bool) if study.different is None else study.different
    return [
        BOTH if a > 1 and b > 1 else MODELS[min(a, 4) - 2] if a > 1 else PEOPLE[min(b, 4) - 2] if b > 1
        else DIFFERENT if apart else AGREE
        for a, b, apart in zip(study.models.split, people, different, strict=True)
    ]  # fmt: skip


def _words(study: Study) -> dict[str, str]:
    """What colours mean."""
    if study.labels is None:
        return {**{c: f"models give {n}" for c, n in zip(MODELS, SPLIT, strict=True)}, AGREE: "models agree"}
    return {
        **{c: f"only models (type A), {n}" for c, n in zip(MODELS, SPLIT, strict=True)},
        **{c: f"only people (type C), {n}" for c, n in zip(PEOPLE, SPLIT, strict=True)},
        BOTH: "both disagree",
        AGREE: "both agree",
        DIFFERENT: "both agree, on different classes",
    }


def _square(x: int, y: int, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=colour, edgecolor="0.6", lw=0.4)


def draw_curves(path: str | Path, curves: Curves) -> None:
    """Shares of type A and type C, or without people of images on which models disagree, against accuracy: Figure 2.

    A curve a name, with its standard deviation over repeats; to ``path`` (.png, .pdf, .svg).
    """
    from matplotlib.figure import Figure

    panels = [("type_a", "type A"), ("type_c", "type C")] if np.isfinite(curves.type_a).any() else []
    panels = panels or [("disagree", "models disagree")]
    figure = Figure(figsize=(4.4 * len(panels) + 0.6, 3.8), layout="constrained")
    for axis, (column, words) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        values, deviation = getattr(curves, column), getattr(curves, f"{column}_deviation")
        for name in dict.fromkeys(curves.name.tolist()):
            rows = np.flatnonzero(curves.name == name)
            rows = rows[np.argsort(curves.accuracy[rows], kind="stable")]
            spread = 100 * np.where(curves.repeats[rows] > 1, deviation[rows], 0.0)
            axis.errorbar(
                curves.accuracy[rows], 100 * values[rows], spread, marker="o", ms=4, capsize=3, lw=1.2, label=str(name)
            )
        axis.set(xlabel="test accuracy (%)", ylabel=f"images: {words} (%)")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)
