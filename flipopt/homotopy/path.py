"""Following a path of flip points from the easy network to the trained one.

Uniform stages are algorithm 2 (and F3) as printed. The adaptive path takes a longer step after a stage that succeeds. A
stage that fails is tried again with a shorter step, by a solver of short steps. Where no step is short enough the path
begins again, away from where it ended (D.4). The last resort is a direct solve.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.homotopy.lengths import Lengths
from flipopt.homotopy.options import Homotopy
from flipopt.homotopy.stages import Place, Stages
from flipopt.homotopy.takeover import Takeover
from flipopt.homotopy.transformation import transform
from flipopt.networks.protocol import Network
from flipopt.problem import Constraint, FlipProblem
from flipopt.problem.constraints import outside_balls
from flipopt.results import FlipResult, Status
from flipopt.solvers import Solver
from flipopt.solvers.walk import walk


def follow(
    problem: FlipProblem, solver: Solver, homotopy: Homotopy | None = None, network: Network | None = None
) -> FlipResult:
    """The closest flip point at the end of a homotopy path; ``network`` is the one in its own precision."""
    options = homotopy or Homotopy()
    path = _Path(problem, solver, options, network)
    if options.stages == 1 or not options.adaptive:
        path.uniform()
        return path.answer()
    path.adaptive()
    for _ in range(options.restarts):
        if path.stages.success or path.stages.spent:
            break
        path.restart()
        path.adaptive()
    if not (path.stages.success or path.stages.spent or path.out_of_stages):
        path.direct()
    return path.answer()


class _Path:
    """Where a path is, who solves its stages, and where those before it have ended."""

    def __init__(self, problem: FlipProblem, solver: Solver, options: Homotopy, network: Network | None) -> None:
        self.problem, self.solver, self.options, self.control = problem, solver, options, options.control
        self.transformation = transform(problem, options.tau, options.margin, options.smooth)
        self.stages = Stages(problem, options, network)
        self.ends: list[Array] = []
        self._begin(restarted=False)

    def _begin(self, restarted: bool) -> None:
        self.place, self.out_of_stages = Place(self.problem.x), False
        self.takeover = Takeover(self.solver, self.control, restarted)

    # The ways to the trained network

    def uniform(self) -> None:
        """Algorithm 2: eta stages of equal length; a stage that finds no flip point leaves the starting point alone."""
        eta = self.options.stages
        for k in range(1, eta + 1):
            t, start = k / eta, self.place
            result = self._solve(t)
            kept = self._go_on(t, result)
            self.stages.record(t, result, start, kept, "next" if kept else "go on from the point before")
            self.place = Place(self.place.x, t, self.place.multipliers)
            if self.stages.spent:
                break
        if t < 1:
            self._end_early()

    def adaptive(self) -> None:
        """Steps that grow while they succeed, until a flip point of the trained network is verified or none is left."""
        control, lengths, last_tried = self.control, Lengths(self.transformation), False
        step = first = lengths.at(1 / self.options.stages)
        for _ in range(self.options.max_stages):
            t, start = lengths.after(self.place.t, step), self.place
            solver, result = self._solver(t), self._solve(t)
            if t == 1 and result.success:
                self.stages.record(t, result, start, True, "arrived")
                return
            kept, last_tried = self._go_on(t, result), last_tried or t == 1
            if t == 1 or not kept or result.status is Status.LIMIT:
                self.takeover.failed(self._problem(t), last=t == 1)
            factor = self._growth(result) if kept else control.shrink
            step *= factor
            after = self._solver(lengths.after(self.place.t, step))
            self.stages.record(t, result, start, kept, _decision(t, kept, factor, solver, after))
            stuck = self.place.t == 1 and type(after) is type(solver)
            if stuck or step < control.shortest * first or self.stages.spent:
                break
            if not (kept or self.options.monotone or start.t == 0):
                self._step_back(max(0.5 * start.t, lengths.after(start.t, -step)))
        else:
            self.out_of_stages = True
        if not last_tried:
            self._end_early()

    def restart(self) -> None:
        """From the beginning, kept away from where the path has ended (D.4)."""
        if self.place.t > 0:
            self.ends.append(self.place.x)
        self._begin(restarted=True)

    def direct(self) -> None:
        """The last resort: the user's solver on the trained network, from x and from the end of the walk."""
        for from_walk in (False, True):
            start = Place(walk(self.problem, self.stages.cost) if from_walk else self.problem.x, t=1.0)
            result = self.stages.solve(self.problem, self.solver, 1.0, start)
            decision = "the path failed: a direct solve without it"
            self.stages.record(1.0, result, start, result.success, decision)
            if result.success or self.stages.spent:
                break

    def answer(self) -> FlipResult:
        """What is to be said of the trained network."""
        return self.stages.answer(self.out_of_stages, self.place.t)

    # Stages

    def _solve(self, t: float) -> FlipResult:
        """The flip point at t from the last one; only the last stage must be exact."""
        solver = self._solver(t)
        if t < 1:
            solver = solver.loosened(self.control.tolerance, self.control.iterations)
        return self.stages.solve(self._problem(t), solver, t, self.place)

    def _problem(self, t: float) -> FlipProblem:
        """The problem for the network at t, and at 1 the user's own problem."""
        if t == 1:
            return self.problem
        return self.problem.changed(network=self.transformation.at(t), constraints=self._constraints())

    def _constraints(self) -> tuple[Constraint, ...]:
        """The user's, and balls around the ends of earlier paths."""
        if not self.ends:
            return self.problem.constraints
        centres = np.stack(self.ends)
        nearest = float(np.linalg.norm(centres - self.problem.x, axis=1).min())
        return (*self.problem.constraints, outside_balls(centres, self.control.away * nearest))

    def _solver(self, t: float) -> Solver:
        return self.takeover.solver(self._problem(t))

    def _growth(self, result: FlipResult) -> float:
        """Factor of the step after a stage that succeeded: larger by as much as the stage was easier than its target.

        Solvers of short steps take many iterations whatever the length of the stage, so that theirs do not count.
        """
        grow, easier = self.control.grow, self.control.target / max(result.evaluations.forward, 1)
        return grow if self.takeover.taken_over else float(np.clip(np.sqrt(easier), 1, grow))

    def _go_on(self, t: float, result: FlipResult) -> bool:
        """Go on from the stage's point if it is on the boundary, roughly, and within all other constraints."""
        check, tolerance = result.check, self.control.tolerance
        kept = check is not None and bool(
            check.boundary_gap <= tolerance
            and check.class_margin >= -tolerance
            and check.bound_violation == 0
            and check.constraint_violation <= tolerance
        )
        if kept:
            self.place = Place(result.x, t, result.multipliers)
        return kept

    def _step_back(self, t: float) -> None:
        """Non-monotone (D.5): solve at an earlier t from the last point, which may lead to another branch."""
        start, result = self.place, self._solve(t)
        self.stages.record(t, result, start, self._go_on(t, result), "a step back")

    def _end_early(self) -> None:
        """What the trained network's problem says from the last point, within what is left."""
        start, result = self.place, self._solve(1.0)
        decision = "the path ended early: a direct attempt from its last point"
        self.stages.record(1.0, result, start, result.success, decision)


def _decision(t: float, kept: bool, factor: float, solver: Solver, after: Solver) -> str:
    """What was made of a stage, and who solves the next if it is another solver."""
    if kept:
        made = "not stationary" if t == 1 else "longer step" if factor > 1 else "same step"
    else:
        made = "failed: shorter step"
    return made if type(after) is type(solver) else f"{made}, {after.name.replace('-', ' ')} from here"
