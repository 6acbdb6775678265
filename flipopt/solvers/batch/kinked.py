"""ReLU networks: kinks are rounded off first, then comes the exact descent over linear pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch, FlipProblem
from flipopt.solvers.batch.options import Plan, Softening
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.prune import Farther, Fruitless, front
from flipopt.solvers.batch.strategy import Strategy
from flipopt.solvers.pieces.compiled import descend, neighbouring_minima
from flipopt.solvers.pieces.solver import Pieces
from flipopt.solvers.template import Solver


class KinkedStrategy(Strategy):
    """The descent over pieces, and its longer way to the boundary for what is left."""

    def __init__(self, batch: FlipBatch, plan: Plan, groups: Array | None) -> None:
        super().__init__(batch, plan, plan.kinked, groups)
        self.fall, self.pieces = plan.kinked.fall, plan.kinked.pieces

    def descended(self, rows: Array, found: Outcome, prune: Farther | None) -> Outcome:
        """From piece to piece, the nearest of each input first."""
        left, known = found.left, None if isinstance(prune, Fruitless) else prune
        groups = np.arange(len(left)) if known is None else known.groups[left]
        best = np.full(len(left), np.inf) if known is None else known.best
        batch = self.batch.take(rows[left])
        end = descend(
            batch, found.x[left], groups, best, self.fall, self.deadline(), replace(self.pieces, approaches=0)
        )
        found.dropped[left] = end.dropped
        found.forward[left] += end.forward
        found.backward[left] += end.backward
        there = left[end.ended]
        found.x[there], found.solved[there] = end.x[end.ended], True
        found.solver[there], found.words[there] = "pieces", "no neighbouring piece is closer"
        return found

    def settled(self, found: Outcome) -> Outcome:
        """Nearer minima around those that matter."""
        distance = found.distances(self.batch)
        rows = np.flatnonzero(found.solved)
        if self.groups is not None:
            rows = front(found, distance, self.groups, self.options.close)
        return self._around(found, rows)

    def _again(
        self, found: Outcome, rows: Array, points: Array, soften: Softening, prune: Farther | None
    ) -> tuple[Array, Array]:
        same, nearer = super()._again(found, rows, points, soften, prune)
        self._around(found, rows[nearer & found.solved[rows]])
        return same, nearer

    def _around(self, found: Outcome, rows: Array) -> Outcome:
        """The problems ``rows`` moved to nearer minima around theirs."""
        end = neighbouring_minima(self.batch.take(rows), found.x[rows], self.deadline(), self.pieces)
        found.forward[rows] += end.forward
        found.backward[rows] += end.backward
        found.x[rows[end.ended]] = end.x[end.ended]
        return found

    def other_solver(self, seconds: float) -> Solver:
        return Pieces(tolerance=self.plan.tolerance, max_seconds=seconds, options=self.pieces)

    def rescue_start(self, problem: FlipProblem, x_hat: Array) -> Array:
        """Where the softened networks have led."""
        return x_hat
