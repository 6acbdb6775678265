"""Following a path of flip points from the easy network to the trained one.

Uniform stages are algorithm 2 (and F3) as printed. The adaptive path measures its way in

    l(t) = T_WEIGHT t + the variation of log(bound (15)) from 0 to t,

so that steps are short where the network's Lipschitz constant changes fast (F1, line 4). A stage that fails is tried
again with a shorter step. Where that is not enough the path goes on with a solver of short steps: the trust region
(D.6), or for ReLU networks the descent over linear pieces. Then it starts in other directions, and again from the
beginning, away from where it ended (D.4). The last resort is a direct solve.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.homotopy.options import Homotopy
from flipopt.homotopy.transformation import Transformation, transform
from flipopt.networks.protocol import Network
from flipopt.problem import Constraint, Evaluations, FlipProblem
from flipopt.problem.constraints import outside_balls
from flipopt.results import FlipResult, Stage, Status
from flipopt.solvers import Pieces, Solver, TrustRegion
from flipopt.solvers.starts import walk

T_WEIGHT = 3.0
"""Weight of t itself in l(t), for activations whose Lipschitz constant does not change."""
FIRST_STEP = 1.0
"""Length of the first step in l; about a factor e of the Lipschitz constant."""
GROW, HARD, SHRINK = 2.0, 0.7, 0.4
"""Largest factor of the step after an easy stage, least one after a hard stage, factor after one that failed."""
TRUST_GROW = 1.5
"""Factor of the step after every stage that the trust-region solver has solved."""
SHORT = 0.5
"""Length of a step in l that only failures shorten further."""
TARGET = 15
"""Forward passes that a stage should take: the next step is longer by as much as this one took less."""
FAR = 0.75
"""A stage that moves farther than this share of its distance moved far."""
SHORTEST, PATIENT = 0.02, 4
"""Length of a step in l below which shorter ones are given up, and how many times the iterations of a stage the solver
of short steps then gets to go on with."""
GRID = 65
"""Values of t at which the variation of the Lipschitz constant is measured."""
FEASIBLE = 1e-2
"""Largest boundary gap, and violation of the other constraints, of a stage that the path goes on from."""
LOOSE, LOOSE_ITERATIONS = 1e-3, 40
"""Tolerance and iterations of a stage before the last."""
LAST_ITERATIONS = 100
"""Of the user's solver at the last stage of an adaptive path, before the trust-region solver takes over."""
TRUST_ITERATIONS, TRUST_N = 800, 300
"""Iterations of the trust-region solver at the last stage, and free features up to which it is quick enough for stages
before."""
FUNNELS = (0.3, 1e-2)
"""Of the trust-region solver on the first path, and on every restart: what is lost in a wide one may be found in a
narrow one."""
ENOUGH, REPEATS = 2, 8
"""Stages that failed or ended at their limit after which the trust-region solver takes over, and attempts at the last
stage once it is reached."""
BOX = 0.5
"""Half the width of a box around the last point, relative to the largest change of a feature so far."""
ASIDE = 0.1
"""Size of a start in other directions, and radius of what a restart keeps away from, relative to the distance."""


def follow(
    problem: FlipProblem, solver: Solver, homotopy: Homotopy | None = None, network: Network | None = None
) -> FlipResult:
    """The closest flip point at the end of a homotopy path; ``network`` is the one in its own precision."""
    options = homotopy or Homotopy()
    path = _Path(problem, solver, options, network)
    if options.stages == 1 or not options.adaptive:
        return path.finish(path.uniform())
    result = path.adaptive()
    for _ in range(options.restarts):
        if result.success or path.spent():
            break
        result = _better(result, path.restarted().adaptive())
    if not (result.success or path.spent() or path.out_of_stages):
        result = _better(result, path.direct())
    return path.finish(result)


def _better(before: FlipResult, after: FlipResult) -> FlipResult:
    """The later result, but no boundary point is given up for none."""
    return after if after.success or np.isnan(before.distance) else before


@dataclass
class _State:
    """Where the path is: the last point that was kept, its multipliers, and how to go on."""

    x: Array
    t: float = 0.0
    multipliers: Array | None = None
    step: float = FIRST_STEP
    failures: int = 0
    """Stages so far that failed or ended at their limit."""
    repeats: int = 0
    """Times that the last stage ended on the boundary, not stationary."""
    trust: bool = False
    """Whether the trust-region solver has taken over."""
    patience: int = 1
    """What the iterations of its stages are multiplied by."""


