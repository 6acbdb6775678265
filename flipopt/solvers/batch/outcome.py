"""Where the problems of a batch have ended, and what several attempts at them come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch
from flipopt.results import SAME_DISTANCE


@dataclass(frozen=True)
class Outcome:
    """Where the problems ended, one entry each.

    Attributes
    ----------
    x
        The points, (problems, n_inputs).
    solved, dropped
        Whether the KKT conditions hold there to the tolerance, and whether the problem was given up.
    limited, late
        Whether a limit on iterations or time stopped it, and whether it was the time.
    by
        Which other solver has gone on, and how that ended, in words; empty if none has.
    iterations, forward, backward
        What it took: iterations, forward and backward passes.
    """

    x: Array
    solved: Array
    dropped: Array
    limited: Array
    late: Array
    by: Array
    iterations: Array
    forward: Array
    backward: Array

    @classmethod
    def starting(cls, points: Array) -> Self:
        """Every problem at its starting point, (problems, n_inputs), nothing done yet."""
        zeros = np.zeros(len(points), dtype=np.int64)
        solved, dropped, limited, late = (zeros > 0 for _ in range(4))
        by = np.full(len(points), "", dtype=object)
        return cls(points.copy(), solved, dropped, limited, late, by, *(zeros.copy() for _ in range(3)))


ENDS, COSTS = ("x", "solved", "dropped", "limited", "late", "by"), ("iterations", "forward", "backward")
"""The fields that say how a problem ended, and those that add up."""


def put(found: Outcome, rows: Array, part: Outcome) -> None:
    """Take over where the problems ``rows`` went on to; the cost adds up."""
    for name in ENDS:
        getattr(found, name)[rows] = getattr(part, name)
    for name in COSTS:
        getattr(found, name)[rows] += getattr(part, name)


def compare(batch: FlipBatch, found: Outcome, rows: Array, other: Outcome) -> tuple[Array, Array]:
    """Take over what is solved, or else nearer, in ``other``, which is of the problems ``rows``, those of ``batch``.

    Returns which of them are at the same distance, and which have been taken over, as masks (rows,).
    """
    before, after, solved = batch.distances(found.x[rows]), batch.distances(other.x), found.solved[rows]
    same = solved & other.solved & (np.abs(after - before) <= SAME_DISTANCE * before)
    nearer = np.where(solved == other.solved, after < before, other.solved) & ~same & ~other.dropped
    for name in ENDS:
        getattr(found, name)[rows[nearer]] = getattr(other, name)[nearer]
    for name in COSTS:
        getattr(found, name)[rows] += getattr(other, name)
    return same, nearer


def take_best(found: Outcome, rows: Array, again: Outcome, distance: Array) -> None:
    """What further attempts made of the problems ``rows``, one round of all after the other; the cost adds up."""
    rounds = len(distance) // len(rows)
    worth = np.where(again.solved, distance, np.where(again.dropped, 1e300, np.inf)).reshape(rounds, len(rows))
    chosen = worth.argmin(axis=0) * len(rows) + np.arange(len(rows))
    better = again.solved[chosen] | again.dropped[chosen]
    found.x[rows[better]] = again.x[chosen[better]]
    for name in ENDS[1:]:
        getattr(found, name)[rows] = getattr(again, name)[chosen]
    for name in COSTS:
        getattr(found, name)[rows] += getattr(again, name).reshape(rounds, len(rows)).sum(axis=0)
