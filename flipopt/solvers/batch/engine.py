"""A chunk of problems from start to end: in as few variables as will do, by its strategy, checked."""

from __future__ import annotations

from functools import partial

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.paths.rays import onto_boundary
from flipopt.problem import FlipBatch, Reduced
from flipopt.results import Status
from flipopt.solvers.batch.kinked import KinkedStrategy
from flipopt.solvers.batch.linearization import shortest_steps
from flipopt.solvers.batch.options import Plan
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.result import BatchResult, Verdict, judge, look, status_of
from flipopt.solvers.batch.rounded import RoundedStrategy
from flipopt.solvers.batch.small import brief_plan, is_small, search_all
from flipopt.solvers.batch.smooth import SmoothStrategy
from flipopt.solvers.batch.strategy import Found, Strategy
from flipopt.solvers.pieces.compiled import piecewise_linear
from flipopt.solvers.starts import Samples

GIVEN_UP = "given up: another class is nearer"
NOWHERE = "there is no flip within the bounds: all of it was searched"


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
    small = is_small(reduced.inner, plan.small)
    brief = small and starts == 1 and isinstance(reduced.inner.network, DenseNetwork)
    found = strategy_of(reduced.inner, brief_plan(plan) if brief else plan, groups).run(starts, samples, seed)
    outcome, lower = found.outcome, np.full(len(batch), np.nan)
    if small:
        lower = search_all(reduced.inner, outcome, strategy_of(reduced.inner, plan, None), groups)
    if brief:
        _rescue_small(reduced.inner, outcome, lower, plan, groups)
    found.outcome.x = reduced.lifted(outcome.x)
    return _checked(batch, plan, found, lower, groups)


def solve_from(
    batch: FlipBatch, plan: Plan, points: Array, groups: Array | None = None, soften: bool = True
) -> BatchResult:
    """One descent for every problem, from ``points`` (problems, n_inputs), and the check.

    With ``soften`` through softened networks, as further starts go.
    """
    reduced = Reduced.of(batch)
    found = strategy_of(reduced.inner, plan, groups).run_from(reduced.coordinates(points), soften)
    found.outcome.x = reduced.lifted(found.outcome.x)
    return _checked(batch, plan, found, np.full(len(batch), np.nan), groups)


def _checked(batch: FlipBatch, plan: Plan, found: Found, lower: Array, groups: Array | None) -> BatchResult:
    """What the check says of where the problems ended; no status rests on the solver's word."""
    outcome = found.outcome
    verdict, dropped = judge(batch, outcome, groups, plan.tolerance)
    _put_on_boundary(batch, outcome, verdict, np.flatnonzero(~verdict.on_boundary & ~dropped), plan)
    status = status_of(verdict, outcome.limited | dropped)
    for k in np.flatnonzero(~verdict.on_boundary & (lower > 0)):
        status[k] = Status.INFEASIBLE if np.isinf(lower[k]) else Status.LIMIT
        outcome.words[k] = NOWHERE if np.isinf(lower[k]) else f"no flip was found; none is nearer than {lower[k]:.3g}"
    return BatchResult(
        x=outcome.x,
        distance=np.where(verdict.on_boundary, batch.distances(outcome.x), np.nan),
        status=status,
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
        lower=lower,
    )


def _rescue_small(batch: FlipBatch, found: Outcome, lower: Array, plan: Plan, groups: Array | None) -> None:
    """What the search has found no flip for, by another solver, unless there is none."""
    entry = np.arange(len(batch)) if groups is None else groups
    solved = np.zeros(int(entry.max(initial=-1)) + 1, dtype=bool)
    solved[entry[found.solved]] = True
    rows = np.flatnonzero(~solved[entry] & ~np.isposinf(lower))
    if len(rows):
        left = found.take(rows)
        left.dropped[:] = False
        found.put(rows, strategy_of(batch.take(rows), plan, None).rescued(left))


def _put_on_boundary(batch: FlipBatch, found: Outcome, verdict: Verdict, rows: Array, plan: Plan) -> None:
    """No problem of ``rows`` ends with less than a point of the boundary, if one is to be had near where it ended.

    First by the ray from x, then by shortest steps to the linearised constraints: they know of third classes too.
    """
    words = ending(found, plan)
    for move, how in (
        (onto_boundary, "along the ray from x"),
        (partial(shortest_steps, plan.steps), "by shortest steps"),
    ):
        part = batch.take(rows)
        x_hat, met, forward = move(part, found.x[rows])
        found.forward[rows] += forward
        check = look(batch, rows[met], x_hat[met], plan.tolerance)
        there = rows[met][check.on_boundary]
        found.x[there] = x_hat[met][check.on_boundary]
        verdict.put(there, check.take(check.on_boundary))
        found.words[there] = [f"{words[k]}; put on the boundary {how}" for k in there]
        rows = np.setdiff1d(rows, there)
    believed = rows[found.solved[rows]]
    found.words[believed] = "a tie was found, but another class is above it or a constraint does not hold"


def ending(found: Outcome, plan: Plan) -> Array:
    """How each problem ended, in words."""
    words = np.full(len(found), "no step improves the point any more", dtype=object)
    words[found.limited] = f"stopped after {plan.iterations} iterations"
    words[found.late] = f"stopped after {plan.max_seconds or np.inf:g} s"
    words[found.solved] = "the KKT conditions hold"
    return np.where(found.words != "", found.words, words)
