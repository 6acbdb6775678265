"""Every solver on every problem that it can take, against answers known without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import flipopt as fo
from flipopt.problem import Evaluations
from flipopt.solvers import SOLVERS, Solver
from flipopt.solvers.walk import walk
from tests.cases import disc, distance_by_search, linear, moons, three_classes

BOX = (-4.0, 4.0)  # global searches need one; no solution touches it
A, OFFSET, X = np.array([1.0, -2.0, 0.5]), 0.3, np.array([1.0, -1.0, 0.5])
LEAD = float(A @ X + OFFSET)


def shortened(solver: Solver) -> Solver:
    """A global search of the default length takes minutes, and so do COBYQA's last digits; the valley is found before,
    and the refinement does the rest."""
    if "-g" in solver.name:
        return replace(solver, max_iter=60 if "direct" in solver.name else 20)
    return replace(solver, max_evaluations=1000) if "cobyqa" in solver.name else solver


UNIQUE = {solver.name: shortened(solver) for solver in SOLVERS.values()}
Case = Callable[[], tuple[fo.FlipProblem, float]]


def on_a_plane(norm: float = 2, bounds: tuple | None = BOX) -> Case:
    dual = {1: np.inf, 2: 2, np.inf: 1}[norm]
    return lambda: (
        fo.flip_problem(linear(A, OFFSET), X, (0, 1), norm=norm, bounds=bounds),
        LEAD / np.linalg.norm(A, ord=dual),
    )


def weighted() -> tuple[fo.FlipProblem, float]:
    w = np.array([1.0, 4.0, 0.25])
    return fo.flip_problem(linear(A, OFFSET), X, (0, 1), weights=w, bounds=BOX), LEAD / np.sqrt(np.sum(A**2 / w))


def frozen() -> tuple[fo.FlipProblem, float]:
    return fo.flip_problem(linear(A, OFFSET), X, (0, 1), frozen=[1], bounds=BOX), LEAD / np.hypot(A[0], A[2])


def active_bound() -> tuple[fo.FlipProblem, float]:
    # x_0 + x_1 falls from 2 to 0 although x_0 must stay above 0.5: the step is (-0.5, -1.5).
    problem = fo.flip_problem(linear(np.ones(2)), np.ones(2), (0, 1), bounds=(np.array([0.5, -4.0]), 4.0))
    return problem, np.hypot(0.5, 1.5)


def circle() -> tuple[fo.FlipProblem, float]:
    x = np.array([0.3, 0.4])
    return fo.flip_problem(disc(2.0), x, (0, 1), bounds=BOX), 1.5


def circle_from_outside() -> tuple[fo.FlipProblem, float]:
    return fo.flip_problem(disc(1.0), np.array([1.8, -2.4]), (1, 0), bounds=BOX), 2.0


def margin() -> tuple[fo.FlipProblem, float]:
    # On x_0 = 0, class 2 is 0.5 below the others only where x_1 <= 2.5.
    problem = fo.flip_problem(three_classes(), np.array([1.0, 2.9]), (0, 1), margin=0.5, bounds=BOX)
    return problem, np.hypot(1.0, 0.4)


def two_moons() -> tuple[fo.FlipProblem, float]:
    x = np.array([-0.5, 0.9])
    return fo.flip_problem(moons(), x, (0, 1), bounds=BOX), distance_by_search(moons(), x)


CASES: dict[str, Case] = {
    "plane": on_a_plane(),
    "plane-1": on_a_plane(1),
    "plane-inf": on_a_plane(np.inf),
    "plane-unbounded": on_a_plane(bounds=None),
    "weighted": weighted,
    "frozen": frozen,
    "active-bound": active_bound,
    "circle": circle,
    "circle-from-outside": circle_from_outside,
    "margin": margin,
    "two-moons": two_moons,
}


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[fo.FlipProblem, float]]:
    return {name: case() for name, case in CASES.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", UNIQUE.values(), ids=UNIQUE)
def test_the_known_distance_is_found(solver: Solver, case: str, answers: dict) -> None:
    problem, distance = answers[case]
    reason = solver.missing() or solver.cannot(problem.setting, problem.goal)
    if reason is not None:
        pytest.skip(reason)
    # The moons' boundary has several local minima: start in the valley of the nearest, as closest_flip_point does.
    found = solver.solve(problem, walk(problem, Evaluations()) if case == "two-moons" else None)
    assert found.status is fo.Status.CONVERGED, found.message
    assert found.distance == pytest.approx(distance, rel=1e-7)
    assert (found.x[problem.frozen] == problem.x[problem.frozen]).all()
    assert (found.x >= problem.lower).all()
    assert (found.x <= problem.upper).all()
