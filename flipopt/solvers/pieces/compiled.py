"""The descent over the linear pieces of a ReLU network, for the problems of a batch or for one of any goal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Timer
from typing import TYPE_CHECKING

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Identity, PReLU
from flipopt.problem import FlipBatch, Goal, Oracle, Setting, flip
from flipopt.solvers.pieces.options import PieceOptions

if TYPE_CHECKING:
    from flipopt.kernels.affine import Net

OPTIONS = PieceOptions()
UNLIMITED = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Descent:
    """Where the problems ended.

    Attributes
    ----------
    x
        The points, (problems, n).
    ended
        Whether that is a local minimum, or, of neighbouring minima, a nearer one than before, (problems,).
    dropped
        Whether the problem was given up, (problems,).
    forward, backward
        Passes, (problems,).
    """

    x: Array
    ended: Array
    dropped: Array
    forward: Array
    backward: Array

    @classmethod
    def nowhere(cls, points: Array) -> Descent:
        """Of problems that are left where they are, (problems, n)."""
        no, none = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=np.int64)
        return cls(points, no, no, none, none)


def piecewise_linear(setting: Setting) -> bool:
    """Whether its problems are quadratic programs in every piece of the network, and there are kinks at all."""
    net = setting.network
    return (
        isinstance(net, DenseNetwork)
        and all(isinstance(activation, PReLU | Identity) for activation in net.activations)
        and net.kinked
        and setting.norm == 2
        and setting.outputs == "logits"
        and not setting.constraints
    )


def descend(
    batch: FlipBatch,
    starts: Array,
    groups: Array,
    best: Array,
    fall: float,
    deadline: float = np.inf,
    options: PieceOptions = OPTIONS,
) -> Descent:
    """From ``starts`` (problems, n) to local minima, the nearest first.

    ``best`` (groups,), changed in place, holds the least distance in every group so far. A problem that is farther than
    that, even if the descent brings it to the share ``fall`` of its distance, is dropped. All stop at the ``deadline``,
    in seconds of ``time.perf_counter``.
    """
    if len(batch) == 0:
        return Descent.nowhere(starts)
    run = _Run.of_batch(batch, starts)
    run(groups, best, fall, False, options, deadline)
    return run.descent


def neighbouring_minima(
    batch: FlipBatch,
    minima: Array,
    deadline: float = np.inf,
    options: PieceOptions = OPTIONS,
    known: Array | None = None,
) -> Descent:
    """From local minima (problems, n) to nearer ones behind the walls that are near, where there are any.

    ``known`` (problems,) are distances of minima whose neighbours have been looked at already: what comes there ends
    there.
    """
    if len(batch) == 0:
        return Descent.nowhere(minima)
    run = _Run.of_batch(batch, minima)
    looked_at = np.zeros(len(batch)) if known is None else known.copy()
    run(np.arange(len(batch)), looked_at, 0.0, True, options, deadline)
    return run.descent


def descend_one(oracle: Oracle, start: Array, options: PieceOptions = OPTIONS) -> Array | None:
    """A local minimum reached from ``start`` (n_inputs,), or None if no point that satisfies the goal was found.

    The oracle counts what is used; at one of its limits the best point so far is returned.
    """
    problem = oracle.problem
    run = _Run(problem.setting, problem.x[None], [problem.goal], np.zeros(1, np.int64), start[None])
    run(np.zeros(1, np.int64), np.full(1, np.inf), 0.0, False, options, oracle.deadline, oracle.forward_left)
    oracle.evaluations.forward += int(run.passes[0, 0])
    oracle.evaluations.backward += int(run.passes[0, 1])
    return run.descent.x[0] if run.feasible[0] else None


class _Run:
    """Problems in u = sqrt(w) x, in which all weights are 1, and where they are.

    ``goals`` are the different ones and ``which`` (problems,) tells that of each problem.
    """

    def __init__(self, setting: Setting, X: Array, goals: list[Goal], which: Array, points: Array) -> None:
        from flipopt.kernels.pieces import Problems

        self.setting, self.X, self.root = setting, X, np.sqrt(setting.weights)
        D, bounds, ties = zip(*map(_one_sided, goals), strict=True)
        boxed = setting.bounded or bool(setting.frozen.any())
        lower, upper = self.root * setting.lower, self.root * setting.upper
        u = np.ascontiguousarray(self.root * X)
        self.problems = Problems(
            u, lower, upper, setting.frozen, boxed, which, np.stack(D), np.stack(bounds), np.array(ties)
        )
        self.Z = np.ascontiguousarray(self.root * setting.clip(points, X))
        self.order = np.argsort(setting.distance(points, X), kind="stable")
        self.state, self.passes = np.zeros(len(X), np.int64), np.zeros((len(X), 2), np.int64)

    @classmethod
    def of_batch(cls, batch: FlipBatch, points: Array) -> _Run:
        pairs, which = np.unique(batch.classes, axis=0, return_inverse=True)
        goals = [flip(batch.network.n_classes, [int(i), int(j)], batch.margin, batch.beyond) for i, j in pairs]
        return cls(batch.setting, batch.X, goals, which.reshape(-1), points)

    def __call__(
        self,
        groups: Array,
        best: Array,
        fall: float,
        around: bool,
        options: PieceOptions,
        deadline: float,
        most: int = UNLIMITED,
    ) -> None:
        from flipopt.kernels.pieces import Options, descend_all

        net, tuned = _flat(self.setting.network, self.root), Options(**asdict(options))
        problems, order, Z, state, passes = self.problems, self.order, self.Z, self.state, self.passes
        with _alarm(deadline) as stop:
            descend_all(net, problems, order, groups, best, fall, around, tuned, most, stop, Z, state, passes)

    @property
    def feasible(self) -> Array:
        """Whether a point that satisfies its goal was found, (problems,)."""
        from flipopt.kernels.pieces import FEASIBLE

        return np.asarray(self.state >= FEASIBLE)

    @property
    def descent(self) -> Descent:
        from flipopt.kernels.pieces import DROPPED, MINIMUM

        x = self.setting.clip(self.Z / self.root, self.X)
        return Descent(x, self.state == MINIMUM, self.state == DROPPED, *self.passes.T)


@contextmanager
def _alarm(deadline: float) -> Iterator[Array]:
    """An array (1,) that becomes True at the deadline, for loops that look at nothing else."""
    stop, left = np.zeros(1, dtype=bool), deadline - time.perf_counter()
    timer = Timer(min(left, 1e6), stop.fill, (True,))
    timer.daemon = True
    if left <= 0:
        stop[0] = True
    elif np.isfinite(left):
        timer.start()
    yield stop
    timer.cancel()


def _one_sided(goal: Goal) -> tuple[Array, Array, int]:
    """D and bounds of D y = bounds in the first rows, whose number is the last, and D y >= bounds in the others."""
    tie = goal.equations
    low, high = np.isfinite(goal.lower) & ~tie, np.isfinite(goal.upper) & ~tie
    D = np.concatenate([goal.T[tie], goal.T[low], -goal.T[high]])
    return D, np.concatenate([goal.lower[tie], goal.lower[low], -goal.upper[high]]), int(tie.sum())


def _flat(network: object, root: Array) -> Net:
    """The network as a function of u = sqrt(w) x."""
    from flipopt.kernels.affine import Net

    assert isinstance(network, DenseNetwork)
    first, *others = network.weights
    return Net(
        weights=np.concatenate([(first / root[:, None]).reshape(-1), *map(np.ravel, others)]),
        biases=np.concatenate(network.biases),
        widths=np.array(network.widths),
        starts=np.cumsum([0, *(matrix.size for matrix in network.weights[:-1])]),
        slopes=np.concatenate([np.array(pair) for pair in network.one_sided_slopes], axis=1, dtype=np.float64),
    )
