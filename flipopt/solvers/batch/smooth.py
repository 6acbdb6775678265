"""Problems without kinks: SQP through one softened network and on the trained one, then from further points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import FlipBatch
from flipopt.solvers.batch.options import Plan
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.prune import Farther, Fruitless, covered, ties_will_do, waves
from flipopt.solvers.batch.sqp import Drop, Sqp
from flipopt.solvers.batch.strategy import Found, Strategy
from flipopt.solvers.ipopt import Ipopt
from flipopt.solvers.starts import Samples, restart_points
from flipopt.solvers.template import Solver

SAFETY = 0.5
"""The iteration goes on to this share of the tolerance, so that the check, which evaluates anew, agrees."""


class SmoothStrategy(Strategy):
    """SQP, and IPOPT for what is left."""

    def __init__(self, batch: FlipBatch, plan: Plan, groups: Array | None) -> None:
        super().__init__(batch, plan, plan.smooth, groups)
        self.flips = batch
        if self.farther is not None and ties_will_do(batch, self.farther.groups):
            self.batch = replace(batch, others=False)

    def run(self, starts: int, samples: Samples | None, seed: int) -> Found:
        return self._uncovered(super().run(starts, samples, seed))

    def run_from(self, points: Array, soften: bool) -> Found:
        return self._uncovered(super().run_from(points, soften))

    def started(self, seed: int) -> Outcome:
        """From x, and what is not solved from several other points at once: it is little."""
        found, prune = super().started(seed), self.farther
        if prune is not None:
            found.dropped |= ~found.solved & prune.too_far(found.distances(self.batch), self.fall)
        left, rounds = found.left, self.plan.attempts - 1
        if len(left) and rounds:
            part, again = self.batch.take(left), np.tile(left, rounds)
            random = np.concatenate([restart_points(part, attempt, seed) for attempt in range(1, rounds + 1)])
            ends = self._run(again, random, None if prune is None else prune.part(again))
            for attempt in np.arange(len(again)).reshape(rounds, -1):
                found.improve(self.batch, left, ends.take(attempt))
                found.dropped[left] |= ends.dropped[attempt] & ~found.solved[left]
            found.dropped[left] &= ~found.solved[left]
        return found

    def descended(self, rows: Array, found: Outcome, prune: Farther | None) -> Outcome:
        """SQP on the trained network; with all classes of an input the nearest so far comes first."""
        left = np.flatnonzero(~found.dropped)
        order = [left]
        if prune is not None and not isinstance(prune, Fruitless):
            order = waves(left, found.distances(self.batch.take(rows)), prune.groups)
        for some in order:
            found.go_on(some, self._run(rows[some], found.x[some], None if prune is None else prune.part(some)))
        return found

    def _run(self, rows: Array, points: Array, drop: Drop | None) -> Outcome:
        """On the trained network itself."""
        batch, plan = self.batch.take(rows), self.plan
        single = getattr(batch.network, "in_float32", None)
        far = None if single is batch.network else single
        tolerance = SAFETY * plan.tolerance
        return Sqp(batch, points, plan.steps, tolerance, plan.iterations, self.deadline(), drop, far=far).run()

    def other_solver(self, seconds: float) -> Solver:
        return Ipopt(tolerance=self.plan.tolerance, max_seconds=seconds)

    def _uncovered(self, found: Found) -> Found:
        """Every end a flip, where ties alone were sought."""
        if self.batch is not self.flips and self.groups is not None:
            self._uncover(found.outcome, self.groups)
        return found

    def _uncover(self, found: Outcome, groups: Array) -> None:
        """Replace ties that are below a third class by flips to that class, which are nearer."""
        for _ in range(self.batch.network.n_classes):
            rows, third = covered(self.flips, found, groups)
            if len(rows) == 0:
                break
            found.dropped[rows] = True
            found.improve(self.batch, third, self._run(third, found.x[rows], None))
            found.dropped[third] = False  # solved or not, it is what is left to say of its group
