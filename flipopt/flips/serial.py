"""One problem after the other, each from its starting points: for solvers that take one at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.flips.discrete import Discrete
from flipopt.flips.inside import corrected, step_inside
from flipopt.flips.lattice import Lattice
from flipopt.flips.request import Request, checked_targets
from flipopt.homotopy import follow
from flipopt.paths.rays import onto_boundary
from flipopt.problem import Evaluations, FlipBatch, FlipProblem, Setting, flip
from flipopt.results import SAME_DISTANCE, FlipResult, Status, best
from flipopt.solvers import Batch
from flipopt.solvers.starts import further_points
from flipopt.verification import verify


def solve_serially(request: Request, x: Array, target: int | Sequence[int] | None) -> FlipResult:
    """The closest flip of x (n_inputs,) to ``target``: a class, several that tie, or None for the nearest of all."""
    started, network = time.perf_counter(), request.network
    source = int(request.sources(x[None])[0])
    if target is None:
        pairs: list[tuple[int, ...]] = [(source, k) for k in range(network.n_classes) if k != source]
    else:
        pairs = [(source, *checked_targets(network, target, source))]
    if request.valid and len(pairs[0]) > 2:
        raise InputError(f"valid: expected a flip between two classes, found {pairs[0]}")
    results = [_closest(request, x, classes) for classes in pairs]
    settled = all(result.success for result in results) or len(results) == 1
    settled = settled and all(result.settled for result in results)
    return replace(
        _nearest_discrete(results, settled) if request.discrete else best(results),
        evaluations=sum((result.evaluations for result in results), Evaluations()),
        elapsed=time.perf_counter() - started,
        settled=settled,
    )


def _nearest_discrete(results: Sequence[FlipResult], settled: bool) -> FlipResult:
    """The nearest point in any class; it is proved to be that only if no class was left unfinished."""
    there = [result for result in results if result.check is not None and result.check.on_boundary]
    nearest = min(there, key=lambda result: result.distance, default=best(results))
    proved = settled or all(result.success or result.status is Status.INFEASIBLE for result in results)
    if proved or not nearest.success:
        return nearest
    message = f"{nearest.message}; not proved nearest: the search in another class was not finished"
    return replace(nearest, status=Status.ON_BOUNDARY, message=message)


def _closest(request: Request, x: Array, classes: tuple[int, ...]) -> FlipResult:
    """One flip; where the last class must lead all others, the nearest over its runners-up."""
    if not request.led or request.discrete:
        return _solved(request, x, classes)
    runners = (r for r in range(request.network.n_classes) if r != classes[1])
    results = [_solved(request, x, (r, classes[1])) for r in runners]
    settled = all(result.success or result.status is Status.INFEASIBLE for result in results)
    return replace(best_of(results), classes=classes, settled=settled)


def _solved(request: Request, x: Array, classes: tuple[int, ...]) -> FlipResult:
    """One flip, inside the other class where that is asked for, linear constraints to rounding."""
    problem = request.problem(x, classes)
    result = _solve(request, problem)
    if len(classes) > 2 or request.discrete:
        return result
    batch = FlipBatch(request.setting, x[None], np.array([classes]), request.margin, beyond=request.beyond)
    if not np.isfinite(result.distance):
        result = _on_boundary(request, problem, batch, result)
    if not np.isfinite(result.distance):
        return result
    if request.valid:
        return step_inside(request.network, batch, result)
    return corrected(request.network, batch, result) if request.setting.constraints else result


def _on_boundary(request: Request, problem: FlipProblem, batch: FlipBatch, result: FlipResult) -> FlipResult:
    """A result that ended off the boundary, put where the ray from x through its point meets it, if it does."""
    if result.status is Status.UNAVAILABLE:
        return result
    points, met, forward = onto_boundary(batch, result.x[None])
    result = replace(result, evaluations=result.evaluations + Evaluations(forward=int(forward[0])))
    check = verify(problem, points[0], request.network)
    if not (met[0] and check.on_boundary):
        return result
    message = f"{result.message}; put on the boundary along the ray from x"
    distance = float(problem.distance(points[0]))
    return replace(result, x=points[0], distance=distance, status=Status.ON_BOUNDARY, check=check, message=message)


def _solve(request: Request, problem: FlipProblem) -> FlipResult:
    """One problem, as its request says."""
    if request.discrete:
        lattice = Lattice.of(problem.setting, problem.x, request.whole, request.one_of)

        def solve(some: FlipProblem, x0: Array) -> FlipResult:
            return _direct(request, some, request.starts, x0)

        return Discrete(request.network, problem, lattice, request.solver, solve, request.beyond, request.valid).run()
    if request.homotopy is None:
        return _direct(request, problem, request.starts)
    path = (problem, request.solver, request.homotopy, request.network)
    if request.homotopy.when == "needed":
        result = _direct(request, problem, request.starts)
        return result if result.success else best_of([result, follow(*path)])
    followed = follow(*path)  # it counts as the first start
    if np.ndim(request.starts) > 0:
        return best_of([followed, _direct(request, problem, request.starts)])
    further = int(request.starts) - 1  # type: ignore[arg-type]
    return best_of([followed, _direct(request, problem, further)]) if further else followed


def _direct(request: Request, problem: FlipProblem, starts: int | ArrayLike, x0: Array | None = None) -> FlipResult:
    """From every starting point; ``x0`` takes the place of the first."""
    cost, n = Evaluations(), request.network.n_inputs
    if np.ndim(starts) > 0:
        points = list(np.atleast_2d(as_rows(starts, n, "starts")).astype(np.float64))
        points = points if x0 is None else [x0, *points[1:]]
    else:
        count, classes = int(starts), np.array([problem.classes[:2]])  # type: ignore[arg-type]
        batch = FlipBatch(problem.setting, problem.x[None], classes)
        first, cost = (x0, cost) if x0 is not None else _relaxed(problem)
        points = [first, problem.x][:count]
        points += [further_points(batch, k, request.samples, request.seed)[0] for k in range(count - 2)]
    result = best_of([request.solver.solve(problem, point, request.network) for point in points])
    return replace(result, evaluations=result.evaluations + cost)


def _relaxed(problem: FlipProblem) -> tuple[Array, Evaluations]:
    """Where the batch solver ends for the first two classes in the 2-norm without further constraints, and its cost.

    It is a better start than x: what is harder about the problem seldom moves its solution far, and outputs that are
    saturated at x no longer are.
    """
    setting = problem.setting
    relaxed = Setting(setting.network, 2, setting.weights, setting.lower, setting.upper, setting.frozen)
    goal = flip(problem.network.n_classes, problem.classes[:2])
    found = Batch(rescue=False).solve(FlipProblem(relaxed, problem.x, goal))
    return found.x, found.evaluations


def best_of(results: Sequence[FlipResult]) -> FlipResult:
    """The best result of several attempts at one problem, with the cost of all of them."""
    chosen = best(results)
    agree = sum(
        result.agreeing
        for result in results
        if result.status is chosen.status and abs(result.distance - chosen.distance) <= SAME_DISTANCE * chosen.distance
    )
    return replace(
        chosen,
        starts=sum(result.starts for result in results),
        agreeing=max(agree, 1),
        elapsed=sum(result.elapsed for result in results),
        evaluations=sum((result.evaluations for result in results), Evaluations()),
    )
