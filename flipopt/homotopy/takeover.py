"""Who solves the stages of a path, and who takes over from a solver that fails."""

from __future__ import annotations

from flipopt.homotopy.options import StepControl
from flipopt.problem import FlipProblem
from flipopt.solvers import Pieces, Solver, TrustRegion


class Takeover:
    """The user's solver until it has failed often enough, then one of short steps."""

    def __init__(self, solver: Solver, control: StepControl, restarted: bool) -> None:
        self.own, self.enough = solver, control.failures
        self.funnel = control.funnel if restarted else TrustRegion.funnel
        self.failures, self.taken_over = 0, False

    def solver(self, problem: FlipProblem) -> Solver:
        """Who solves the problem of the next stage."""
        return short_steps(problem, self.own, self.funnel) if self.taken_over else self.own

    def failed(self, problem: FlipProblem, last: bool) -> None:
        """Count a stage that failed or ended at its limit.

        One is enough over linear pieces, where smooth solvers never settle, and at the ``last`` stage.
        """
        self.failures += 1
        over_pieces = Pieces().cannot(problem.setting, problem.goal) is None
        self.taken_over = self.taken_over or last or over_pieces or self.failures >= self.enough


def short_steps(problem: FlipProblem, solver: Solver, funnel: float) -> Solver:
    """A solver of short steps for ``problem`` in place of ``solver``, which itself is returned where there is none.

    Over linear pieces the descent is exact. Elsewhere the trust region never goes farther than its quadratic model
    holds (D.6), at first within ``funnel`` logits of the boundary. A solver that is of that kind already keeps its own
    options.
    """
    for other in (Pieces(tolerance=solver.tolerance), TrustRegion(tolerance=solver.tolerance, funnel=funnel)):
        if other.cannot(problem.setting, problem.goal) is None:
            return solver if isinstance(solver, type(other)) else other
    return solver