class _Path:
    def __init__(self, problem: FlipProblem, solver: Solver, options: Homotopy, network: Network | None) -> None:
        self.problem, self.solver, self.options, self.network = problem, solver, options, network
        self.transformation = transform(problem, options.tau, options.margin, options.smooth)
        self.stages: list[Stage] = []
        self.cost, self.started = Evaluations(), time.perf_counter()
        self.away: Array | None = None
        self.out_of_stages = False
        self.state = _State(problem.x)

    # The two kinds of path

    def uniform(self) -> FlipResult:
        """Algorithm 2: eta stages of equal length; a stage that finds no flip point leaves the starting point alone."""
        eta, state = self.options.stages, self.state
        for k in range(1, eta + 1):
            t = 1.0 if k == eta else k / eta
            result = self._solve(t, self._loose(self.solver) if t < 1 else self.solver)
            kept = feasible(result)
            self._record(t, result, kept, "next" if kept else "go on from the point before")
            if kept:
                state.x, state.multipliers = result.x, result.multipliers
            state.t = t
            if self.spent():
                break
        return result if t == 1 else self._give_up()

    def adaptive(self) -> FlipResult:
        """Steps by need, until the trained network's flip point is verified or everything has been tried."""
        state, lengths = self.state, _Lengths(self.transformation)
        state.step = max(FIRST_STEP, lengths.at(1 / self.options.stages))
        last, asides, first, self.out_of_stages = None, iter((True,)), len(self.stages), False
        while not self.out_of_stages:
            t = lengths.after(state.t, state.step)
            result = self._solve(t, self._stage_solver(t))
            last = result if t == 1 else last
            if t == 1 and result.success:
                self._record(t, result, True, "arrived")
                return result
            if feasible(result):
                self._accept(t, result)
            elif not self._shorten(t, result) and not self._aside(asides):
                break
            if self.spent() or state.repeats > REPEATS:
                break
            self.out_of_stages = len(self.stages) - first >= self.options.max_stages
        return last or self._give_up()

    def direct(self) -> FlipResult:
        """The last resort: the user's solver on the trained network, from x and from the end of the walk."""
        for from_walk in (False, True):
            self.state = _State(walk(self.problem, self.cost) if from_walk else self.problem.x, t=1.0)
            result = self._solve(1.0, self.solver)
            self._record(1.0, result, result.success, "the path failed: a direct solve without it")
            if result.success or self.spent():
                break
        return result

    def _give_up(self) -> FlipResult:
        """The path ended early: what the trained network's problem says from its last point, within what is left."""
        result = self._solve(1.0, self._stage_solver(1.0))
        self._record(1.0, result, result.success, "the path ended early: a direct attempt from its last point")
        return result

    # Decisions

    def _accept(self, t: float, result: FlipResult) -> None:
        """Go on from the point; the step grows after an easy stage and shrinks after one that moved far."""
        state = self.state
        distance, moved = self.problem.distance(result.x), self._moved(result.x)
        if t == 1:  # on the boundary, not yet stationary: the same stage again, with short steps
            decision, state.trust = "not stationary: trust region from here", True
            state.repeats += 1
        elif state.t > 0 and moved > FAR * distance:
            decision, state.step = "moved far: shorter step", SHRINK * state.step
        else:
            decision = self._next_step(result)
        if t < 1 and result.status is Status.LIMIT:
            decision += self._trouble(t)
        self._record(t, result, True, decision)
        state.x, state.multipliers, state.t = result.x, result.multipliers, t

    def _trouble(self, t: float) -> str:
        """Count a stage that failed or ended at its limit, and say so if the solver of short steps takes over."""
        state = self.state
        state.failures += 1
        # Smooth solvers never settle at the kinks of linear pieces: one such stage is enough to know.
        enough = 1 if Pieces().cannot(self._stage_problem(t).setting) is None else ENOUGH
        if state.trust or (state.failures < enough and t < 1):
            return ""
        state.trust = True
        return ", trust region from here"

    def _next_step(self, result: FlipResult) -> str:
        """Longer by as much as the stage took less than its target; hard stages shorten long steps only."""
        state = self.state
        factor = float(np.clip(np.sqrt(TARGET / max(result.evaluations.forward, 1)), HARD, GROW))
        if state.trust:  # it pays for every step by its many short ones, however long the stage
            factor = TRUST_GROW
        if factor >= 1:
            state.step *= factor
            return "longer step"
        if state.step <= SHORT:
            return "same step"
        state.step = max(factor * state.step, SHORT)
        return "hard: shorter step"

    def _shorten(self, t: float, result: FlipResult) -> bool:
        """After a failed stage; False if steps are as short as they may be and the solver as patient."""
        state = self.state
        state.step *= SHRINK
        decision = "failed: shorter step" + self._trouble(t)
        possible = state.step >= SHORTEST
        taken_over = self._stage_solver(t).name != self.solver.name
        if not possible and taken_over and state.patience < PATIENT:
            decision, possible = "failed: more iterations", True
            state.patience, state.step = PATIENT, SHORT
        self._record(t, result, False, decision if possible else "failed: no shorter step")
        if possible and not self.options.monotone and state.t > 0:
            self._step_back()
        return possible

    def _step_back(self) -> None:
        """Non-monotone (D.5): solve at an earlier t from the last point, which may lead to another branch."""
        state = self.state
        t = max(0.5 * state.t, state.t - 0.1)
        result = self._solve(t, self._stage_solver(t))
        kept = feasible(result)
        self._record(t, result, kept, "a step back")
        if kept:
            state.x, state.multipliers, state.t = result.x, result.multipliers, t

    def _aside(self, asides: Iterator[bool]) -> bool:
        """Once: start in other directions, those that no bound blocks; False if that has been tried."""
        problem, state = self.problem, self.state
        if not next(asides, False):
            return False
        free = ~problem.frozen & (state.x > problem.lower) & (state.x < problem.upper)
        noise = np.random.default_rng(0).standard_normal(len(free)) * free
        size = ASIDE * max(float(np.linalg.norm(state.x - problem.x)), 1e-3 * float(np.linalg.norm(problem.x)))
        state.x = problem.clip(state.x + size * noise / max(float(np.linalg.norm(noise)), 1e-300))
        state.multipliers, state.step, state.failures, state.trust = None, FIRST_STEP / 4, 0, False
        return True

    def restarted(self) -> _Path:
        """From the beginning, kept away from where the path ended by a ball, until the last stage."""
        ended = self.state.x
        self.away = ended if self.away is None else np.vstack([self.away, ended])
        self.state = _State(self.problem.x)
        return self

    # Stages

    def _solve(self, t: float, solver: Solver) -> FlipResult:
        """The flip point of the stage's network, from the last point; every limit kept."""
        problem = self._stage_problem(t)
        if t < 1 and self.state.trust and solver.name == self.solver.name:
            lower, upper = self._box()
            problem = problem.changed(lower=lower, upper=upper)
        x0, multipliers = self.state.x, self.state.multipliers
        result = self._limited(solver).solve(problem, x0, self.network if t == 1 else None, multipliers)
        self.cost = self.cost + result.evaluations
        return result

    def _stage_problem(self, t: float) -> FlipProblem:
        """The problem for the network at t, and at 1 the user's own problem."""
        if t == 1:
            return self.problem
        return self.problem.changed(network=self.transformation.at(t), constraints=self._constraints())

    def _box(self) -> tuple[Array, Array]:
        """Bounds around the last point, where the solvers of short steps should, but cannot, act."""
        problem, x = self.problem, self.state.x
        radius = BOX * float(np.abs(x - problem.x).max()) or np.inf
        return np.maximum(problem.lower, x - radius), np.minimum(problem.upper, x + radius)

    def _constraints(self) -> tuple[Constraint, ...]:
        own = self.problem.constraints
        if self.away is None:
            return own
        centres = np.atleast_2d(self.away)
        radius = ASIDE * max(float(np.linalg.norm(centres - self.problem.x, axis=1).min()), 1e-12)
        return (*own, outside_balls(centres, radius))

    def _stage_solver(self, t: float) -> Solver:
        """The user's solver, or the one that has taken over: exact over linear pieces, short steps elsewhere."""
        if self.state.trust:
            tolerance, problem = self.solver.tolerance, self._stage_problem(t)
            pieces, funnel = Pieces(tolerance=tolerance), FUNNELS[0 if self.away is None else 1]
            trust = TrustRegion(max_iter=TRUST_ITERATIONS, tolerance=tolerance, funnel=funnel)
            if pieces.cannot(problem.setting) is None:
                return pieces if t == 1 else self._loose(pieces)
            if trust.cannot(problem.setting) is None and (t == 1 or len(problem.free) <= TRUST_N):
                return trust if t == 1 else self._loose(trust)
        if t < 1:
            return self._loose(self.solver)
        return replace(self.solver, max_iter=min(self.solver.max_iter, LAST_ITERATIONS))

    def _loose(self, solver: Solver) -> Solver:
        return solver.loosened(LOOSE, LOOSE_ITERATIONS * self.state.patience)

    def _limited(self, solver: Solver) -> Solver:
        """The solver with what is left of the path's budget."""
        limits: dict[str, float] = {}
        if self.options.max_evaluations is not None:
            left = max(1, self.options.max_evaluations - self.cost.forward)
            limits["max_evaluations"] = left if solver.max_evaluations is None else min(left, solver.max_evaluations)
        if self.options.max_seconds is not None:
            left_s = max(1e-3, self.options.max_seconds - (time.perf_counter() - self.started))
            limits["max_seconds"] = left_s if solver.max_seconds is None else min(left_s, solver.max_seconds)
        return replace(solver, **limits) if limits else solver  # type: ignore[arg-type]

    def spent(self) -> bool:
        """Whether a limit of the whole path is reached."""
        evaluations, seconds = self.options.max_evaluations, self.options.max_seconds
        late = seconds is not None and time.perf_counter() - self.started >= seconds
        return late or (evaluations is not None and self.cost.forward >= evaluations)

    def _moved(self, x_hat: Array) -> float:
        return float(np.linalg.norm(x_hat - self.state.x))

    def _record(self, t: float, result: FlipResult, kept: bool, decision: str) -> None:
        check = result.check
        self.stages.append(
            Stage(
                t=t,
                step=t - self.state.t,
                x=result.x,
                distance=self.problem.distance(result.x),
                moved=self._moved(result.x),
                boundary_gap=check.boundary_gap if check else np.nan,
                kkt_residual=check.kkt_residual if check else np.nan,
                status=result.status,
                solver=result.solver,
                evaluations=result.evaluations,
                kept=kept,
                decision=decision,
            )
        )

    def finish(self, result: FlipResult) -> FlipResult:
        """The last stage's result with the cost and the record of all of them."""
        elapsed = time.perf_counter() - self.started
        status, message = result.status, result.message
        if not result.success and (self.spent() or self.out_of_stages):
            status, message = Status.LIMIT, f"the homotopy's limit was reached at t = {self.state.t:.3g} ({message})"
        return replace(
            result,
            status=status,
            message=message,
            evaluations=self.cost,
            elapsed=elapsed,
            stages=tuple(self.stages),
        )


class _Lengths:
    """l(t) on a grid, and its inverse."""

    def __init__(self, transformation: Transformation) -> None:
        self.t = np.linspace(0, 1, GRID)
        steepness = np.array([transformation.log_steepness(float(t)) for t in self.t])
        variation = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(steepness)))])
        self.l = T_WEIGHT * self.t + variation

    def at(self, t: float) -> float:
        return float(np.interp(t, self.t, self.l))

    def after(self, t: float, step: float) -> float:
        """Where a step of this length from t leads; a last step that would be shorter than a third is joined to it."""
        end = self.at(t) + step
        if end + step / 3 >= self.l[-1]:
            return 1.0
        return float(np.interp(end, self.l, self.t))


def feasible(result: FlipResult) -> bool:
    """Whether a path may go on from the point: on the boundary, roughly, and within all other constraints."""
    check = result.check
    return check is not None and bool(
        check.boundary_gap <= FEASIBLE
        and check.class_margin >= -FEASIBLE
        and check.bound_violation == 0
        and check.constraint_violation <= FEASIBLE
    )
