"""The check of where a batch has ended, and the result that it leads to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.problem import FlipBatch
from flipopt.results import Status
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.prune import waves
from flipopt.verification import verify_batch

PROVED = 1e-3
"""Share of its distance by which a flip that counts as the nearest may be missed."""


@dataclass(frozen=True)
class BatchResult(Columns):
    """What became of a batch of problems, one entry each.

    Attributes
    ----------
    x
        The points, (problems, n_inputs).
    distance
        NaN where the point is not on the boundary.
    status, solver, message
        The check's verdict (a :class:`~flipopt.Status`), who found the point, and how the solve ended.
    kkt_residual, boundary_gap
        What the check found; NaN where it did not look, because the problem was given up.
    forward, backward, iterations
        The cost, of all attempts and starts.
    starts, agreeing
        Starting points tried, and how many of them led to this distance.
    dropped
        Whether the problem was given up because another class of the same input is nearer.
    lower
        What is proved of the distance of the nearest flip of a problem or of its group: it is not less than this. NaN
        where nothing is.
    """

    x: Array
    distance: Array
    status: Array
    solver: Array
    message: Array
    kkt_residual: Array
    boundary_gap: Array
    forward: Array
    backward: Array
    iterations: Array
    starts: Array
    agreeing: Array
    dropped: Array
    lower: Array

    @property
    def solved(self) -> Array:
        return np.array([status is Status.CONVERGED for status in self.status], dtype=bool)

    def settled(self, first: Array) -> Array:
        """Whether each group, those of its problems from the next of ``first`` on, has the nearest flip of all.

        What was searched in full (small.py) has it if that is proved, up to PROVED; what was not, if none of its
        problems was given up or left unsolved.
        """
        with np.errstate(invalid="ignore"):
            proved = (self.lower >= (1 - PROVED) * self.distance) & self.solved | np.isposinf(self.lower)
        ended = self.solved & ~self.dropped
        searched = ~np.isnan(self.lower[first])
        return np.where(searched, np.logical_or.reduceat(proved, first), np.logical_and.reduceat(ended, first))


@dataclass
class Verdict(Columns):
    """What the check found, (problems,) each; NaN where it did not look."""

    residual: Array
    gap: Array
    on_boundary: Array
    converged: Array


def judge(batch: FlipBatch, found: Outcome, groups: Array | None, tolerance: float) -> tuple[Verdict, Array]:
    """What the check says of every point but those of problems that were given up, and which those are.

    With ``groups``, what is farther than a verified flip point of a group that was not solved in full is not looked at
    either: it is given up here.
    """
    verdict = Verdict(*(np.full(len(batch), np.nan) for _ in range(2)), *(np.zeros(len(batch), bool) for _ in range(2)))
    kept, dropped = np.flatnonzero(~found.dropped), found.dropped.copy()

    def judged(rows: Array) -> None:
        verdict.put(rows, look(batch, rows, found.x[rows], tolerance))

    if groups is None:
        judged(kept)
        return verdict, dropped
    first, others = waves(kept, found.distances(batch), groups)
    judged(first)
    whole = np.ones(int(groups.max(initial=-1)) + 1, dtype=bool)
    whole[groups[found.dropped]] = False
    whole[groups[first[~verdict.converged[first]]]] = True
    judged(others[whole[groups[others]]])
    dropped[others[~whole[groups[others]]]] = True
    return verdict, dropped


def look(batch: FlipBatch, rows: Array, x_hat: Array, tolerance: float) -> Verdict:
    """What the check says of the points ``x_hat`` of the problems ``rows``."""
    check = verify_batch(batch.take(rows), x_hat)
    return Verdict(check.kkt_residual, check.boundary_gap, check.on_boundary, check.closest(tolerance))


def status_of(verdict: Verdict, stopped: Array) -> Array:
    """The status of every problem, (problems,); ``stopped`` by a limit or given up."""
    status = np.empty(len(verdict), dtype=object)
    status[:] = Status.NUMERICAL_ERROR
    status[stopped] = Status.LIMIT
    status[verdict.on_boundary] = Status.ON_BOUNDARY
    status[verdict.converged] = Status.CONVERGED
    return status
