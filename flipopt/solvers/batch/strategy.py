"""How a chunk of problems is solved, from the first start to the check.

Problems with and without kinks go through the same steps: approach through softened networks, descend on the trained
one, hand what is left to another solver, start again where that may pay. How each step is done is theirs.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks.softening import sizes_of, softens
from flipopt.problem import FlipBatch, FlipProblem
from flipopt.results import FlipResult
from flipopt.solvers.batch.options import Plan, Schedule, Softening
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.prune import Farther, Fruitless, Hopeless, front, leading
from flipopt.solvers.batch.sqp import Sqp
from flipopt.solvers.starts import Samples, further_points, reflected
from flipopt.solvers.template import Solver

LOG = logging.getLogger(__name__)
SOFT_TOLERANCE, SOFT_BOUNDARY, SOFT_ITERATIONS = 3e-2, 1e-3, 40
"""KKT residual and relative violation at which the problem of a softened network ends, and its iterations at most:
the next network begins where it is."""


@dataclass
class Found:
    """Where the problems of a chunk ended, how many starts each had, and how many of these led there, (problems,)."""

    outcome: Outcome
    starts: Array
    agreeing: Array


class Strategy(ABC):
    """The steps for one chunk of problems; ``groups`` (problems,) are those of which only the nearest is wanted."""

    fall = 1.0
    """Share of its distance to which a problem that is not solved may still be brought."""

    def __init__(self, batch: FlipBatch, plan: Plan, options: Schedule, groups: Array | None) -> None:
        self.batch, self.plan, self.options, self.groups = batch, plan, options, groups
        network = batch.network
        self.softens = plan.soften and softens(network)
        prunes = groups is not None and plan.prune and network.n_classes > 2
        self.farther = Farther(groups) if prunes and groups is not None else None

    def run(self, starts: int, samples: Samples | None, seed: int) -> Found:
        """Every start of every problem."""
        found = self.rescued(self.started(seed))
        ones = np.ones(len(self.batch), dtype=np.int64)
        result = Found(self.settled(found), ones, ones.copy())
        for points, soften in self._further_starts(found, starts - 1, samples, seed):
            rows = np.flatnonzero(~found.dropped)
            same, nearer = self._again(found, rows, points[rows], soften, self.farther)
            result.agreeing[rows] = np.where(nearer, 1, result.agreeing[rows] + same)
            result.starts[rows] += 1
        if self.groups is not None:
            result.agreeing[self._restarted(found, self.groups, starts - 1)] = 1
        return result

    def run_from(self, points: Array, soften: bool) -> Found:
        """One descent of every problem from ``points``; with ``soften`` as further starts go."""
        every, ones = np.arange(len(self.batch)), np.ones(len(self.batch), dtype=np.int64)
        further = self.options.restarts[-1].soften if self.softens and soften else ()
        found = self.descended(every, self.approached(every, points, further, True), self.farther)
        return Found(self.settled(found), ones, ones.copy())

    # The steps that problems with and without kinks take in their own ways

    @abstractmethod
    def descended(self, rows: Array, found: Outcome, prune: Farther | None) -> Outcome:
        """The problems ``rows`` from where the approach has ended to the flip points of the trained network."""

    @abstractmethod
    def other_solver(self, seconds: float) -> Solver:
        """Who gets what is left over, for so many seconds."""

    def rescue_start(self, problem: FlipProblem, x_hat: Array) -> Array:
        """Where the other solver starts: anew, since x_hat is where steps got stuck."""
        return problem.x

    def settled(self, found: Outcome) -> Outcome:
        """The first start's ends, improved where that is cheap."""
        return found

    def explored(self, found: Outcome, rows: Array, part: Outcome) -> Outcome:
        """The ends ``part`` of a further start of the problems ``rows``, improved where that is cheap."""
        return part

    def restartable(self, found: Outcome, distance: Array, groups: Array) -> Array:
        """The problems that may be the nearest of their group."""
        return front(found, distance, groups, self.options.close)

    def seen_from(self, found: Outcome, distance: Array, groups: Array) -> Array:
        """The points as seen from which restarts are behind x, (problems, n_inputs)."""
        return found.x

    # What they share

    def started(self, seed: int) -> Outcome:
        """The first start of all problems: from x through softened networks to the flip points."""
        every, soften = np.arange(len(self.batch)), self.options.soften if self.softens else ()
        return self.descended(every, self.approached(every, self.batch.X, soften, True), self.farther)

    def approached(self, rows: Array, points: Array, soften: Softening, prune: bool) -> Outcome:
        """From ``points`` through the networks softened by ``soften``, each from the solution of the one before.

        With ``prune``, classes that are much farther than others of the same group are given up.
        """
        batch, found = self.batch.take(rows), Outcome.starting(points)
        for share in soften:
            drop = None
            if prune and self.farther is not None:
                kept, cost = leading(batch, self.farther.groups[rows], self.options.close)
                found.forward += cost.forward
                found.backward += cost.backward
                drop = Hopeless(self.farther.groups[rows], self.options.hopeless, kept)
            self.go_through(batch, share, found, drop)
        found.solved[:] = found.limited[:] = found.late[:] = False
        return found

    def go_through(
        self, batch: FlipBatch, share: float, found: Outcome, drop: Hopeless | None, tolerance: float = SOFT_TOLERANCE
    ) -> None:
        """What has not been given up goes on in the networks softened by ``share`` of the size that each x has."""
        sizes, limit = sizes_of(batch.network, batch.X), min(self.plan.iterations, SOFT_ITERATIONS)
        for size in np.unique(sizes):
            some = np.flatnonzero((sizes == size) & ~found.dropped)
            soft = batch.network.softened(share, float(size)).in_float32  # type: ignore[attr-defined]
            part, points = None if drop is None else drop.part(some), found.x[some]
            ways = (self.plan.steps, tolerance, limit, self.deadline(), part, SOFT_BOUNDARY, soft)
            found.go_on(some, Sqp(batch.take(some), points, *ways).run())

    def deadline(self) -> float:
        seconds = self.plan.max_seconds
        return np.inf if seconds is None else time.perf_counter() + seconds

    def _further_starts(
        self, found: Outcome, count: int, samples: Samples | None, seed: int
    ) -> Iterator[tuple[Array, Softening]]:
        """The further starts that a user asks for: their points, and what they pass through."""
        later = self.options.restarts if self.softens else ()
        for start in later[:count]:
            yield reflected(self.batch, found.x, start.reflect), start.soften
        for k in range(count - len(later)):
            yield further_points(self.batch, k, samples, seed), later[-1].soften if later else ()

    def _restarted(self, found: Outcome, groups: Array, done: int) -> Array:
        """Start the classes that may be the nearest again, as a part of their first start, those from ``done`` on.

        Once for all, more often for what has been cheap so far. Returns a mask of the problems that became nearer.
        """
        changed = np.zeros(len(self.batch), dtype=bool)
        for k, start in enumerate(self.options.restarts[done:] if self.softens else ()):
            distance = found.distances(self.batch)
            rows = self.restartable(found, distance, groups)
            spent = np.bincount(groups, found.forward + found.backward)
            rows = rows[(k == 0) | (spent[groups[rows]] < self.options.budget)]
            points = reflected(self.batch, self.seen_from(found, distance, groups), start.reflect)[rows]
            _, nearer = self._again(found, rows, points, start.soften, Fruitless(groups, distance, rows))
            changed[rows[nearer]] = True
        return changed

    def _again(
        self, found: Outcome, rows: Array, points: Array, soften: Softening, prune: Farther | None
    ) -> tuple[Array, Array]:
        """Start the problems ``rows`` from ``points`` and keep what is better: masks of the same, and of the nearer."""
        part = self.approached(rows, points, soften, prune is self.farther)
        part = self.descended(rows, part, None if prune is None else prune.part(rows))
        return found.improve(self.batch, rows, self.explored(found, rows, part))

    def rescued(self, found: Outcome) -> Outcome:
        """What is not solved, by another solver, one by one from the nearest to the farthest.

        What is too far to become the nearest of its group is given up.
        """
        if not self.plan.rescue:
            return found
        prune, distance, until = (
            self.farther,
            found.distances(self.batch),
            time.perf_counter() + self.plan.rescue_seconds,
        )
        for k in found.left[np.argsort(distance[found.left], kind="stable")]:
            if prune is not None and prune.part(np.array([k])).too_far(distance[[k]], self.fall)[0]:
                found.dropped[k] = True
                continue
            seconds = min(until - time.perf_counter(), self.plan.max_seconds or np.inf)
            if seconds <= 0:
                found.words[k] = f"not solved, and {self.plan.rescue_seconds:g} s for further attempts were over"
                continue
            solver, problem = self.other_solver(seconds), self.batch.problem(int(k))
            LOG.info("%s for classes %s, left over by the batch solver", solver.name, problem.classes)
            result = solver.solve(problem, self.rescue_start(problem, found.x[k]))
            found.forward[k] += result.evaluations.forward
            found.backward[k] += result.evaluations.backward + result.evaluations.hessian
            found.iterations[k] += result.iterations
            if result.success or self._nearer_boundary(result, problem, found.x[k]):
                found.x[k], found.solved[k] = result.x, result.success
                found.solver[k], found.words[k] = solver.name, result.message
            if prune is not None and result.success:
                prune.note(prune.groups[[k]], np.array([result.distance]))
        return found

    def _nearer_boundary(self, result: FlipResult, problem: FlipProblem, x_hat: Array) -> bool:
        """Whether another solver's point is on the boundary where this one's is not."""
        from flipopt.verification import verify

        return bool(np.isfinite(result.distance) and not verify(problem, x_hat).on_boundary)
