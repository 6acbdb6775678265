"""Runs every method on every problem, one at a time, in a process of its own that may crash or be killed.

A method costs one row whatever it does: it may raise, claim what is not so, crash the process or never return. Rows are
kept as soon as they are known (:mod:`flipopt.runs.ledger`), and what is there is not run again.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import numpy as np

from flipopt.comparison.methods import Budget, Claim, Method
from flipopt.comparison.rows import SHEET, empty_row, read_rows
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipProblem
from flipopt.results import Status
from flipopt.runs.ledger import keeping
from flipopt.runs.machine import facts
from flipopt.runs.rows import Row
from flipopt.verification import Verification, verify

GRACE = 30.0
"""Seconds that a method may be late before its process is killed, for what it does without looking at the time."""
STARTING = 300.0
"""Seconds that a new process may take to be ready."""
WARM_UP = 1.0
"""Seconds for a method's first run in a process, which only imports and compiles what it needs and is not counted."""


@dataclass(frozen=True)
class Entry:
    """A problem by its name, before it is made."""

    family: str
    name: str
    n: int


@dataclass(frozen=True)
class Instance:
    """A problem in logits and float64, and its network in its own precision."""

    entry: Entry
    problem: FlipProblem
    network: Network


class Problems(Protocol):
    """A set of problems that another process can make for itself."""

    def identity(self) -> Mapping[str, str]:
        """What the problems are made of: of other networks or points, the same names are other problems."""

    def entries(self) -> Sequence[Entry]:
        """What there is, in order."""

    def make(self, name: str) -> Instance:
        """The problem of this name."""


def compare(
    problems: Problems,
    methods: Mapping[str, Method],
    out: Path,
    budget: Budget,
    advance: Callable[[int, int], None] = lambda done, total: None,
    tell: Callable[[str], object] = lambda words: None,
) -> list[Row]:
    """The rows of every problem and method, those of earlier runs in ``out`` (.csv) included.

    ``advance`` is told how many are done, of how many, and ``tell`` what else there is to say. Rows of another budget,
    or of other problems with the same names, are refused.
    """
    machine, what = facts(), asdict(budget) | dict(problems.identity())
    with keeping(out, SHEET, "comparison", what, tell) as add, _Worker(problems, methods, budget) as worker:
        known = {SHEET.name(row) for row in read_rows(out)}
        todo = [(entry, name) for entry in problems.entries() for name in methods if (entry.name, name) not in known]
        for done, (entry, name) in enumerate(todo):
            advance(done, len(todo))
            add([worker.row(entry, name) | machine])
        advance(len(todo), len(todo))
    return read_rows(out)


def row_of(instance: Instance, name: str, method: Method, budget: Budget) -> Row:
    """Run one method on one problem and judge its point by the library's own check."""
    started = time.perf_counter()
    try:
        claim = method.run(instance.problem, instance.network, budget)
    except Exception as error:  # whatever a method does, it costs one row
        nothing = np.full(len(instance.problem.x), np.nan)
        claim = Claim(nothing, Evaluations(), 0, "NUMERICAL_ERROR", f"{type(error).__name__}: {error}")
    return _judged(instance, name, claim, time.perf_counter() - started)


def _judged(instance: Instance, name: str, claim: Claim, seconds: float) -> Row:
    entry, problem = instance.entry, instance.problem
    row = empty_row(entry.family, entry.name, entry.n, name, claim.status, " ".join(claim.message.split()), seconds)
    cost = claim.evaluations
    row |= {"forward": cost.forward, "backward": cost.backward, "hessian": cost.hessian, "iterations": claim.iterations}
    if np.shape(claim.x) != problem.x.shape or not np.isfinite(claim.x).all():
        return row | {"status": _failure(claim.status)}
    check = verify(problem, claim.x, instance.network)
    status = _status(problem, claim, check)
    feasible = status in ("CONVERGED", "ON_BOUNDARY", "BEYOND")
    if not feasible and claim.status == "CONVERGED":
        row["message"] = f"claims success, but is off the boundary by {check.boundary_gap:.1e} ({row['message']})"
    return row | {
        "status": status,
        "feasible": feasible,
        "distance": problem.distance(claim.x) if feasible else np.nan,
        "boundary_gap": check.boundary_gap,
        "kkt_residual": check.kkt_residual,
    }


def _status(problem: FlipProblem, claim: Claim, check: Verification) -> str:
    """CONVERGED, ON_BOUNDARY, BEYOND (the class has changed to the target), or how it failed."""
    if check.closest():
        return "CONVERGED"
    if check.on_boundary:
        return "ON_BOUNDARY"
    inside = check.bound_violation == 0 and check.constraint_violation <= 0
    if inside and len(problem.classes) == 2 and int(problem.network.predict(claim.x)) == problem.classes[1]:
        return "BEYOND"
    return _failure(claim.status)


def _failure(claimed: str) -> str:
    """The method's own word for its failure, unless it claims success or has no such word."""
    failures = {Status.INFEASIBLE.name, Status.LIMIT.name, Status.UNAVAILABLE.name}
    return claimed if claimed in failures else Status.NUMERICAL_ERROR.name


# The process


class _Worker:
    """A process that runs methods, and is replaced when one has crashed it or has to be killed."""

    def __init__(self, problems: Problems, methods: Mapping[str, Method], budget: Budget) -> None:
        self.arguments, self.budget = (problems, dict(methods)), budget
        self.limit = budget.seconds + GRACE
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.warm: set[str] = set()

    def row(self, entry: Entry, name: str) -> Row:
        """The row of one problem and method, whatever becomes of the process."""
        started = time.perf_counter()
        try:
            pipe = self._ready()
            if name not in self.warm:
                self._ask(pipe, entry, name, replace(self.budget, seconds=min(WARM_UP, self.budget.seconds)))
                self.warm.add(name)
            started = time.perf_counter()
            return self._ask(pipe, entry, name, self.budget)
        except TimeoutError:
            status, message = "LIMIT", f"killed after {self.limit:g} s"
        except (EOFError, OSError):
            if self.process is not None:
                self.process.join(1.0)
            code = None if self.process is None else self.process.exitcode
            status, message = "CRASHED", f"its process died (exit code {code})"
        self.stop()
        seconds = time.perf_counter() - started
        return empty_row(entry.family, entry.name, entry.n, name, status, message, seconds)

    def _ask(self, pipe: Connection, entry: Entry, name: str, budget: Budget) -> Row:
        pipe.send((entry.name, name, budget))
        if not pipe.poll(self.limit):
            raise TimeoutError
        row: Row = pipe.recv()
        return row

    def _ready(self) -> Connection:
        """The pipe to a process that waits for work."""
        if self.pipe is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_work, args=(theirs, *self.arguments), daemon=True)
            self.process.start()
            theirs.close()
            if not self.pipe.poll(STARTING):
                raise OSError("the process does not start")
            self.pipe.recv()
        return self.pipe

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None
        self.warm.clear()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _work(pipe: Connection, problems: Problems, methods: dict[str, Method]) -> None:
    """What the process does: a problem is kept for the methods that follow on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks, which then ends this one
    pipe.send("ready")
    instance: Instance | None = None
    while True:
        try:
            problem, name, budget = pipe.recv()
        except (EOFError, OSError):
            return
        if instance is None or instance.entry.name != problem:
            instance = problems.make(problem)
        row = row_of(instance, name, methods[name], budget)
        try:
            pipe.send(row)
        except OSError:  # whoever asked was killed
            return
