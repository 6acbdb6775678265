"""ReLU networks: kinks are rounded off first, then comes the exact descent over linear pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch, FlipProblem
from flipopt.solvers.batch.options import Plan
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.prune import Farther, Fruitless, front, leading, nearest
from flipopt.solvers.batch.strategy import Strategy
from flipopt.solvers.pieces.compiled import Descent, descend, neighbouring_minima
from flipopt.solvers.pieces.solver import Pieces
from flipopt.solvers.template import Solver


class KinkedStrategy(Strategy):
    """The descent over pieces, and its longer way to the boundary for what is left."""

    def __init__(self, batch: FlipBatch, plan: Plan, groups: Array | None) -> None:
        super().__init__(batch, plan, plan.kinked, groups)
        self.fall, self.around, self.pieces = plan.kinked.fall, plan.kinked.around, plan.kinked.pieces

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
            rows = front(found, distance, self.groups, self.around)
        end = neighbouring_minima(self.batch.take(rows), found.x[rows], self.deadline(), self.pieces)
        _move_around(found, rows, end)
        return found

    def explored(self, found: Outcome, rows: Array, part: Outcome) -> Outcome:
        """Nearer minima around those that matter, also where a problem has a nearer one already: the ways from there
        lead elsewhere."""
        known, distance = found.distances(self.batch), part.distances(self.batch.take(rows))
        groups = np.arange(len(self.batch)) if self.groups is None else self.groups
        best = nearest(np.where(found.solved, known, np.inf), groups)
        some = np.flatnonzero(part.solved & (distance <= self.around * best[groups[rows]]))
        batch = self.batch.take(rows[some])
        end = neighbouring_minima(batch, part.x[some], self.deadline(), self.pieces, known[rows[some]])
        _move_around(part, some, end)
        return part

    def restartable(self, found: Outcome, distance: Array, groups: Array) -> Array:
        """Those that were given up in a softened network are among them, and those that are near at x: where the flip
        is much nearer than kinks are wide, a softened network's distances say nothing."""
        best = nearest(np.where(found.solved, distance, np.inf), groups)
        likely, cost = leading(self.batch, groups, self.options.close)
        found.forward += cost.forward
        found.backward += cost.backward
        return np.flatnonzero((distance <= self.options.close * best[groups]) | likely)

    def seen_from(self, found: Outcome, distance: Array, groups: Array) -> Array:
        """The nearest flip of each group: all its classes start on the other side of x."""
        group = np.unique(groups, return_inverse=True)[1]
        order = np.lexsort((np.where(found.solved, distance, np.inf), group))
        first = order[np.diff(group[order], prepend=-1) > 0]
        return np.asarray(found.x[first[group]])

    def other_solver(self, seconds: float) -> Solver:
        return Pieces(tolerance=self.plan.tolerance, max_seconds=seconds, options=self.pieces)

    def rescue_start(self, problem: FlipProblem, x_hat: Array) -> Array:
        """Where the softened networks have led."""
        return x_hat


def _move_around(found: Outcome, rows: Array, end: Descent) -> None:
    """The problems ``rows`` are at the neighbouring minima now in which ``end`` has ended."""
    found.forward[rows] += end.forward
    found.backward[rows] += end.backward
    found.x[rows[end.ended]] = end.x[end.ended]
