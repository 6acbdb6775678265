"""The public verbs for one input: its closest flip point, the least change to an output, further flip points."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.flips.discrete import OneOf, solve_discrete
from flipopt.homotopy import Homotopy, follow
from flipopt.networks.protocol import Network, Outputs
from flipopt.problem import Constraint, Evaluations, FlipProblem, flip_problem
from flipopt.problem.goal import reach
from flipopt.results import SAME_DISTANCE, FlipResult
from flipopt.solvers import Solver, as_solver
from flipopt.solvers.starts import starting_points


def closest_flip_point(
    network: Network,
    x: ArrayLike,
    target: int | Sequence[int] | None = None,
    source: int | None = None,
    norm: float = 2,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    frozen: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    margin: float = 0.0,
    constraints: Sequence[Constraint] = (),
    integers: ArrayLike | None = None,
    one_of: Sequence[OneOf] = (),
    outputs: Outputs = "logits",
    solver: str | Solver = "ipopt",
    homotopy: Homotopy | int | None = None,
    starts: int | ArrayLike = 1,
    towards: ArrayLike | None = None,
    seed: int = 0,
) -> FlipResult:
    """The closest point at which ``network`` scores ``source`` and ``target`` alike.

    Parameters
    ----------
    network
        The classifier.
    x
        The input, (n_inputs,).
    target
        The other class; several for a flip between more than two; None for the nearest of all classes.
    source
        The class to flip from; by default the predicted class of x.
    norm
        1, 2 or inf.
    bounds
        (lower, upper), each a number or (n_inputs,); None for no bounds.
    frozen
        Features that may not change: a mask (n_inputs,) or their indices.
    weights
        Positive weights (n_inputs,) of the squared changes, with norm 2.
    margin
        By how much every other class must stay below the two.
    constraints
        :class:`~flipopt.LinearConstraint` and :class:`~flipopt.NonlinearConstraint`.
    integers, one_of
        Discrete features: indices (or a mask) of those that are whole numbers, and groups of which exactly one is 1.
    outputs
        "logits", or "probabilities" for the papers' own form.
    solver
        A name (see ``flipopt solvers``) or a solver with options, such as ``fo.solvers.Ipopt(tol=1e-9)``.
    homotopy
        Follow a path from an easy form of the network, as :class:`~flipopt.Homotopy` says, or with that many
        ``stages``; for dense networks. It counts as the first start.
    starts
        How many starting points, or the points themselves, (points, n_inputs). The first is the end of a short walk to
        the boundary, the second is x; the others are boundary points towards ``towards`` and random ones.
    towards
        Samples (samples, n_inputs), such as training points of the target class: starting points are sought on the way
        to the nearest of them.
    seed
        Of the random starting points.
    """
    solver, path = as_solver(solver), _as_homotopy(homotopy)
    discrete = integers is not None or len(one_of) > 0
    if discrete and path is not None:
        raise InputError("homotopy: expected None with integers or one_of, whose roundings have no path")
    point = _one_point(network, x)
    source = _source(network, point, source)
    common: dict[str, Any] = {
        "margin": margin,
        "bounds": bounds,
        "frozen": frozen,
        "weights": weights,
        "norm": norm,
        "constraints": constraints,
        "outputs": outputs,
    }
    results, cost, started = [], Evaluations(), time.perf_counter()
    for classes in _pairs(network, source, target):
        problem = flip_problem(network, point, classes, **common)
        if discrete:
            results.append(solve_discrete(problem, solver, integers, one_of, network))
            continue

        def direct(count: int | ArrayLike, problem: FlipProblem = problem) -> list[FlipResult]:
            points = starting_points(problem, count, towards, seed, cost)
            return [solver.solve(problem, x0, network) for x0 in points]

        results.append(
            _best(direct(starts) if path is None else _with_path(problem, solver, path, network, starts, direct))
        )
    total = sum((result.evaluations for result in results), cost)
    settled = all(result.success for result in results) or len(results) == 1
    return replace(_nearest(results), evaluations=total, elapsed=time.perf_counter() - started, settled=settled)


def least_change(
    network: Network,
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    outputs: Outputs = "probabilities",
    solver: str | Solver = "ipopt",
    **options: Any,
) -> FlipResult:
    """The least change of x that brings every output into [lower, upper] (appendix E.3).

    ``lower`` and ``upper`` are (n_classes,), infinite where an output may be anything. Further ``options`` are those of
    :class:`~flipopt.problem.FlipProblem`: norm, bounds, frozen, weights, constraints.
    """
    solver = as_solver(solver)
    point = _one_point(network, x)
    template = flip_problem(network, point, (0, 1), outputs=outputs, **options)
    problem = replace(template, goal=reach(network.n_classes, lower, upper))
    # Where another class must win, its flip point is a far better start than x: there its score is not saturated.
    wanted, source = int(np.argmax(problem.goal.lower)), int(network.predict(point))
    starts = [point]
    if wanted != source and np.isfinite(problem.goal.lower[wanted]):
        starts.append(solver.solve(flip_problem(network, point, (source, wanted), **options), None, network).x)
    return _best([solver.solve(problem, start, network) for start in starts])


def further_flip_points(
    network: Network, x: ArrayLike, target: int, count: int, radius: float = 0.1, seed: int = 0, **options: Any
) -> list[FlipResult]:
    """Several flip points between the predicted class of x and ``target``, closest first, away from each other (E.2).

    Each further one is sought outside balls around those already found, of ``radius`` times their distance, and then
    solved for without the balls. It may return fewer than ``count``: what falls back into a known point is dropped.
    """
    from flipopt.problem.away import outside_balls

    found = [closest_flip_point(network, x, target, **options)]
    point = _one_point(network, x)
    users = tuple(options.pop("constraints", ()))
    options.pop("starts", None)  # the further ones have their own
    rng = np.random.default_rng(seed)
    for _ in range(3 * (count - 1)):
        if len(found) >= count or not found[0].success:
            break
        known = [flip.x for flip in found]
        balls = outside_balls(np.stack(known), radius * found[0].distance)
        start = point + found[0].distance * rng.standard_normal(len(point)) / np.sqrt(len(point))
        kept_out = closest_flip_point(network, x, target, constraints=(*users, balls), starts=start[None], **options)
        flip = closest_flip_point(network, x, target, constraints=users, starts=kept_out.x[None], **options)
        if flip.success and min(np.linalg.norm(flip.x - other) for other in known) > 0.1 * radius * found[0].distance:
            found.append(flip)
    return sorted(found, key=lambda flip: np.nan_to_num(flip.distance, nan=np.inf))


def _as_homotopy(homotopy: Homotopy | int | None) -> Homotopy | None:
    if homotopy is None or isinstance(homotopy, Homotopy):
        return homotopy
    if not isinstance(homotopy, int | np.integer) or isinstance(homotopy, bool):
        raise InputError(f"homotopy: expected a Homotopy, a number of stages or None, found {homotopy!r}")
    return Homotopy(stages=int(homotopy))


def _with_path(
    problem: FlipProblem,
    solver: Solver,
    path: Homotopy,
    network: Network,
    starts: int | ArrayLike,
    direct: Callable[[int | ArrayLike], list[FlipResult]],
) -> list[FlipResult]:
    """The homotopy's result among those of other starts; with ``when="needed"`` only after they have failed."""
    if path.when == "needed":
        results = direct(starts)
        return (
            results if any(result.success for result in results) else [*results, follow(problem, solver, path, network)]
        )
    followed = follow(problem, solver, path, network)
    if np.ndim(starts) > 0:
        return [followed, *direct(starts)]
    return [followed, *(direct(int(starts) - 1) if int(starts) > 1 else [])]  # type: ignore[arg-type]


