"""The least change of an input that reaches a given output (appendix E.3 of Yousefzadeh and O'Leary 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.flips.discrete import DiscreteReach
from flipopt.flips.lattice import Lattice, OneOf
from flipopt.flips.one import closest_flip_point
from flipopt.flips.request import SETTING, as_groups, known, whole_numbers
from flipopt.flips.serial import best_of
from flipopt.networks.points import as_one_point, by_position
from flipopt.networks.protocol import Network, Outputs
from flipopt.networks.wrapping import as_network, check_gradient
from flipopt.problem import Evaluations, FlipProblem, Setting
from flipopt.problem.goal import reach
from flipopt.results import FlipResult
from flipopt.solvers import Solver, as_solver


def least_change(
    network: Network,
    x: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    outputs: Outputs = "probabilities",
    solver: str | Solver = "ipopt",
    integers: ArrayLike | None = None,
    one_of: Sequence[OneOf] = (),
    **options: Any,
) -> FlipResult:
    """The least change of x that brings every output into [lower, upper] (appendix E.3).

    ``lower`` and ``upper`` are (n_classes,), infinite where an output may be anything. ``integers`` and ``one_of`` are
    discrete features, as in :func:`closest_flip_point`. Further ``options`` are those of
    :class:`~flipopt.problem.Setting`: norm, bounds, frozen, weights, constraints.
    """
    solver = as_solver(solver)
    network = as_network(network, x)
    point = as_one_point(x, network, "x")
    goal = reach(network.n_classes, lower, upper)
    known("options", options, tuple(name for name in SETTING if name != "outputs"))
    options = by_position(options | {"one_of": one_of, "integers": integers}, network)
    groups, listed = as_groups(options.pop("one_of"), network.n_inputs), options.pop("integers")
    problem = FlipProblem(Setting.of(network, outputs=outputs, **options), point, goal)
    check_gradient(problem.network, point)
    # Where another class must win, its flip point is a far better start than x: there its score is not saturated.
    wanted, source = int(np.argmax(goal.lower)), int(network.predict(point))
    starts, cost = [point], Evaluations()
    if wanted != source and np.isfinite(goal.lower[wanted]):
        flip = closest_flip_point(network, point, wanted, **options)
        starts.append(flip.x)
        cost = flip.evaluations

    def solve(some: FlipProblem, x0: Array) -> FlipResult:
        return best_of([solver.solve(some, start, network) for start in (x0, *starts[1:])])

    whole = whole_numbers(listed, network.n_inputs)
    if len(whole) or len(groups):
        lattice = Lattice.of(problem.setting, point, whole, groups)
        result = DiscreteReach(network, problem, lattice, solver, solve).run()
    else:
        result = solve(problem, point)
    return replace(result, evaluations=result.evaluations + cost)
