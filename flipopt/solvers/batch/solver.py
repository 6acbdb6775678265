"""The batch solver: starts, second attempts, pruning and verification around the SQP iteration."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks import DenseNetwork
from flipopt.networks.protocol import Network
from flipopt.problem import FlipBatch, FlipProblem, Goal, Oracle, Reduced, Setting, Span
from flipopt.results.result import FlipResult, Status
from flipopt.runs.threads import cores, even_share, in_order
from flipopt.solvers.batch.nearest import Hopeless, Known, Nearest, covered, front, leading, ties_will_do, waves
from flipopt.solvers.batch.outcome import Outcome, compare, put, take_best
from flipopt.solvers.batch.sqp import Drop, Sqp
from flipopt.solvers.batch.starts import Samples, behind, on_the_way, random_points, sizes_of
from flipopt.solvers.batch.verdict import BatchResult, Verdicts
from flipopt.solvers.ipopt import Ipopt
from flipopt.solvers.pieces.compiled import descend, neighbouring_minima, piecewise_linear
from flipopt.solvers.pieces.solver import Pieces
from flipopt.solvers.template import Answer, Capabilities, Solver
from flipopt.verification.many import verify_batch

Shares = tuple[float, ...]
"""How much softer each of the networks is that a start passes through, one after the other."""
Start = tuple[float, Shares]
"""How far behind x a start begins, as seen from the flip point that is known and relative to its distance, and what it
passes through."""

SAFETY = 0.5
"""The iteration goes on to this share of the tolerance, so that the check, which evaluates anew, agrees."""
MEMORY, DOUBLES = 2.0**30, 100
"""Bytes that the arrays of the chunks on all cores may take, about, and numbers a variable of a problem that they
hold."""
SMALLEST_CHUNK, LARGEST_CHUNK = 64, 8192
KINKED_ITERATIONS = 3
"""Of networks with kinks after softened ones, to come back to the boundary; the descent over linear pieces goes on."""
RESCUED_FALL = 0.7
"""Share of its distance to which the descent over pieces may bring a problem, for the nearest of all classes."""
STUCK_FALL = 0.9
"""The same for what got stuck in a network without kinks, by any further attempt."""
SOFT, SOFT_KINKED = (0.5,), (0.05,)
"""How much smoother the networks are that the first start passes through: shares of an erf's width, and of the size of
pre-activations where there are kinks."""
LATER: tuple[Start, ...] = ((0.25, ()), (0.0, (2.0,)), (0.0, ()))
LATER_KINKED: tuple[Start, ...] = ((0.0, (0.2, 0.05)), (0.0, (0.02,)), (0.0, (0.1,)))
"""The next starts, which should end elsewhere; starts at samples and random points pass through what the last does."""
MORE: tuple[Start, ...] = ((4.0, ()), (-1.5, ()))
"""Further looks at what is cheap, for the nearest of all classes: far behind x, and beyond the flip point."""
CLOSE, CLOSE_KINKED, AROUND = 1.1, 1.2, 1.15
"""For the nearest of all classes: those that end no farther than so many times the nearest get a second look, without
kinks and with them; with kinks, those within the last number a look around."""
BUDGET = 300
"""For the nearest of all classes: evaluations of an input up to which there are more than two looks at it."""
SOFT_TOLERANCE, SOFT_BOUNDARY, SOFT_ITERATIONS = 3e-2, 1e-3, 40
"""KKT residual and relative violation at which a softened problem ends, and its iterations at most."""
HOPELESS, ON_THE_WAY, VAGUE = 1.35, 2.7, 0.1
"""For the nearest of all classes: a class whose softened boundary is so many times farther than another's is given up,
and one that has come so far without meeting it; but not by kinks that are rounded off over more than the last number:
that says too little of who is the nearest. Nor are classes that the trained network, linearised at x, has within CLOSE
times the nearest."""
GIVEN_UP = "given up: another class is nearer"


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
    """Hand what is left over to IPOPT, or to the descent over linear pieces for ReLU networks."""
    prune: bool = True
    """For the nearest of all classes: give a class up once its distance can no longer become the smallest."""
    chunk: int | None = None
    """Problems at once; None for what fits the caches and memory."""

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

    def cannot(self, setting: Setting, goal: Goal | None = None) -> str | None:
        if (goal is not None and len(goal.classes) != 2) or setting.outputs != "logits" or setting.constraints:
            return "batch takes flips between two classes in the logits, without further constraints"
        return super().cannot(setting, goal)

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        """One problem, as a batch of its own."""
        problem = oracle.problem
        margin = float(problem.goal.lower.max())
        reduced = Reduced.of(FlipBatch(problem.setting, problem.x[None], np.array([problem.classes]), margin))
        batch, start = reduced.inner, oracle.point(u0)
        shares = self._first(batch) if np.array_equal(start, problem.x) else ()
        outcome = self._descent(batch, reduced.coordinates(start[None]), None, shares)
        if self.rescue and _kinked(batch):
            self._descend(batch, outcome, None)
        x_hat = reduced.lifted(outcome.x)[0]
        oracle.evaluations.forward += int(outcome.forward[0])
        oracle.evaluations.backward += int(outcome.backward[0])
        status = Status.LIMIT if outcome.limited[0] else Status.NUMERICAL_ERROR
        status = Status.CONVERGED if outcome.solved[0] else status
        return Answer(oracle.variables(x_hat), status, self._ending(outcome)[0], int(outcome.iterations[0]))

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
        samples = None if towards is None else Samples.of(batch.network, towards)

        def solve(rows: slice) -> BatchResult:
            return self.solve_chunk(batch.take(rows), starts, samples, seed, None if groups is None else groups[rows])

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

    def solve_chunk(
        self,
        batch: FlipBatch,
        starts: int = 1,
        towards: Samples | None = None,
        seed: int = 0,
        groups: Array | None = None,
    ) -> BatchResult:
        """A chunk from start to end, in as few variables as will do: every start, further attempts, the check."""
        reduced = Reduced.of(batch)
        if towards is not None:
            towards = Samples(reduced.coordinates(towards.X), towards.classes)
        found, tried, agreeing = self._solve_chunk(reduced.inner, starts, towards, seed, groups)
        found = replace(found, x=reduced.lifted(found.x))
        check = Verdicts.on(batch, found, groups, self.tolerance)
        return BatchResult.of(batch, found, self._ending(found), tried, agreeing, check)

    def _solve_chunk(
        self, batch: FlipBatch, starts: int, towards: Samples | None, seed: int, groups: Array | None
    ) -> tuple[Outcome, Array, Array]:
        """Where every problem ended, how many starts it had, and how many of them led there."""
        nearest = None if groups is None or not self.prune else Nearest(groups)
        every = batch
        if nearest is not None and not _kinked(batch) and ties_will_do(batch, nearest.groups):
            batch = replace(batch, others=False)
        found = self._attempts(batch, seed, nearest)
        self._look_around(batch, found, self._worth_it(batch, found, groups, AROUND))
        tried, agreeing = np.ones(len(batch), dtype=np.int64), np.ones(len(batch), dtype=np.int64)
        for points, shares in self._further_starts(batch, found, starts - 1, towards, seed):
            rows = np.flatnonzero(~found.dropped)
            same, nearer = self._again(batch, found, rows, points, shares, nearest)
            agreeing[rows] = np.where(nearer, 1, agreeing[rows] + same)
            tried[rows] += 1
        if groups is not None:
            agreeing[self._second_looks(batch, found, groups, self._looks(batch)[starts - 1 :])] = 1
        if groups is not None and not batch.others:
            self._uncover(every, batch, found, groups)
        return found, tried, agreeing

    def _uncover(self, batch: FlipBatch, ties: FlipBatch, found: Outcome, groups: Array) -> None:
        """Replace ties that are below a third class by flips to that class, which are nearer; in place."""
        for _ in range(batch.network.n_classes):
            rows, third = covered(batch, found, groups)
            if len(rows) == 0:
                break
            found.dropped[rows] = True
            compare(ties.take(third), found, third, self._descent(ties.take(third), found.x[rows], None, ()))
            found.dropped[third] = False  # solved or not, it is what is left to say of its group

    def _second_looks(self, batch: FlipBatch, found: Outcome, groups: Array, later: tuple[Start, ...]) -> Array:
        """Solve the classes that matter from further starts, as a part of their first one; in place.

        One look for all, more for what has been cheap so far. Returns a mask of the problems that became nearer.
        """
        changed = np.zeros(len(batch), dtype=bool)
        for k, (back, shares) in enumerate(later):
            rows = self._worth_it(batch, found, groups, CLOSE_KINKED if _kinked(batch) else CLOSE)
            spent = np.bincount(groups, found.forward + found.backward)
            rows = rows[(k == 0) | (spent[groups[rows]] < BUDGET)]
            known = Known(groups, batch.distances(found.x), rows)
            _, nearer = self._again(batch, found, rows, behind(batch, found.x, back), shares, None, known)
            changed[rows[nearer]] = True
        return changed

    def _worth_it(self, batch: FlipBatch, found: Outcome, groups: Array | None, close: float) -> Array:
        """The solved problems that deserve another look: all of them, or those within ``close`` times the nearest of
        their group."""
        return np.flatnonzero(found.solved) if groups is None else front(found, batch.distances(found.x), groups, close)

    def _again(
        self,
        batch: FlipBatch,
        found: Outcome,
        rows: Array,
        points: Array,
        shares: Shares,
        nearest: Nearest | None,
        known: Known | None = None,
    ) -> tuple[Array, Array]:
        """Start the problems ``rows`` from their ``points``; in place.

        Returns which of them ended at the same distance, and which nearer, as masks (rows,).
        """
        part, drop = batch.take(rows), None if nearest is None else nearest.part(rows)
        other = self._descent(part, points[rows], drop, shares, None if known is None else known.part(rows))
        if _kinked(batch):
            self._rescue(part, other, drop)
        same, nearer = compare(part, found, rows, other)
        self._look_around(batch, found, rows[nearer & other.solved])
        return same, nearer

    def _run(self, batch: FlipBatch, points: Array, drop: Drop | None = None, softened: bool = False) -> Outcome:
        """On the trained network itself; only shortly if a softened one led here and a descent over pieces follows."""
        limit = KINKED_ITERATIONS if softened and self.rescue and _kinked(batch) else self._iterations
        single = getattr(batch.network, "in_float32", None)
        far = None if single is batch.network else single
        return Sqp(batch, points, SAFETY * self.tolerance, limit, self._deadline(), drop, far=far).run()

    def _deadline(self) -> float:
        return np.inf if self.max_seconds is None else time.perf_counter() + self.max_seconds

    @property
    def _iterations(self) -> int:
        """Of an attempt: each takes an evaluation."""
        return self.max_iter if self.max_evaluations is None else min(self.max_iter, self.max_evaluations)

    def _ending(self, found: Outcome) -> Array:
        """How each problem ended, in words."""
        words = np.full(len(found.solved), "no step improves the point any more", dtype=object)
        words[found.limited] = f"stopped after {self._iterations} iterations"
        words[found.late] = f"stopped after {self.max_seconds or np.inf:g} s"
        words[found.solved] = "the KKT conditions hold"
        return np.where(found.dropped, GIVEN_UP, np.where(found.by != "", found.by, words))

    def _attempts(self, batch: FlipBatch, seed: int, nearest: Nearest | None) -> Outcome:
        """From x, and what is not solved from several random points around x at once: it is little."""
        found = self._descent(batch, batch.X, nearest, self._first(batch))
        self._give_up_the_far(batch, found, nearest)
        left = np.flatnonzero(~found.solved & ~found.dropped)
        further = 0 if _kinked(batch) else self.attempts - 1
        if further and len(left):
            part, rows = batch.take(left), np.tile(left, further)
            starts = np.concatenate([random_points(part, (seed, attempt)) for attempt in range(1, further + 1)])
            again = self._run(batch.take(rows), starts, None if nearest is None else nearest.part(rows))
            take_best(found, left, again, batch.take(rows).distances(again.x))
        self._rescue(batch, found, nearest)
        return found

    def _give_up_the_far(self, batch: FlipBatch, found: Outcome, nearest: Nearest | None) -> None:
        """What got stuck too far away to become the nearest of its group; in place."""
        if nearest is None or _kinked(batch):
            return
        far = STUCK_FALL * batch.distances(found.x) > nearest.best[nearest.groups]
        found.dropped[~found.solved & far] = True

    def _first(self, batch: FlipBatch) -> Shares:
        """What the first start passes through."""
        if not self._softens(batch):
            return ()
        return SOFT_KINKED if _kinked(batch) else SOFT

    def _later(self, batch: FlipBatch) -> tuple[Start, ...]:
        """The next starts; there are none if the first one was not softened."""
        if not self._softens(batch):
            return ()
        return LATER_KINKED if _kinked(batch) else LATER

    def _looks(self, batch: FlipBatch) -> tuple[Start, ...]:
        """The next starts, and what else is looked from for the nearest of all classes."""
        later = self._later(batch)
        return (*later, *MORE) if later and not _kinked(batch) else later

    def _softens(self, batch: FlipBatch) -> bool:
        network = batch.network
        return self.soften and isinstance(network, DenseNetwork) and network.softened(1.0, 1.0) is not network

    def _descent(
        self,
        batch: FlipBatch,
        points: Array,
        nearest: Nearest | None,
        shares: Shares,
        known: Known | None = None,
    ) -> Outcome:
        """From ``points`` (problems, n_inputs) through networks softened by ``shares`` to the flip points."""
        found = Outcome.starting(points)
        if shares:
            self._soften(batch, found, nearest, shares)
            if self.rescue and _kinked(batch):
                return found  # the exact descent goes on from here
        left = np.flatnonzero(~found.dropped)
        for rows in [left] if nearest is None else waves(left, batch.distances(found.x), nearest.groups):
            live = nearest or known
            drop = None if live is None else live.part(rows)
            put(found, rows, self._run(batch.take(rows), found.x[rows], drop, softened=bool(shares)))
        return found

    def _soften(self, batch: FlipBatch, found: Outcome, nearest: Nearest | None, shares: Shares) -> None:
        """Solve the problems of softened networks, each from the solution of the one before; in place.

        With ``nearest``, classes that are much farther than others of the same group are given up.
        """
        network = batch.network
        assert isinstance(network, DenseNetwork)
        sizes, kinked = sizes_of(network, batch.X), _kinked(batch)
        for share in shares:
            drop = None
            if nearest is not None and not (kinked and share > VAGUE):
                kept = leading(batch, found, nearest.groups, CLOSE)
                drop = Hopeless(nearest.groups, HOPELESS, ON_THE_WAY, kept)
            for size in np.unique(sizes):
                rows = np.flatnonzero((sizes == size) & ~found.dropped)
                soft = network.softened(share, float(size)).in_float32
                live = None if drop is None else drop.part(rows)
                put(found, rows, self._soft_run(batch.take(rows), soft, found.x[rows], live))
        for verdict in (found.solved, found.limited, found.late):
            verdict[:] = False

    def _soft_run(self, batch: FlipBatch, soft: Network, points: Array, drop: Drop | None) -> Outcome:
        limit = min(self._iterations, SOFT_ITERATIONS)
        return Sqp(batch, points, SOFT_TOLERANCE, limit, self._deadline(), drop, SOFT_BOUNDARY, soft).run()

    def _further_starts(
        self, batch: FlipBatch, found: Outcome, count: int, towards: Samples | None, seed: int
    ) -> Iterator[tuple[Array, Shares]]:
        """x and behind x, boundary points towards the nearest samples of the target class, random points around x."""
        later = self._later(batch)
        for back, shares in later[:count]:
            yield behind(batch, found.x, back), shares
        for k in range(count - len(later)):
            points = random_points(batch, (seed, 100 + k))
            if towards is not None:
                points = on_the_way(batch, towards, rank=k, otherwise=points)
            yield points, later[-1][1] if later else ()

    def _rescue(self, batch: FlipBatch, found: Outcome, nearest: Nearest | None) -> None:
        """What no attempt has solved, by another solver, one by one from the nearest to the farthest; in place.

        With ``nearest``, what is too far to become the nearest of its group is given up.
        """
        if self.rescue and _kinked(batch):
            self._descend(batch, found, nearest)
        distance = batch.distances(found.x)
        left = np.flatnonzero(~found.solved & ~found.dropped & self.rescue)
        for k in left[np.argsort(distance[left], kind="stable")]:
            fall = RESCUED_FALL if _kinked(batch) else STUCK_FALL
            if nearest is not None and fall * distance[k] > nearest.best[nearest.groups[k]]:
                found.dropped[k] = True
                continue
            problem = batch.problem(int(k))
            solver = self._second(problem)
            # IPOPT starts anew, since this is where steps got stuck; pieces go on to the end of the same descent.
            result = solver.solve(problem, found.x[k] if isinstance(solver, Pieces) else problem.x)
            found.forward[k] += result.evaluations.forward
            found.backward[k] += result.evaluations.backward + result.evaluations.hessian
            found.iterations[k] += result.iterations
            if result.success or _better(result, batch, found, int(k)):
                found.x[k], found.solved[k] = result.x, result.success
                found.by[k] = f"by {solver.name}: {result.message}"
            if nearest is not None and result.success:
                nearest.solved(nearest.groups[[k]], np.array([result.distance]))

    def _descend(self, batch: FlipBatch, found: Outcome, nearest: Nearest | None) -> None:
        """The exact descent over linear pieces, compiled, of what is not solved; in place."""
        left = np.flatnonzero(~found.solved & ~found.dropped)
        groups = np.arange(len(left)) if nearest is None else nearest.groups[left]
        best = np.full(len(left), np.inf) if nearest is None else nearest.best
        end = descend(batch.take(left), found.x[left], groups, best, RESCUED_FALL, self._deadline())
        found.dropped[left] = end.dropped
        found.forward[left] += end.forward
        found.backward[left] += end.backward
        there = left[end.ended]
        found.x[there], found.solved[there] = end.x[end.ended], True
        found.by[there] = "by pieces: no neighbouring piece is closer"

    def _look_around(self, batch: FlipBatch, found: Outcome, rows: Array) -> None:
        """For networks with kinks: move the problems ``rows`` to nearer minima around theirs; in place."""
        if not (self.rescue and _kinked(batch)):
            return
        end = neighbouring_minima(batch.take(rows), found.x[rows], self._deadline())
        found.forward[rows] += end.forward
        found.backward[rows] += end.backward
        found.x[rows[end.ended]] = end.x[end.ended]

    def _second(self, problem: FlipProblem) -> Solver:
        """The solver for a problem that this one has left over."""
        second = Pieces if piecewise_linear(problem.setting) else Ipopt
        return second(tolerance=self.tolerance, max_seconds=self.max_seconds)


def _kinked(batch: FlipBatch) -> bool:
    return piecewise_linear(batch.setting)


def _better(result: FlipResult, batch: FlipBatch, found: Outcome, k: int) -> bool:
    """Whether another solver's point is on the boundary where this one's is not."""
    return bool(
        np.isfinite(result.distance) and not verify_batch(batch.take(np.array([k])), found.x[[k]]).on_boundary[0]
    )
