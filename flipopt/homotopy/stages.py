"""Stages of a homotopy: solved within the limits of the whole, and recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.homotopy.options import Homotopy
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipProblem
from flipopt.results import FlipResult, Stage, Status
from flipopt.solvers import Solver


@dataclass(frozen=True)
class Place:
    """Where a path is: t, the flip point of N^t that it goes on from (n_inputs,), and that point's multipliers."""

    x: Array
    t: float = 0.0
    multipliers: Array | None = None


class Stages:
    """What has been solved so far, what it has cost, and the best answer for the trained network among it."""

    def __init__(self, problem: FlipProblem, options: Homotopy, network: Network | None) -> None:
        self.problem, self.options, self.network = problem, options, network
        self.done: list[Stage] = []
        self.cost, self.started = Evaluations(), time.perf_counter()
        self.best: FlipResult | None = None

    def solve(self, problem: FlipProblem, solver: Solver, t: float, start: Place) -> FlipResult:
        """The flip point of the stage's problem, with what is left of the limits."""
        network = self.network if t == 1 else None
        result = self._limited(solver).solve(problem, start.x, network, start.multipliers)
        self.cost = self.cost + result.evaluations
        if t == 1 and (self.best is None or _rank(result) < _rank(self.best)):
            self.best = result
        return result

    def record(self, t: float, result: FlipResult, start: Place, kept: bool, decision: str) -> None:
        """Add a stage that was solved from ``start``, and what was made of it."""
        check = result.check
        stage = Stage(
            t=t,
            step=t - start.t,
            x=result.x,
            distance=self.problem.distance(result.x),
            moved=float(np.linalg.norm(result.x - start.x)),
            boundary_gap=check.boundary_gap if check else np.nan,
            kkt_residual=check.kkt_residual if check else np.nan,
            status=result.status,
            solver=result.solver,
            evaluations=result.evaluations,
            kept=kept,
            decision=decision,
        )
        self.done.append(stage)

    @property
    def success(self) -> bool:
        """Whether a closest flip point of the trained network is verified."""
        return self.best is not None and self.best.success

    @property
    def spent(self) -> bool:
        """Whether a limit of the whole homotopy is reached."""
        evaluations, seconds = self.options.max_evaluations, self.options.max_seconds
        late = seconds is not None and time.perf_counter() - self.started >= seconds
        return late or (evaluations is not None and self.cost.forward >= evaluations)

    def answer(self, limited: bool, t: float) -> FlipResult:
        """The best result, with the cost and the record of all stages; ``limited`` if a limit ended them, at ``t``."""
        assert self.best is not None  # every path ends with an attempt at t = 1
        status, message = self.best.status, self.best.message
        if not self.success and (limited or self.spent):
            status, message = Status.LIMIT, f"the homotopy's limit was reached at t = {t:.3g} ({message})"
        elapsed, done = time.perf_counter() - self.started, tuple(self.done)
        return replace(self.best, status=status, message=message, evaluations=self.cost, elapsed=elapsed, stages=done)

    def _limited(self, solver: Solver) -> Solver:
        """The solver with what is left of the limits, and its own."""
        limits: dict[str, float] = {}
        if self.options.max_evaluations is not None:
            left = max(1, self.options.max_evaluations - self.cost.forward)
            limits["max_evaluations"] = min(left, solver.max_evaluations or left)
        if self.options.max_seconds is not None:
            left_s = max(1e-3, self.options.max_seconds - (time.perf_counter() - self.started))
            limits["max_seconds"] = min(left_s, solver.max_seconds or left_s)
        return replace(solver, **limits) if limits else solver  # type: ignore[arg-type]


def _rank(result: FlipResult) -> tuple[bool, float]:
    """Verified first, then nearer; a point that is not on the boundary has no distance and comes last."""
    return not result.success, float(np.nan_to_num(result.distance, nan=np.inf))
