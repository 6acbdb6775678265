"""The check of where a batch has ended, and the result that it leads to."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch
from flipopt.results.result import Status
from flipopt.solvers.batch.nearest import waves
from flipopt.solvers.batch.outcome import Outcome
from flipopt.verification import verify_batch


@dataclass(frozen=True)
class Verdicts:
    """What the check found of those problems of a batch that it looked at, (problems,) each; NaN for others."""

    residual: Array
    gap: Array
    on_boundary: Array
    converged: Array

    @classmethod
    def on(cls, batch: FlipBatch, found: Outcome, groups: Array | None, tolerance: float) -> Verdicts:
        """Check every point but those of problems that were given up.

        With ``groups``, what is farther than a checked flip point of a group that was not solved in full is not looked
        at either: it is given up here.
        """
        nothing, no = np.full(len(batch), np.nan), np.zeros(len(batch), dtype=bool)
        check, kept = cls(nothing, nothing.copy(), no, no.copy()), np.flatnonzero(~found.dropped)
        if groups is None:
            check._look(batch, found.x, kept, tolerance)
            return check
        first, others = waves(kept, batch.distances(found.x), groups)
        check._look(batch, found.x, first, tolerance)
        whole = np.ones(int(groups.max(initial=-1)) + 1, dtype=bool)
        whole[groups[found.dropped]] = False
        whole[groups[first[~check.converged[first]]]] = True
        check._look(batch, found.x, others[whole[groups[others]]], tolerance)
        found.dropped[others[~whole[groups[others]]]] = True
        return check

    def _look(self, batch: FlipBatch, X_hat: Array, rows: Array, tolerance: float) -> None:
        """Check the points of the problems ``rows``; in place."""
        check = verify_batch(batch.take(rows), X_hat[rows])
        self.residual[rows], self.gap[rows] = check.kkt_residual, check.boundary_gap
        self.on_boundary[rows] = check.on_boundary
        self.converged[rows] = check.on_boundary & (check.kkt_residual <= tolerance)

    def status(self, found: Outcome) -> Array:
        """Of every problem, (problems,)."""
        status = np.empty(len(self.gap), dtype=object)
        status[:] = Status.NUMERICAL_ERROR
        status[found.limited | found.dropped] = Status.LIMIT
        status[self.on_boundary] = Status.ON_BOUNDARY
        status[self.converged] = Status.CONVERGED
        return status


@dataclass(frozen=True)
class BatchResult:
    """What became of a batch of problems, one entry each.

    Attributes
    ----------
    x
        The points, (problems, n_inputs).
    distance
        NaN where the point is not on the boundary.
    status, message
        The check's verdict (a :class:`~flipopt.Status`), and how the solve ended.
    kkt_residual, boundary_gap
        What the check found.
    forward, backward, iterations
        The cost, of all attempts and starts.
    starts, agreeing
        Starting points tried, and how many of them led to this distance.
    dropped
        Whether the problem was given up because another class of the same input is nearer.
    """

    x: Array
    distance: Array
    status: Array
    message: Array
    kkt_residual: Array
    boundary_gap: Array
    forward: Array
    backward: Array
    iterations: Array
    starts: Array
    agreeing: Array
    dropped: Array

    @property
    def solved(self) -> Array:
        return np.array([status is Status.CONVERGED for status in self.status], dtype=bool)

    @classmethod
    def of(
        cls, batch: FlipBatch, found: Outcome, message: Array, starts: Array, agreeing: Array, check: Verdicts
    ) -> BatchResult:
        """From where the problems ended, how, and what the check says of it."""
        return cls(
            x=found.x,
            distance=np.where(check.on_boundary, batch.distances(found.x), np.nan),
            status=check.status(found),
            message=message,
            kkt_residual=check.residual,
            boundary_gap=check.gap,
            forward=found.forward,
            backward=found.backward,
            iterations=found.iterations,
            starts=starts,
            agreeing=agreeing,
            dropped=found.dropped,
        )

    @classmethod
    def join(cls, parts: list[BatchResult]) -> BatchResult:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))
