from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import flipopt as fo
from flipopt.solvers.starts import boundary_point, starting_points, walk
from tests.cases import linear, moons
from tests.strategies import seeds


def gap(problem: fo.FlipProblem, x: np.ndarray) -> float:
    return abs(float(problem.goal.T[0] @ problem.network.logits(x)))


@given(seeds)
def test_a_walk_keeps_to_the_rules_and_comes_nearer(seed: int) -> None:
    x = np.random.default_rng(seed).uniform([-1.0, -0.5], [2.0, 1.0])
    problem = fo.flip_problem(moons(), x, (0, 1), bounds=(-2.0, 3.0))
    end = walk(problem)
    assert (end >= problem.lower).all()
    assert (end <= problem.upper).all()
    assert (end == walk(problem)).all()
    assert gap(problem, end) <= gap(problem, x)


def test_a_walk_leaves_frozen_features_alone() -> None:
    problem = fo.flip_problem(linear(np.ones(3)), np.ones(3), (0, 1), frozen=[1], bounds=(-9.0, 9.0))
    end = walk(problem)
    assert end[1] == 1
    assert gap(problem, end) < 1e-2


@given(seeds)
def test_a_boundary_point_is_on_the_boundary_and_on_the_segment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, sample = rng.uniform([-1.0, -0.5], [2.0, 1.0], size=(2, 2))
    problem = fo.flip_problem(moons(), x, (0, 1))
    point = boundary_point(problem, sample)
    if moons().predict(x) == moons().predict(sample):
        assert point is None
        return
    assert point is not None
    assert gap(problem, point) <= 1e-12
    t = (point - x) @ (sample - x) / ((sample - x) @ (sample - x))
    assert 0 <= t <= 1
    assert point == pytest.approx(x + t * (sample - x), abs=1e-12)


def test_starts_are_a_number_or_points() -> None:
    problem = fo.flip_problem(moons(), np.array([-0.5, 0.9]), (0, 1))
    points = starting_points(problem, 5, None, seed=1)
    assert len(points) == 5
    assert (points[1] == problem.x).all()
    assert all((a == b).all() for a, b in zip(points, starting_points(problem, 5, None, seed=1)))
    assert (points[4] != starting_points(problem, 5, None, seed=2)[4]).any()
    assert (starting_points(problem, np.ones((2, 2)), None, 0)[1] == 1).all()
    samples = np.array([[0.5, -0.4], [1.5, -0.2]])
    assert gap(problem, starting_points(problem, 4, samples, 0)[2]) <= 1e-12
    for bad in (0, -1, True, 2.5, "three"):
        with pytest.raises(fo.InputError, match="starts: expected a number of points >= 1, or points"):
            starting_points(problem, bad, None, 0)
    with pytest.raises(fo.InputError, match="towards: expected shape"):
        starting_points(problem, 3, np.ones((2, 3)), 0)
