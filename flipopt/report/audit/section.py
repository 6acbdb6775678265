"""A section of the page, and how numbers are put in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flipopt.explain.matching import counted, percent

__all__ = ["NONE", "Grid", "Section", "counted", "number", "share"]

NONE = "\N{EN DASH}"
"""Where there is no number."""


@dataclass(frozen=True)
class Section:
    """One question and its answer.

    Attributes
    ----------
    name, title
        Of its anchor and template, and as people read it.
    answer
        One sentence that answers the question, or says why it cannot be answered.
    how
        How that was computed.
    facts
        What its template shows; empty where nothing can be said.
    data
        What the script of the page draws.
    folder
        Of its template.
    """

    name: str
    title: str
    answer: str
    how: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "audit"


@dataclass(frozen=True)
class Grid:
    """A table of text: the first column is what a row is about, the others are numbers or words about it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    worded: bool = False
    """Whether the last column is text."""


def number(value: float, digits: int = 3) -> str:
    """A number with so many digits that count: 0.0123, 12.3, 12,300, 1.23e-06."""
    if not np.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    size = int(np.floor(np.log10(abs(value))))
    if -5 < size < digits:
        return f"{value:.{max(0, digits - 1 - size)}f}"
    return f"{value:,.0f}" if digits <= size < 9 else f"{value:.{digits - 1}e}"


def share(part: float, whole: float = 1.0) -> str:
    """A share in per cent: 97.6%, 54%, 0.2%; all and none only if that is exact."""
    if not whole or not np.isfinite(part):
        return NONE
    value = part / whole
    return "<0.1%" if 0 < value < 0.0005 else ">99.9%" if 0.9995 <= value < 1 else percent(value)