def _one_point(network: Network, x: ArrayLike) -> Array:
    point = as_rows(x, network.n_inputs, "x").astype(np.float64)
    if point.ndim != 1:
        raise InputError(f"x: expected one point of shape ({network.n_inputs},), found {point.shape}")
    return point


def _source(network: Network, x: Array, source: int | None) -> int:
    return int(network.predict(x)) if source is None else checked_class(network, source, "source")


def checked_class(network: Network, k: Any, name: str) -> int:
    """k, which must be one of the network's classes."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 0 <= k < network.n_classes:
        raise InputError(f"{name}: expected a class from 0 to {network.n_classes - 1}, found {k!r}")
    return int(k)


def _pairs(network: Network, source: int, target: int | Sequence[int] | None) -> list[tuple[int, ...]]:
    """The classes of every problem to solve."""
    if target is None:
        return [(source, k) for k in range(network.n_classes) if k != source]
    targets = [target] if np.ndim(target) == 0 else list(target)  # type: ignore[arg-type]
    classes = [checked_class(network, k, "target") for k in targets]
    if not classes or source in classes:
        raise InputError(f"target: expected classes other than the source {source}, found {target!r}")
    return [(source, *classes)]


def _best(results: list[FlipResult]) -> FlipResult:
    """The closest verified point of several starts, with the cost of all of them."""
    best = _nearest(results)
    if len(results) == 1:
        return best
    agree = sum(
        result.status is best.status and abs(result.distance - best.distance) <= SAME_DISTANCE * best.distance
        for result in results
    )
    cost = sum((result.evaluations for result in results), Evaluations())
    elapsed = sum(result.elapsed for result in results)
    return replace(best, starts=len(results), agreeing=agree, elapsed=elapsed, evaluations=cost)


def _nearest(results: list[FlipResult]) -> FlipResult:
    """The closest of the verified ones; of the unverified, if there is none."""
    return min(results, key=lambda flip: (not flip.success, np.nan_to_num(flip.distance, nan=np.inf)))
