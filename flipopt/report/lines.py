"""What a network says along lines, as in Figures 2 to 4 of Yousefzadeh and O'Leary (2019)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_sequence
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.paths import Line

COLOURS = ("#2166ac", "#b2182b", "#1b7837", "#762a83", "#e08214", "#35978f", "#8c510a", "#c51b7d")
WORTH_DRAWING = 0.05
"""Largest probability along a line from which on a class has a curve."""
COLUMNS = 3
BEHIND_NAMES = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}


def draw_line(
    path: str | Path,
    lines: Line | Sequence[Line],
    classes: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    ends: tuple[str, str] = ("a", "b"),
    mode: str = "adaptive",
    points: int = 401,
) -> None:
    """Draw probabilities against the distance from a, a panel a line, to ``path`` (.png, .pdf, .svg).

    Where the predicted class changes there is a dotted line, and a grey one at the ends a and b of a line that goes on
    beyond them. ``classes`` are the names of the classes, ``titles`` those of the panels, ``ends`` those of a and b;
    ``mode`` is how crossings are found.
    """
    from matplotlib.figure import Figure

    shown = [lines] if isinstance(lines, Line) else list(as_sequence(lines, "lines", "Line"))
    if not shown or not all(isinstance(line, Line) for line in shown):
        raise InputError("lines: expected a Line or several, found " + ("none" if not shown else "something else"))
    if titles is not None and len(titles) != len(shown):
        raise InputError(f"titles: expected {len(shown)}, one a line, found {len(titles)}")
    columns = 2 if len(shown) in (2, 4) else min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(1.0 + 3.6 * columns, 0.5 + 2.5 * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    labels: dict[str, Any] = {}
    for k, (axis, line) in enumerate(zip(panels, shown, strict=False)):
        labels |= _draw(axis, line, line.crossings(mode).alpha, classes, ends, points)
        axis.set_title(titles[k] if titles is not None else "", fontsize=9)
        axis.set(xlabel=f"distance from {ends[0]}", ylabel="probability" if k % columns == 0 else "")
    for axis in panels[len(shown) :]:
        axis.set_axis_off()
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=len(labels), frameon=False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _draw(
    axis: Any, line: Line, crossings: Array, classes: Sequence[str] | None, ends: tuple[str, str], points: int
) -> dict[str, Any]:
    """The curves of one line; what goes into the legend, by name."""
    # The places of crossings among the points, so that curves meet where they should.
    alpha = np.union1d(line.alphas(points), crossings)
    z = line.probabilities_at(alpha)
    labels: dict[str, Any] = {}
    for k in map(int, np.flatnonzero(z.max(axis=0) >= WORTH_DRAWING)):
        name = str(classes[k]) if classes is not None else f"class {k}"
        (labels[name],) = axis.plot(alpha * line.length, z[:, k], color=COLOURS[k % len(COLOURS)], lw=1.4)
    if line.beyond > 0:
        for place, name in zip((0.0, line.length), ends, strict=True):
            axis.axvline(place, color="0.8", lw=2.5, zorder=0)
            axis.text(place, 1.06, name, ha="center", va="center", fontsize=9, bbox=BEHIND_NAMES)
    for place in crossings:
        labels["class changes"] = axis.axvline(place * line.length, color="0.3", lw=1.0, ls=":", zorder=1)
    axis.set(ylim=(-0.02, 1.12 if line.beyond > 0 else 1.02), xlim=(alpha[0] * line.length, alpha[-1] * line.length))
    axis.spines[["top", "right"]].set_visible(False)
    return labels
