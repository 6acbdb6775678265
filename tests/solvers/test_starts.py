"""Starting points: one definition of them, for solvers of one problem and for batches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given

import flipopt as fo
from flipopt.networks.softening import sizes_of
from flipopt.problem import Evaluations, Oracle, flip_batch
from flipopt.solvers import Answer, Solver
from flipopt.solvers.starts import (
    BISECTIONS,
    SPREAD,
    Samples,
    further_points,
    random_points,
    reflected,
    towards_samples,
)
from flipopt.solvers.walk import walk
from tests.cases import linear, moons
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import seeds


@dataclass(frozen=True, kw_only=True)
class Records(Solver):
    """Gives every starting point back."""

    seen: list[np.ndarray] = field(default_factory=list)

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        self.seen.append(oracle.point(u0))
        return Answer(u0, fo.Status.LIMIT, "not tried")


def gap(problem: fo.FlipProblem, x: np.ndarray) -> float:
    return abs(float(problem.goal.T[0] @ problem.network.logits(x)))


# The walk


@given(seeds)
def test_a_walk_keeps_to_the_rules_and_comes_nearer(seed: int) -> None:
    x = np.random.default_rng(seed).uniform([-1.0, -0.5], [2.0, 1.0])
    problem = fo.flip_problem(moons(), x, (0, 1), bounds=(-2.0, 3.0))
    cost, again = Evaluations(), Evaluations()
    end = walk(problem, cost)
    assert (end >= problem.lower).all()
    assert (end <= problem.upper).all()
    assert (end == walk(problem, again)).all()
    assert gap(problem, end) <= gap(problem, x)
    assert cost == again
    assert 1 <= cost.forward <= cost.backward  # a gradient at every point


def test_a_walk_leaves_frozen_features_alone() -> None:
    problem = fo.flip_problem(linear(np.ones(3)), np.ones(3), (0, 1), frozen=[1], bounds=(-9.0, 9.0))
    end = walk(problem, Evaluations())
    assert end[1] == 1
    assert gap(problem, end) < 1e-2


# Further points


def test_points_towards_samples_are_near_the_boundary_on_the_way() -> None:
    net = random_network(12)
    batch = random_batch(net, 12, problems=8)
    samples = Samples.of(net, 3 * np.random.default_rng(1).standard_normal((60, 6)))
    assert samples is not None
    random, on_the_way = random_points(batch, (0, 100)), 0
    for rank in (0, 2, 40):
        points = towards_samples(batch, samples, rank, random)
        for k, (x, (i, j)) in enumerate(zip(batch.X, batch.classes)):
            theirs = samples.X[samples.classes == j]
            if len(theirs) <= rank:
                np.testing.assert_array_equal(points[k], random[k])
                continue
            sample = theirs[np.argsort(np.linalg.norm(theirs - x, axis=1))[rank]]
            t = (points[k] - x) @ (sample - x) / ((sample - x) @ (sample - x))
            np.testing.assert_allclose(points[k], x + t * (sample - x), atol=1e-12)
            # The lead changes its sign within the last bisection's part of the way before it.
            ends = net.logits(np.array([x + (t - 2.0**-BISECTIONS) * (sample - x), points[k]]))
            assert ends[0, i] > ends[0, j]
            assert ends[1, i] <= ends[1, j]
            on_the_way += 1
    assert 0 < on_the_way < 24  # there are both


def test_random_points_are_in_the_same_direction_for_every_problem_and_near_x() -> None:
    batch = random_batch(random_network(13), 13)
    points = random_points(batch, (0, 1))
    away = points - batch.X
    size = np.linalg.norm(batch.X, axis=1)
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), SPREAD * size, rtol=1e-12)
    np.testing.assert_allclose(away / size[:, None], np.broadcast_to(away[0] / size[0], away.shape), atol=1e-12)
    assert (random_points(batch, (1, 1)) != points).any()


def test_reflected_points_are_on_the_line_from_the_flip_point_through_x() -> None:
    batch = random_batch(random_network(3), 3, bounds=(-2.0, 2.0))
    X_hat = batch.X + 1.0
    np.testing.assert_allclose(reflected(batch, X_hat, 0.25), np.clip(batch.X - 0.25, -2, 2), atol=1e-15)
    np.testing.assert_allclose(reflected(batch, X_hat, -1.5), np.clip(batch.X + 1.5, -2, 2), atol=1e-15)
    np.testing.assert_array_equal(reflected(batch, X_hat, 0.0), batch.X)


@given(seeds)
def test_no_point_depends_on_the_problem_s_place(seed: int) -> None:
    net = random_network(seed)
    batch = random_batch(net, seed, problems=7)
    rng = np.random.default_rng(seed)
    samples, some = Samples.of(net, 3 * rng.standard_normal((30, 6))), rng.permutation(7)[:3]
    for k in range(3):
        whole = further_points(batch, k, samples, seed=5)
        np.testing.assert_array_equal(further_points(batch.take(some), k, samples, seed=5), whole[some])


# One definition


@pytest.mark.parametrize("towards", [True, False], ids=["towards", "random"])
def test_a_solver_of_one_problem_starts_where_a_batch_does(towards: bool) -> None:
    """After its own first ones, at the points that every row of a batch has."""
    net = random_network(6)
    rng = np.random.default_rng(0)
    X, points = rng.standard_normal((4, 6)), 3 * rng.standard_normal((40, 6)) if towards else None
    targets = (np.asarray(net.predict(X)) + 1) % 4
    batch = flip_batch(net, X, np.column_stack([net.predict(X), targets]))
    samples = Samples.of(net, points)
    for row in range(4):
        solver = Records(refine=False)
        fo.closest_flip_point(net, X[row], int(targets[row]), solver=solver, starts=5, towards=points, seed=3)
        assert len(solver.seen) == 5
        np.testing.assert_array_equal(solver.seen[1], X[row])
        for k in range(3):
            np.testing.assert_array_equal(solver.seen[2 + k], further_points(batch, k, samples, 3)[row])


@pytest.mark.parametrize("solver", ["ipopt", "batch"])
def test_only_samples_that_the_network_puts_in_the_target_class_are_used(solver: str) -> None:
    net = random_network(6)
    rng = np.random.default_rng(0)
    x, samples = rng.standard_normal(6), 3 * rng.standard_normal((60, 6))
    target = (int(net.predict(x)) + 1) % 4
    theirs = np.asarray(net.predict(samples)) == target
    assert 0 < theirs.sum() < 60
    options: dict = {"target": target, "solver": solver, "starts": 6, "seed": 2}
    every, mine, others, none = (
        fo.closest_flip_point(net, x, towards=some, **options)
        for some in (samples, samples[theirs], samples[~theirs], None)
    )
    assert every.success
    np.testing.assert_array_equal(every.x, mine.x)
    np.testing.assert_array_equal(others.x, none.x)
    assert others.evaluations == none.evaluations
    assert every.evaluations == mine.evaluations != none.evaluations


def test_starts_are_a_number_or_points() -> None:
    net, x = moons(), np.array([-0.5, 0.9])
    relaxed, given = Records(refine=False), Records(refine=False)
    fo.closest_flip_point(net, x, solver=relaxed, starts=2)
    # The first is where the batch solver ends, the second x.
    np.testing.assert_allclose(relaxed.seen, [fo.closest_flip_point(net, x).x, x], rtol=1e-12)
    found = fo.closest_flip_point(net, x, solver=given, starts=np.ones((2, 2)))
    np.testing.assert_array_equal(given.seen, np.ones((2, 2)))
    assert found.evaluations.backward == 0
    for bad in (0, -1, True, 2.5, "three"):
        with pytest.raises(fo.InputError, match="starts: expected a number of points >= 1, or points"):
            fo.closest_flip_point(net, x, starts=bad)


def test_the_size_of_pre_activations_is_each_point_s_own() -> None:
    net = random_network(3, activation=fo.ReLU())
    X = np.vstack([np.random.default_rng(0).standard_normal((6, 6)), np.full((1, 6), 1e4)])
    sizes = sizes_of(net, X)
    np.testing.assert_array_equal(sizes, np.concatenate([sizes_of(net, x[None]) for x in X]))
    hidden = np.sqrt([(net.pre_activations(x)[0] ** 2).mean() for x in X])
    assert ((sizes <= 2 * hidden) & (sizes >= hidden / 2)).all()
    assert sizes[-1] > sizes[0]
    zero = fo.DenseNetwork([np.eye(2), np.eye(2)], [np.zeros(2)] * 2, fo.ReLU())
    assert sizes_of(zero, np.zeros((1, 2))) == 1
