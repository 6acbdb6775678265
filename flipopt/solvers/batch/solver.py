"""flipopt's own solver for many problems at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.problem import FlipBatch, Goal, LinearConstraint, Oracle, Setting, Span
from flipopt.results import Status
from flipopt.runs.threads import cores, even_share, in_order
from flipopt.solvers.batch.options import Kinked, Plan, Rounded, Small, Smooth, Steps
from flipopt.solvers.starts import Samples
from flipopt.solvers.template import Answer, Capabilities, Solver

if TYPE_CHECKING:
    from flipopt.solvers.batch.result import BatchResult

MEMORY, DOUBLES = 2.0**30, 100
"""Bytes that the arrays of the chunks on all cores may take, about, and numbers a variable of a problem that they
hold."""
SMALLEST_CHUNK, LARGEST_CHUNK = 64, 8192


@dataclass(frozen=True, kw_only=True)
class Batch(Solver):
    """flipopt's own solver for many problems at once."""

    max_iter: int = 100
    """Iterations of a problem in one attempt."""
    attempts: int = 6
    """Attempts at a problem that is not solved, from other starting points, before it is handed to another solver."""
    soften: bool = True
    """From x, solve problems of smoother networks first: erfs made wider, kinks rounded off. Their boundaries have
    fewer folds, and the minima that they lead to are nearer, as a rule."""
    rescue: bool = True
    """Hand what is left over to another solver: IPOPT, or the descent over pieces."""
    rescue_seconds: float = 30.0
    """What that may take for all problems of a chunk, so that a few do not hold up the others."""
    prune: bool = True
    """For the nearest of all classes: give a class up once its distance can no longer become the smallest."""
    chunk: int | None = None
    """Problems at once; None for what fits the caches and memory."""
    steps: Steps = field(default_factory=Steps)
    """Of the iteration."""
    smooth: Smooth = field(default_factory=Smooth)
    """How problems without kinks are solved."""
    kinked: Kinked = field(default_factory=Kinked)
    """How those of dense ReLU networks are."""
    rounded: Rounded = field(default_factory=Rounded)
    """How those of other networks with kinks are."""
    small: Small = field(default_factory=Small)
    """How problems in few variables are searched in full."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("attempts", "chunk"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise InputError(f"{name}: expected a whole number >= 1, found {value!r}")

    @property
    def summary(self) -> str:
        return "quasi-Newton SQP on many problems at once"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(smooth_norms_only=True)

    @property
    def plan(self) -> Plan:
        """For the engine."""
        facts = {field.name: getattr(self, field.name) for field in fields(Plan) if field.name != "iterations"}
        most = self.max_iter if self.max_evaluations is None else self.max_evaluations
        return Plan(iterations=min(self.max_iter, most), **facts)  # an iteration takes an evaluation

    def cannot(self, setting: Setting, goal: Goal | None = None) -> str | None:
        if (goal is not None and len(goal.classes) != 2) or setting.outputs != "logits":
            return "batch takes flips between two classes in the logits"
        if not all(isinstance(constraint, LinearConstraint) for constraint in setting.constraints):
            return "batch takes linear constraints only"
        return super().cannot(setting, goal)

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        """One problem: from x as a batch of its own, from elsewhere straight to the boundary."""
        from flipopt.solvers.batch.engine import ending, solve_chunk, strategy_of
        from flipopt.solvers.batch.outcome import Outcome

        problem, start = oracle.problem, oracle.point(u0)
        margin, beyond = max(0.0, float(problem.goal.lower.max())), -float(problem.goal.lower[0])
        classes = np.array([problem.classes])
        batch = FlipBatch(problem.setting, problem.x[None], classes, margin, beyond=beyond)
        if np.array_equal(start, problem.x):
            found = solve_chunk(batch, self.plan, 1, None, 0, None)
            x_hat, status, message = found.x[0], found.status[0], str(found.message[0])
            iterations, forward, backward = found.iterations[0], found.forward[0], found.backward[0]
        else:
            first = np.zeros(1, dtype=np.int64)
            end = strategy_of(batch, self.plan, None).descended(first, Outcome.starting(start[None]), None)
            status = Status.LIMIT if end.limited[0] else Status.NUMERICAL_ERROR
            status = Status.CONVERGED if end.solved[0] else status
            x_hat, message = end.x[0], str(ending(end, self.plan)[0])
            iterations, forward, backward = end.iterations[0], end.forward[0], end.backward[0]
        oracle.evaluations.forward += int(forward)
        oracle.evaluations.backward += int(backward)
        return Answer(oracle.variables(x_hat), status, message, int(iterations))

    def solve_batch(
        self,
        batch: FlipBatch,
        starts: int = 1,
        towards: Array | None = None,
        seed: int = 0,
        groups: Array | None = None,
    ) -> BatchResult:
        """Solve every problem of the batch, in chunks on all cores.

        ``starts`` and ``towards`` (samples, n_inputs) are as in :func:`~flipopt.closest_flip_points`. With ``groups``
        (problems,), numbered 0, 1, ... in order, only the nearest of every group is wanted, and the others may be
        dropped.
        """
        from flipopt.solvers.batch.engine import solve_chunk
        from flipopt.solvers.batch.result import BatchResult

        samples = Samples.of(batch.network, towards)

        def solve(rows: slice) -> BatchResult:
            mine = None if groups is None else groups[rows]
            return solve_chunk(batch.take(rows), self.plan, starts, samples, seed, mine)

        return BatchResult.join(list(in_order(solve, self._chunks(batch, groups))) or [solve(slice(0, 0))])

    def chunk_size(self, setting: Setting) -> int:
        """How many such problems at once: enough for the matrix products, few enough for memory."""
        span = Span.of(setting)
        n = (setting if span is None else span).network.n_inputs
        return self.chunk or int(np.clip(MEMORY / (8 * n * DOUBLES * cores()), SMALLEST_CHUNK, LARGEST_CHUNK))

    def _chunks(self, batch: FlipBatch, groups: Array | None) -> Iterator[slice]:
        """Consecutive problems; a group is never split."""
        size, start = even_share(len(batch), self.chunk_size(batch.setting)), 0
        while start < len(batch):
            stop = min(start + size, len(batch))
            if groups is not None:
                stop = int(np.searchsorted(groups, groups[stop - 1], side="right"))
            yield slice(start, stop)
            start = stop
