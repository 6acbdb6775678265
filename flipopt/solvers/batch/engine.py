"""A chunk of problems from start to end: in as few variables as will do, by its strategy, checked."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.problem import FlipBatch, Reduced
from flipopt.solvers.batch.kinked import KinkedStrategy
from flipopt.solvers.batch.options import Plan
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.result import BatchResult, judge, status_of
from flipopt.solvers.batch.rounded import RoundedStrategy
from flipopt.solvers.batch.smooth import SmoothStrategy
from flipopt.solvers.batch.strategy import Strategy
from flipopt.solvers.pieces.compiled import piecewise_linear
from flipopt.solvers.starts import Samples

GIVEN_UP = "given up: another class is nearer"


def strategy_of(batch: FlipBatch, plan: Plan, groups: Array | None) -> Strategy:
    """The steps for the problems of a batch."""
    if piecewise_linear(batch.setting):
        return KinkedStrategy(batch, plan, groups)
    if getattr(batch.network, "kinked", False) and not isinstance(batch.network, DenseNetwork):
        return RoundedStrategy(batch, plan, groups)
    return SmoothStrategy(batch, plan, groups)


def solve_chunk(
    batch: FlipBatch, plan: Plan, starts: int, samples: Samples | None, seed: int, groups: Array | None
) -> BatchResult:
    """Every start of every problem, further attempts, the check."""
    inside = (batch.clip(batch.X) == batch.X).all(axis=1)
    if inside.all() or not inside.any():
        return _solve_alike(batch, plan, starts, samples, seed, groups)
    # What can be said of third classes depends on whether x is within its bounds: no row may decide for another.
    parts = [np.flatnonzero(inside), np.flatnonzero(~inside)]
    solved = [
        _solve_alike(batch.take(rows), plan, starts, samples, seed, None if groups is None else groups[rows])
        for rows in parts
    ]
    return BatchResult.join(solved).take(np.argsort(np.concatenate(parts)))


def _solve_alike(
    batch: FlipBatch, plan: Plan, starts: int, samples: Samples | None, seed: int, groups: Array | None
) -> BatchResult:
    reduced = Reduced.of(batch)
    if samples is not None:
        samples = Samples(reduced.coordinates(samples.X), samples.classes)
    found = strategy_of(reduced.inner, plan, groups).run(starts, samples, seed)
    outcome = found.outcome
    outcome.x = reduced.lifted(outcome.x)
    verdict, dropped = judge(batch, outcome, groups, plan.tolerance)
    return BatchResult(
        x=outcome.x,
        distance=np.where(verdict.on_boundary, batch.distances(outcome.x), np.nan),
        status=status_of(verdict, outcome.limited | dropped),
        solver=outcome.solver,
        message=np.where(dropped, GIVEN_UP, ending(outcome, plan)),
        kkt_residual=verdict.residual,
        boundary_gap=verdict.gap,
        forward=outcome.forward,
        backward=outcome.backward,
        iterations=outcome.iterations,
        starts=found.starts,
        agreeing=found.agreeing,
        dropped=dropped,
    )


def ending(found: Outcome, plan: Plan) -> Array:
    """How each problem ended, in words."""
    words = np.full(len(found), "no step improves the point any more", dtype=object)
    words[found.limited] = f"stopped after {plan.iterations} iterations"
    words[found.late] = f"stopped after {plan.max_seconds or np.inf:g} s"
    words[found.solved] = "the KKT conditions hold"
    return np.where(found.words != "", found.words, words)
