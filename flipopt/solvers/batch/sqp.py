"""Sequential quadratic programming on many flip problems at once.

Every problem takes its own steps and leaves when it is done; together they only share the matrix products. A problem
passes through two phases.

Approach. From x, where a saturated network's gradient says where to go but not how far, steps of limited length towards
the linearised constraints, each accepted if it reduces their violation.

Descent. Once the boundary is near, the step is the minimiser of a quadratic model of the Lagrangian under the
linearised constraints, d = normal + tangential, cut to the trust radius. With n(u) the shortest step to the linearised
constraints, the merit function is

    F(u) = |u + n(u) - x|^2 / 2,

the objective where u would land on the boundary: it sees the curvature of the boundary that a step along the tangent
leaves, so no correction is needed, and it has no penalty parameter. A step is accepted if F falls by a share of what
the model promised while |n| stays within the funnel, or if |n| itself falls well, and then the funnel narrows. So F
falls for ever within the same funnel, or the funnel shrinks to nothing: the iteration cannot cycle.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.kernels import projections
from flipopt.kernels.limited_memory import gradient_changes
from flipopt.networks.protocol import Network
from flipopt.problem import FlipBatch
from flipopt.runs.threads import stop_if_interrupted
from flipopt.solvers.batch.limited_memory import Memory
from flipopt.solvers.batch.linearization import Linearization, Linearizer
from flipopt.solvers.batch.options import Steps
from flipopt.solvers.batch.outcome import Outcome

NORMAL_SHARE = 0.8
"""Of the radius, at most, for the normal part of a step (Byrd, Gilbert and Nocedal, Math. Programming 89, 2000)."""
GOOD, POOR = 0.5, 0.1
"""Ratios of actual to promised reduction above which the radius may grow, and below which a step is refused."""
GROW, SHRINK = 2.0, 0.35
"""What the radius is multiplied by then (Conn, Gould and Toint, Trust-Region Methods, 2000, section 17.1)."""
FIRST_RADIUS = 0.1
"""Of the trust region, relative to |x|."""
NOISE = 1e-11
"""Relative rounding errors of F."""
ON_BOUNDARY = 1e-10
"""Violation of the constraints at a solution, as a distance relative to that from x."""
STALLED, COARSE_STALLED = 1e-11, 3e-5
"""A radius below this, relative to the size of the point, is lost in rounding: in float64, and in float32."""
COARSE = 1e-4
"""KKT residual up to which float32 can be trusted."""
FEW, FEWEST_PAIRS = 300, 8
"""Variables above which the memory has fewer pairs, and how few at least."""


@dataclass
class Progress(Columns):
    """How far every problem is, (problems,): trust radius, funnel (infinite during the approach), iterations."""

    radius: Array
    funnel: Array
    iterations: Array


@dataclass
class Waiting(Columns):
    """Problems for which float32 no longer does: which they are, (k,), their points (k, n), their watched classes
    (k, classes) and where their memory is, (k,)."""

    live: Array
    u: Array
    watched: Array
    place: Array


@dataclass(frozen=True)
class Sight:
    """How far the problems ``live`` (k,) are: what giving some of them up can be decided by.

    Attributes
    ----------
    distance
        Where the boundary is near, its distance; before that, how far from x the approach has come.
    residual
        Of the KKT conditions.
    met, solved
        Whether the boundary is near, and whether the problem is solved.
    """

    live: Array
    distance: Array
    residual: Array
    met: Array
    solved: Array


Drop = Callable[[Sight], Array]
"""To a mask (k,) of the problems to give up."""


class Sqp:
    """One run over a batch of problems, from one starting point each.

    ``network`` stands in for the batch's own one, and ``far`` for either as long as a problem is not nearly solved.
    Then it waits until all others are, and they go on together.
    """

    def __init__(
        self,
        batch: FlipBatch,
        starts: Array,
        steps: Steps,
        tolerance: float,
        max_iter: int,
        deadline: float = np.inf,
        drop: Drop | None = None,
        on_boundary: float = ON_BOUNDARY,
        network: Network | None = None,
        far: Network | None = None,
    ) -> None:
        self.whole = self.batch = batch
        self.steps = steps
        self.tolerance, self.on_boundary = tolerance, on_boundary
        self.max_iter, self.deadline, self.drop = max_iter, deadline, drop
        count, n = starts.shape
        self.linearizer = Linearizer(batch, steps.watched, network)
        self.exact, self.coarse = self.linearizer, far is not None
        if far is not None:
            self.linearizer = Linearizer(batch, steps.watched, far)
        self.live = np.arange(count)  # which problem each entry of what follows belongs to
        self.size = self._sizes(batch)
        self.progress = Progress(FIRST_RADIUS * self.size, np.full(count, np.inf), np.zeros(count, dtype=np.int64))
        self.waiting: list[tuple[Waiting, Progress]] = []
        self.memory = Memory(count, n, steps.pairs if n <= FEW else max(FEWEST_PAIRS, steps.pairs * FEW // n))
        self.outcome = Outcome.starting(starts)
        self.here = self._start(self.linearizer.inside(self.linearizer.scale * starts))
        self._sort_out()

    def _sizes(self, batch: FlipBatch) -> Array:
        """Of the inputs, as a measure of steps, (problems,)."""
        return np.asarray(np.maximum(np.linalg.norm(self.linearizer.scale * batch.X, axis=1), 1e-3))

    def run(self) -> Outcome:
        # Where the boundary is all but flat, steps may be too long to be squared: they are cut or refused.
        with np.errstate(over="ignore", invalid="ignore"):
            while len(self.live):
                stop_if_interrupted()
                self._iterate()
                self._sort_out()
        return self.outcome

    def _sort_out(self) -> None:
        """Take problems out that are nearly or altogether done, until there are some to go on with or none left."""
        while True:
            if self.coarse:
                self._wait()
            self._leave()
            if len(self.live) or not self.coarse:
                break
            self._go_on()

    def _start(self, u: Array) -> Linearization:
        """The first linearisation; problems in a row that start at the same point share its forward pass."""
        distinct = np.ones(len(u), dtype=bool)
        distinct[1:] = (u[1:] != u[:-1]).any(axis=1)
        at = self.linearizer.at(self.batch, u, None, distinct)
        self.outcome.forward[distinct] += 1
        self.outcome.backward[:] += at.classes.sum(axis=1)
        return at

    def _at(self, batch: FlipBatch, u: Array, rows: Array, watched: Array) -> Linearization:
        """The linearisation at u, counted for the problems ``rows``."""
        at = self.linearizer.at(batch, u, watched)
        self.outcome.forward[rows] += 1
        self.outcome.backward[rows] += at.classes.sum(axis=1)
        return at

    def _wait(self) -> None:
        """Problems that are nearly solved wait for float64."""
        here, progress = self.here, self.progress
        near = (here.residual <= COARSE) | (progress.radius <= COARSE_STALLED * self.size)
        if near.any():
            watched = _classes(here, self.batch.network.n_classes)
            some = Waiting(self.live, here.u, watched, self.memory.place).take(near)
            self.waiting.append((some, progress.take(near)))
            self._keep(np.flatnonzero(~near))

    def _go_on(self) -> None:
        """All that has waited goes on in float64 where it is."""
        self.linearizer, self.coarse = self.exact, False
        if self.waiting:
            some, self.progress = (type(parts[0]).join(parts) for parts in zip(*self.waiting, strict=True))
            self.live, self.batch, self.memory.place = some.live, self.whole.take(some.live), some.place
            self.size = self._sizes(self.batch)
            self.here = self._at(self.batch, some.u, some.live, some.watched)

    def _leave(self) -> None:
        """Problems that are solved, stuck, at their limit or given up leave the batch."""
        here, progress = self.here, self.progress
        solved = (here.residual <= self.tolerance) & (here.worst <= self.on_boundary)
        solved &= not self.coarse
        stuck = (progress.radius < STALLED * self.size) | ~np.isfinite(here.violation)
        dropped = np.zeros(len(self.live), dtype=bool)
        if self.drop is not None:
            met = np.isfinite(progress.funnel)
            distance = np.where(met, np.sqrt(2 * here.projected), np.linalg.norm(here.r, axis=1))
            dropped = self.drop(Sight(self.live, distance, here.residual, met, solved)) & ~solved
        late = time.perf_counter() > self.deadline
        leaving = solved | stuck | dropped | (progress.iterations >= self.max_iter) | late
        if not leaving.any():
            return
        rows, outcome = self.live[leaving], self.outcome
        u = here.u[leaving]
        if len(self.linearizer.linear):  # what is nearly so holds to rounding after one more step
            u = np.where(solved[leaving, None], self.linearizer.inside(u + here.normal[leaving]), u)
        outcome.x[rows] = self.batch.take(leaving).clip(u / self.linearizer.scale)
        outcome.solved[rows], outcome.dropped[rows] = solved[leaving], dropped[leaving]
        outcome.limited[rows] = ~(solved | stuck | dropped)[leaving]
        outcome.late[rows] = outcome.limited[rows] & (progress.iterations < self.max_iter)[leaving]
        outcome.iterations[rows] = progress.iterations[leaving]
        self._keep(np.flatnonzero(~leaving))

    def _keep(self, rows: Array) -> None:
        """Go on with these of the live problems."""
        self.live, self.size, self.batch = self.live[rows], self.size[rows], self.batch.take(rows)
        self.here, self.progress = self.here.take(rows), self.progress.take(rows)
        self.memory.keep(rows)

    def _iterate(self) -> None:
        """One step of every problem."""
        here, progress = self.here, self.progress
        self._begin_descent()
        approach = np.isinf(progress.funnel)
        step, lam, normal_share, promised = self._step(approach)
        trial = self._at(self.batch, here.u + step, self.live, self._kept(lam))
        accepted, good = self._judge(trial, step, approach, normal_share, promised)
        # The secant of the Lagrangian's gradient u - x - lam A, also from steps that are refused: they know most.
        change = np.empty_like(step)
        gradient_changes(lam, here.row, here.use, here.A, trial.row, trial.use, trial.A, change)
        self.memory.learn(~approach & np.isfinite(trial.violation), step, (step - change) * trial.moving)
        length = np.linalg.norm(step, axis=1)
        longer = good & (length >= 0.75 * progress.radius)
        grown = np.where(longer, GROW * progress.radius, progress.radius)
        progress.radius = np.where(accepted, grown, SHRINK * np.fmin(length, progress.radius))
        progress.iterations += 1
        self._watch_more(trial, ~accepted)
        here.merge(accepted, trial)

    def _begin_descent(self) -> None:
        """The approach ends where the boundary is near; the funnel is as wide as the normal step may be there."""
        here, progress = self.here, self.progress
        wide = self.steps.near * np.linalg.norm(here.r, axis=1)
        arrived = np.isinf(progress.funnel) & (np.linalg.norm(here.normal, axis=1) <= wide)
        progress.funnel = np.where(arrived, wide, progress.funnel)

    def _step(self, approach: Array) -> tuple[Array, Array, Array, Array]:
        """The composed step, the model's multipliers, the share of the normal step in it, and how much F should fall.

        The model's minimiser is d = H (lam A - r), with lam such that A d + c = 0 (or >= 0) and H the inverse Hessian.
        """
        here, radius = self.here, self.progress.radius
        HA, Hr = self.memory.inverse(here.A, here.use, here.r)
        if self.linearizer.bounded:
            HA *= here.moving[:, None]
            Hr *= here.moving
        lam, minimiser = np.empty_like(here.c), np.empty_like(here.r)
        projections.model_multipliers(here.A, HA, Hr, here.c, here.use, self.linearizer.equations, lam, minimiser)
        tangential = minimiser - here.normal
        far = np.maximum(np.linalg.norm(here.normal, axis=1), 1e-300)
        normal_share = np.minimum(1.0, NORMAL_SHARE * radius / far)
        left = np.sqrt(np.maximum(radius**2 - (normal_share * far) ** 2, 0.0))
        share = np.minimum(1.0, left / np.maximum(np.linalg.norm(tangential, axis=1), 1e-300))
        share = np.where(approach, 0.0, share)
        step = normal_share[:, None] * here.normal + share[:, None] * tangential
        if self.linearizer.bounded:
            step = self.linearizer.inside(here.u + step) - here.u
        slope = -((here.r + here.normal) * tangential).sum(axis=1)
        return step, lam, normal_share, (share - share**2 / 2) * np.maximum(slope, 0.0)

    def _judge(
        self, trial: Linearization, step: Array, approach: Array, normal_share: Array, promised: Array
    ) -> tuple[Array, Array]:
        """Which steps are accepted, and which were as good as promised; narrows the funnels."""
        here, progress = self.here, self.progress
        before, after = np.linalg.norm(here.normal, axis=1), np.linalg.norm(trial.normal, axis=1)
        F, F_after = here.projected, trial.projected
        lowers = (F - F_after >= POOR * promised - NOISE * F) & (after <= progress.funnel)
        as_predicted = np.abs(after - (1 - normal_share) * before) <= np.linalg.norm(step, axis=1)
        nearer = after <= (1 - self.steps.normal_fall * normal_share) * before
        expected = here.violation - _violation(here, step, self.linearizer.equations)
        fall = here.violation - trial.violation
        accepted = np.where(approach, fall >= POOR * expected, (lowers & as_predicted) | nearer)
        good = np.where(approach, fall >= GOOD * expected, F - F_after >= GOOD * promised)
        accepted = accepted & np.isfinite(trial.violation) & np.isfinite(after)
        narrower = ~approach & accepted & ~lowers
        progress.funnel = np.where(narrower, np.maximum(progress.funnel / 2, after), progress.funnel)
        return accepted, good

    def _kept(self, lam: Array) -> Array:
        """Classes with a multiplier, which are watched at the next point too: a mask (problems, classes)."""
        mask = np.zeros((len(lam), self.batch.network.n_classes), dtype=bool)
        problems, slot = np.nonzero(self.here.classes & (lam != 0))
        mask[problems, self.here.row[problems, slot]] = True
        return mask

    def _watch_more(self, trial: Linearization, refused: Array) -> None:
        """Classes that a refused step has run into are watched from where it started."""
        classes = self.batch.network.n_classes
        seen, met = _classes(self.here, classes), _classes(trial, classes)
        rows = np.flatnonzero(refused & (met & ~seen).any(axis=1) & np.isfinite(trial.violation))
        if len(rows):
            more = self._at(self.batch.take(rows), self.here.u[rows], self.live[rows], (seen | met)[rows])
            self.here.put(rows, more)


def _classes(at: Linearization, classes: int) -> Array:
    """The classes that are watched, as a mask (problems, classes)."""
    mask = np.zeros((len(at.u), classes), dtype=bool)
    problems, slot = np.nonzero(at.classes)
    mask[problems, at.row[problems, slot]] = True
    return mask


def _violation(here: Linearization, step: Array, equations: Array) -> Array:
    """What the linearised watched rows are violated by after the step, (problems,)."""
    c = np.empty_like(here.c)
    projections.products(here.A, here.use, step, c)
    c += here.c
    below = np.where(here.use, np.where(equations, c, np.minimum(c, 0.0)), 0.0)
    return np.asarray(np.linalg.norm(below, axis=1))
