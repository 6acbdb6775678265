"""Networks with kinks of any kind, such as convolutional ones with ReLU and max-pooling.

Their pieces are too many to be gone through one by one. Instead their kinks are rounded off less and less, each problem
from the solution of the one before; solved at once with sharp kinks, it would get stuck. What is found in the end lies
next to the boundary of the trained network, and the ray from x through it leads onto it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.softening import sizes_of
from flipopt.paths.rays import onto_boundary
from flipopt.problem import FlipBatch
from flipopt.solvers.batch.options import Plan, Softening
from flipopt.solvers.batch.outcome import COSTS, Outcome
from flipopt.solvers.batch.prune import Farther, Hopeless, leading, ties_will_do
from flipopt.solvers.batch.sqp import Sqp
from flipopt.solvers.batch.strategy import Strategy
from flipopt.solvers.ipopt import Ipopt
from flipopt.solvers.template import Solver


class RoundedStrategy(Strategy):
    """SQP through rounded networks, then onto the boundary."""

    def __init__(self, batch: FlipBatch, plan: Plan, groups: Array | None) -> None:
        super().__init__(batch, replace(plan, rescue=False), plan.rounded, groups)
        if self.farther is not None and ties_will_do(batch, self.farther.groups):
            self.batch = replace(batch, others=False)

    def approached(self, rows: Array, points: Array, soften: Softening, prune: bool) -> Outcome:
        """Through all rounded networks; the farther classes are given up as the networks become sharper."""
        batch, found, options = self.batch.take(rows), Outcome.starting(points), self.plan.rounded
        for k, share in enumerate(soften):
            drop = None
            if prune and self.farther is not None:
                groups, factor = self.farther.groups[rows], options.apart[min(k, len(options.apart) - 1)]
                kept = np.zeros(len(rows), dtype=bool)
                if k == 0:
                    kept, cost = leading(batch, groups, options.close)
                    found.forward += cost.forward
                    found.backward += cost.backward
                drop = Hopeless(groups, factor, kept)
            self.go_through(batch, share, found, drop, options.tolerance)
        return found

    def descended(self, rows: Array, found: Outcome, prune: Farther | None) -> Outcome:
        """Onto the boundary of the trained network; on from there where hardly any kink is in the way."""
        left = np.flatnonzero(~found.dropped)
        x_hat, met, forward = onto_boundary(self.batch.take(rows[left]), found.x[left])
        found.forward[left] += forward
        found.solved[left], found.limited[left], found.late[left] = met, ~met, False
        left, x_hat = left[met], x_hat[met]
        found.x[left] = x_hat
        kinks = self._kinks(self.batch.take(rows[left]), x_hat)
        for k, count in zip(left, kinks, strict=True):
            found.words[k] = (
                f"{count} kinks are within {self.options.soften[-1]:g} of their size: closeness is not proved"
            )
        few = left[kinks <= self.plan.rounded.few]
        self._finish(rows[few], found, few)
        return found

    def _finish(self, rows: Array, found: Outcome, left: Array) -> None:
        """SQP on the trained network for the problems ``rows``, which are ``left`` in ``found``."""
        batch, plan = self.batch.take(rows), self.plan
        end = Sqp(batch, found.x[left], plan.steps, plan.tolerance / 2, plan.iterations, self.deadline()).run()
        nearer = end.solved & (batch.distances(end.x) <= batch.distances(found.x[left]))
        found.x[left[nearer]], found.words[left[nearer]] = end.x[nearer], ""
        for name in COSTS:
            getattr(found, name)[left] += getattr(end, name)

    def _kinks(self, batch: FlipBatch, x_hat: Array) -> Array:
        """How many kinks are rounded off at the points in the last of the networks, (problems,)."""
        count, sizes = np.zeros(len(batch), dtype=np.int64), sizes_of(batch.network, batch.X)
        for size in np.unique(sizes):
            some = sizes == size
            soft = batch.network.softened(self.options.soften[-1], float(size))  # type: ignore[attr-defined]
            count[some] = soft.rounded_off(x_hat[some], batch.tie_weights[some])
        return count

    def other_solver(self, seconds: float) -> Solver:
        return Ipopt(tolerance=self.plan.tolerance, max_seconds=seconds)
