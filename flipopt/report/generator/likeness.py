"""What images have in common, in words: how much their pixels deviate, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.report.audit.section import number, share

HARDLY = 0.02
"""A pixel that deviates by less, as a share of the range of pixels, hardly differs: 5 of 255 levels of grey."""
PLACES = (
    ("top left", "top", "top right"),
    ("left", "centre", "right"),
    ("bottom left", "bottom", "bottom right"),
)
FEWEST = 4
"""Bright pixels that a ninth of the image must have, to be spoken of."""


@dataclass(frozen=True)
class Likeness:
    """What images of samples have in common; deviations are shares of the range of pixels.

    Attributes
    ----------
    deviation
        Standard deviation, the mean over pixels.
    same
        Share of the pixels that hardly differ.
    half
        Share of the pixels that hold half of the variance: the smaller, the more local it is.
    bright, edges, dark
        Mean deviation where the query is bright, where it is dark, and where the two meet; None without such pixels or
        without pictures.
    steady, varied
        The ninths of the image whose bright pixels deviate least and most, each with the deviation; None if there are
        not two.
    """

    deviation: float
    same: float
    half: float
    bright: float | None = None
    edges: float | None = None
    dark: float | None = None
    steady: tuple[str, float] | None = None
    varied: tuple[str, float] | None = None

    def words(self) -> list[str]:
        """A sentence each."""
        found = [
            f"A pixel deviates by {number(self.deviation, 2)} of the range from black to white on average; "
            f"{share(self.same)} of the pixels hardly differ (by less than {HARDLY}).",
            f"Half of the variance is in {share(self.half)} of the pixels.",
        ]
        parts = (("where it is bright", self.bright), ("where it is dark", self.dark), ("at the edges", self.edges))
        known = [f"{number(value, 2)} {name}" for name, value in parts if value is not None]
        if known:
            found.append(f"By what the query shows: {', '.join(known)}.")
        if self.steady is not None and self.varied is not None:
            found.append(
                f"Of its bright pixels those at the {self.steady[0]} deviate least ({number(self.steady[1], 2)}), "
                f"those at the {self.varied[0]} most ({number(self.varied[1], 2)})."
            )
        return found


def likeness(pixels: Array, query: Array | None, span: float) -> Likeness:
    """Of standard deviations a pixel (any shape), and the query's image (height, width) from 0 to 1 where ``pixels``
    are (height, width) too; ``span`` is the range of pixels."""
    deviations = np.asarray(pixels, dtype=np.float64) / (span or 1.0)
    overall = Likeness(float(deviations.mean()), float((deviations < HARDLY).mean()), half(deviations))
    if query is None:
        return overall
    bright = query > 0.5
    edges = edge(bright)
    kinds = {"bright": bright & ~edges, "edges": edges, "dark": ~bright & ~edges}
    means = {name: float(deviations[where].mean()) if where.any() else None for name, where in kinds.items()}
    ninths = by_place(deviations, bright)
    least, most = (min(ninths, key=ninths.__getitem__), max(ninths, key=ninths.__getitem__)) if ninths else ("", "")
    known = replace(overall, bright=means["bright"], edges=means["edges"], dark=means["dark"])
    if least == most:
        return known
    return replace(known, steady=(least, ninths[least]), varied=(most, ninths[most]))


def half(deviations: Array) -> float:
    """The smallest share of entries that holds half of the sum of squares; 0 if there is none."""
    squares = np.sort(deviations.reshape(-1) ** 2)[::-1]
    total = squares.cumsum()
    return float((np.searchsorted(total, total[-1] / 2) + 1) / len(squares)) if total[-1] > 0 else 0.0


def edge(bright: Array) -> Array:
    """Pixels (height, width) bool beside, above or below one of the other kind."""
    found = np.zeros_like(bright)
    for axis in (0, 1):
        differs = np.diff(bright, axis=axis)
        first, second = (slice(None, -1), slice(1, None))
        at = (slice(None),) * axis
        found[(*at, first)] |= differs
        found[(*at, second)] |= differs
    return found


def by_place(deviations: Array, bright: Array) -> dict[str, float]:
    """Mean deviation of the bright pixels in each ninth of the image that has some."""
    found = {}
    rows, columns = (np.array_split(np.arange(side), 3) for side in bright.shape)
    for names, down in zip(PLACES, rows, strict=True):
        for name, across in zip(names, columns, strict=True):
            part = np.ix_(down, across)
            if bright[part].sum() >= FEWEST:
                found[name] = float(deviations[part][bright[part]].mean())
    return found
