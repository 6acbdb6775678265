"""Results as HTML, for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

FIRST = 10
"""Entries of a table that are shown."""


def result_html(flip: Any) -> str:
    """A FlipResult as a table of two columns."""
    check = flip.check
    rows = [
        ("status", f"{flip.status.name}: {flip.status.message}"),
        ("distance", _number(flip.distance)),
        ("classes", " and ".join(map(str, flip.classes))),
        ("check", "none" if check is None else f"gap {check.boundary_gap:.1e}, KKT residual {check.kkt_residual:.1e}"),
        ("solver", f"{flip.solver}, {flip.evaluations.total} evaluations"),
    ]
    return _table((), rows)


def table_html(flips: Any) -> str:
    """The first entries of a FlipTable, and how all of them ended."""
    head = ("row", "classes", "distance", "status", "gap", "KKT residual")
    rows = [
        (
            f"{flips.row[k]}",
            f"{flips.classes[k, 0]} → {flips.classes[k, 1]}",
            _number(flips.distance[k]),
            flips.status[k].name,
            f"{flips.boundary_gap[k]:.1e}",
            f"{flips.kkt_residual[k]:.1e}",
        )
        for k in range(min(FIRST, len(flips)))
    ]
    return f"{_table(head, rows)}<p>{escape(described(flips))}</p>"


def described(flips: Any) -> str:
    """How the entries of a FlipTable ended, in a line."""
    counts = Counter(status.name for status in flips.status)
    ended = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    distances = flips.distance[np.isfinite(flips.distance)]
    median = f"; median distance {_number(float(np.median(distances)))}" if len(distances) else ""
    return f"{len(flips)} entries{': ' if ended else ''}{ended}{median}"


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "none"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>" if head else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{top}{body}</table>"
