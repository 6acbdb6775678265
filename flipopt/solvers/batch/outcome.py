"""Where the problems of a batch have ended, and what several attempts at them come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.problem import FlipBatch
from flipopt.results import SAME_DISTANCE, better


@dataclass
class Outcome(Columns):
    """Where the problems ended, one entry each.

    Attributes
    ----------
    x
        The points, (problems, n_inputs).
    solved, dropped
        Whether the KKT conditions hold there to the tolerance, and whether the problem was given up.
    limited, late
        Whether a limit on iterations or time stopped it, and whether it was the time.
    solver, words
        Who found the point, and how that ended if it was another solver.
    iterations, forward, backward
        What it took: iterations, forward and backward passes.
    """

    x: Array
    solved: Array
    dropped: Array
    limited: Array
    late: Array
    solver: Array
    words: Array
    iterations: Array
    forward: Array
    backward: Array

    @classmethod
    def starting(cls, points: Array) -> Self:
        """Every problem at its starting point, (problems, n_inputs), nothing done yet."""
        zeros = np.zeros(len(points), dtype=np.int64)
        flags, costs = (zeros > 0 for _ in range(4)), (zeros.copy() for _ in range(3))
        names = (np.full(len(points), name, dtype=object) for name in ("batch", ""))
        return cls(points.copy(), *flags, *names, *costs)

    @property
    def left(self) -> Array:
        """Indices of the problems that are neither solved nor given up."""
        return np.flatnonzero(~self.solved & ~self.dropped)

    def go_on(self, rows: Array, part: Outcome) -> None:
        """The problems ``rows`` went on to where ``part`` is; the cost adds up."""
        self._take_over(rows, part, np.ones(len(rows), dtype=bool))

    def improve(self, batch: FlipBatch, rows: Array, other: Outcome) -> tuple[Array, Array]:
        """The better of what is known and of ``other``, another attempt at the problems ``rows`` of the batch.

        Returns which of them are at the same distance, and which have been taken over, as masks (rows,).
        """
        before, after = self.distances(batch, rows), other.distances(batch.take(rows))
        solved = self.solved[rows]
        same = solved & other.solved & (np.abs(after - before) <= SAME_DISTANCE * before)
        nearer = better(other.solved, after, solved, before) & ~same & ~other.dropped
        self._take_over(rows, other, nearer)
        return same, nearer

    def distances(self, batch: FlipBatch, rows: Array | slice = slice(None)) -> Array:
        """From the inputs of the problems ``rows`` of the batch."""
        return batch.take(rows).distances(self.x[rows])

    def _take_over(self, rows: Array, part: Outcome, chosen: Array) -> None:
        for name in self.names():
            if name in COSTS:
                getattr(self, name)[rows] += getattr(part, name)
            else:
                getattr(self, name)[rows[chosen]] = getattr(part, name)[chosen]


COSTS = ("iterations", "forward", "backward")
"""The fields that add up; the others say how a problem ended."""
