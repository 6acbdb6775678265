"""What is tuned in the descent over linear pieces."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PieceOptions:
    """How far the descent goes (``python -m benchmarks batch --parts sensitivity``). Rounding is not an option."""

    pieces: int = 500
    """Pieces after which a descent stops where it is: a safeguard, not a tuned value."""
    neighbours: int = 20
    """Walls around a local minimum that are crossed against the slope, the nearest ones."""
    ascent: float = 1.05
    """The distance behind such a wall, at most, relative to that of the local minimum."""
    linearisations: int = 20
    """Newton steps to a first point on the boundary: if it takes more, they mostly go round in circles."""
    approaches: int = 6
    """Descents on the violation of the goal if those steps fail."""
    elastic: float = 0.1
    """In such a descent, a violation that a step of this length would mend counts as much as a distance of 1."""
    far: float = 10.0
    """Points farther away than this many times the points' own size are not looked for: a safeguard."""
