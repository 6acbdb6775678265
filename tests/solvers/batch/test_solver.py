"""The batch solver, against closed forms, Ipopt and the check of single points."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

import flipopt as fo
from flipopt.problem import FlipBatch, flip_batch
from flipopt.runs.threads import cores
from flipopt.solvers import Batch, Ipopt, Kinked, Small, Smooth, Start, Steps
from flipopt.solvers.batch.result import BatchResult
from flipopt.solvers.batch.solver import DOUBLES, LARGEST_CHUNK, MEMORY, SMALLEST_CHUNK
from flipopt.verification import verify
from tests.cases import linear, three_classes
from tests.solvers.batch.nets import random_batch, random_network
from tests.strategies import examples, seeds

A, OFFSET = np.array([1.0, -2.0, 0.5]), 0.3
WEIGHTS = np.array([1.0, 4.0, 0.25])


def honest(batch: FlipBatch, result: BatchResult) -> None:
    """Every status is what the check of single points says."""
    for k in range(len(batch)):
        check = verify(batch.problem(k), result.x[k])
        if result.status[k] is fo.Status.CONVERGED:
            assert check.closest(), (k, check)
        elif result.status[k] is fo.Status.ON_BOUNDARY:
            assert check.on_boundary
        else:
            assert not check.on_boundary
        assert np.isfinite(result.distance[k]) == check.on_boundary


# Linear classifiers: closed forms


@given(seeds, st.sampled_from(["plain", "weights", "frozen", "both"]))
def test_a_plane_is_reached_by_the_shortest_way(seed: int, kind: str) -> None:
    X = np.random.default_rng(seed).uniform(-2, 2, (5, 3))
    net = linear(A, OFFSET)
    options: dict = {}
    weights, moves = np.ones(3), np.ones(3, dtype=bool)
    if kind in ("weights", "both"):
        options["weights"] = weights = WEIGHTS
    if kind in ("frozen", "both"):
        options["frozen"] = [1]
        moves[1] = False
    i = net.predict(X)
    batch = flip_batch(net, X, np.column_stack([i, 1 - i]), **options)
    result = Batch().solve_batch(batch)
    lead = X @ A + OFFSET
    assert result.solved.all()
    # Bounded below by the boundary's own tolerance: an absolute 1e-9 near it.
    np.testing.assert_allclose(
        result.distance, np.abs(lead) / np.sqrt((A**2 / weights)[moves].sum()), rtol=1e-9, atol=2e-9
    )
    step = np.where(moves, A / weights, 0.0)
    np.testing.assert_allclose(result.x, X - np.outer(lead / (A @ step), step), atol=1e-7)
    assert (result.x[:, ~moves] == X[:, ~moves]).all()
    honest(batch, result)


def bounded_planes(seed: int, problems: int) -> tuple[FlipBatch, np.ndarray]:
    """Planes within bounds, and distances: x_hat = clip(x - lam A / w) for the root lam of a monotone lead."""
    X = np.random.default_rng(seed).uniform(-1, 1, (problems, 3))
    net = linear(A, 2.5)
    i = net.predict(X)
    batch = flip_batch(net, X, np.column_stack([i, 1 - i]), bounds=(-1.2, 1.2), weights=WEIGHTS)

    def landed(lam: float, x: np.ndarray) -> np.ndarray:
        return np.clip(x - lam * A / WEIGHTS, -1.2, 1.2)

    roots = [brentq(lambda lam, x=x: A @ landed(lam, x) + 2.5, -100, 100, xtol=1e-14) for x in X]
    return batch, batch.distances(np.stack([landed(lam, x) for lam, x in zip(roots, X)]))


@given(seeds)
@examples(15)
def test_a_plane_within_bounds_is_reached_by_the_shortest_way(seed: int) -> None:
    batch, distances = bounded_planes(seed, 4)
    result = Batch().solve_batch(batch)
    assert result.solved.all(), result.message
    # The error is the square of the KKT residual, and the boundary's own 1e-9.
    np.testing.assert_allclose(result.distance, distances, rtol=1e-8, atol=1e-8)
    honest(batch, result)


def test_tuned_values_change_the_way_and_not_the_answer() -> None:
    batch, distances = bounded_planes(1, 60)
    steps = Steps(near=0.5, normal_fall=0.6, pairs=2, watched=0.5)
    for solver in (Batch(steps=steps), Batch(smooth=Smooth(soften=(2.0, 1.0))), Batch(soften=False)):
        result = solver.solve_batch(batch)
        assert result.solved.all(), result.message
        np.testing.assert_allclose(result.distance, distances, rtol=1e-8, atol=1e-8)


def test_few_planes_within_bounds_are_left_over() -> None:
    batch, distances = bounded_planes(0, 1000)
    result = Batch(rescue=False, attempts=1).solve_batch(batch)
    # Where a step stopped at a bound must be made up for by other features, rounds of that may not suffice: 1 of 4000.
    assert result.solved.mean() > 0.99
    np.testing.assert_allclose(result.distance[result.solved], distances[result.solved], rtol=1e-8, atol=1e-8)


def test_bounds_are_active_in_a_known_way() -> None:
    # x_0 + x_1 falls from 2 to 0 although x_0 must stay above 0.5: the step is (-0.5, -1.5).
    batch = flip_batch(linear(np.ones(2)), np.ones((1, 2)), [(0, 1)], bounds=(np.array([0.5, -4.0]), 4.0))
    result = Batch(rescue=False).solve_batch(batch)
    assert result.solved[0]
    np.testing.assert_allclose(result.x[0], [0.5, -0.5], atol=1e-8)
    assert result.x[0, 0] == 0.5
    assert result.distance[0] == pytest.approx(np.hypot(0.5, 1.5), rel=1e-9)


def test_a_margin_keeps_other_classes_below() -> None:
    # On x_0 = 0, class 2 is 0.5 below the others only where x_1 <= 2.5.
    X = np.array([[1.0, 2.9], [1.0, 1.0]])
    result = Batch(rescue=False).solve_batch(flip_batch(three_classes(), X, [(0, 1)] * 2, margin=0.5))
    assert result.solved.all()
    np.testing.assert_allclose(result.distance, [np.hypot(1.0, 0.4), 1.0], rtol=1e-8)


def test_a_tie_of_three_is_reached_where_a_class_is_in_the_way() -> None:
    result = Batch(rescue=False).solve_batch(flip_batch(three_classes(), np.array([[1.0, 3.5]]), [(0, 1)]))
    assert result.solved[0]
    np.testing.assert_allclose(result.x[0], [0.0, 3.0], atol=1e-8)


def test_an_infeasible_problem_is_not_solved() -> None:
    batch = flip_batch(linear(np.ones(2)), np.ones((2, 2)), [(0, 1)] * 2, bounds=(0.5, 2.0))
    for rescue in (False, True):
        result = Batch(rescue=rescue).solve_batch(batch)
        assert not result.solved.any()
        assert np.isnan(result.distance).all()
        assert all(status is fo.Status.INFEASIBLE for status in result.status)  # two features are searched in full
        unsearched = Batch(rescue=rescue, small=Small(variables=0)).solve_batch(batch)
        assert all(status in (fo.Status.NUMERICAL_ERROR, fo.Status.LIMIT) for status in unsearched.status)
        honest(batch, result)


# Random networks


@given(seeds)
@examples(12)
def test_ipopt_has_nothing_to_add(seed: int) -> None:
    batch = random_batch(random_network(seed), seed)
    result = Batch(rescue=False).solve_batch(batch)
    honest(batch, result)  # some classes are never on top, and have no flip points
    for k in np.flatnonzero(result.solved):
        if verify(batch.problem(k), result.x[k]).class_margin < 1e-6:
            continue  # an interior-point method first leaves what is active, and may end elsewhere
        again = Ipopt().solve(batch.problem(k), result.x[k])
        # The distance's error is the square of the KKT residual (1e-6) over the boundary's curvature.
        assert again.distance == pytest.approx(result.distance[k], rel=1e-7, abs=1e-8)


def test_as_many_are_solved_as_by_ipopt_from_the_same_points() -> None:
    batches = [random_batch(random_network(seed), seed) for seed in range(12)]
    mine = sum(Batch(rescue=False).solve_batch(batch).solved.sum() for batch in batches)
    theirs = sum(Ipopt().solve(batch.problem(k)).success for batch in batches for k in range(len(batch)))
    assert theirs >= 60  # of 72: some classes are never on top
    assert mine >= theirs - 3


@given(seeds, st.booleans(), st.booleans())
@examples(15)
def test_statuses_are_honest_with_bounds_and_all_else(seed: int, bounded: bool, rescue: bool) -> None:
    options: dict = {"weights": np.array([1.0, 4.0, 0.25, 2.0, 0.5, 3.0]), "frozen": [0], "margin": 0.1}
    if bounded:
        options = {"bounds": (-2.5, 1.0)}
        net = random_network(seed)
        X = np.clip(np.random.default_rng(seed).standard_normal((5, 6)), -2.5, 1.0)
        i = net.predict(X)
        batch = flip_batch(net, X, np.column_stack([i, (i + 1) % 4]), **options)
    else:
        batch = random_batch(random_network(seed), seed, **options)
    result = Batch(rescue=rescue).solve_batch(batch)
    honest(batch, result)
    assert (result.x >= batch.setting.lower).all()
    assert (result.x <= batch.setting.upper).all()
    frozen = batch.setting.frozen
    assert (result.x[:, frozen] == batch.X[:, frozen]).all()


@given(seeds)
@examples(5)
def test_kinks_are_judged_as_by_the_check_of_single_points(seed: int) -> None:
    batch = random_batch(random_network(seed, (4, 8, 6, 3), fo.ReLU()), seed)
    result = Batch().solve_batch(batch)
    honest(batch, result)
    plain = Batch(rescue=False).solve_batch(batch)
    honest(batch, plain)
    assert result.solved.sum() >= plain.solved.sum()


def test_float32_networks_are_solved_in_float64() -> None:
    net = random_network(4).astype(np.float32)
    result = Batch().solve_batch(random_batch(net, 4))
    exact = Batch().solve_batch(random_batch(net.astype(np.float64), 4))
    np.testing.assert_array_equal(result.x, exact.x)


def test_a_module_gives_the_distances_of_its_dense_network() -> None:
    torch = pytest.importorskip("torch")
    dense = random_network(6, activation=fo.Tanh())
    layers = []
    for W, b in zip(dense.weights, dense.biases):
        layer = torch.nn.Linear(*W.shape, dtype=torch.float64)
        layer.weight.data, layer.bias.data = torch.tensor(W.T.copy()), torch.tensor(b.copy())
        layers += [layer, torch.nn.Tanh()]
    net = fo.TorchNetwork(torch.nn.Sequential(*layers[:-1]))
    batch, same = random_batch(net, 6), random_batch(dense, 6)
    np.testing.assert_array_equal(batch.classes, same.classes)
    found, expected = Batch().solve_batch(batch), Batch().solve_batch(same)
    assert expected.solved.any()
    np.testing.assert_array_equal(found.solved, expected.solved)
    # Rounding differs; the distance is known to the square of the KKT residual.
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-9)


# Independence of the batch


@pytest.mark.parametrize("activation", [fo.Erf(1.5), fo.ReLU()], ids=["smooth", "kinked"])
def test_no_problem_depends_on_the_others(activation: fo.Activation) -> None:
    """Bit by bit; tests/flips/test_independence.py has the shipped networks."""
    batch = random_batch(random_network(3, (6, 30, 8), activation), 3, problems=40)
    whole = Batch().solve_batch(batch)
    assert whole.solved.any()

    def same(other: BatchResult, rows: np.ndarray) -> None:
        for name in ("x", "status", "forward", "backward", "iterations"):
            np.testing.assert_array_equal(getattr(other, name), getattr(whole, name)[rows], err_msg=name)

    every = np.arange(40)
    same(Batch(chunk=7).solve_batch(batch), every)
    shuffled = np.random.default_rng(0).permutation(every)
    same(Batch().solve_batch(batch.take(shuffled)), shuffled)
    for k in (3, 31):
        same(Batch().solve_batch(batch.take(np.array([k]))), np.array([k]))


def test_float32_far_away_leads_to_the_same_minima(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    shipped = fo.load_shipped("mnist-net1")
    X = shipped.X[:40].astype(np.float64)
    i = np.asarray(shipped.network.predict(X))
    batch = flip_batch(shipped.network, X, np.column_stack([i, (i + 3) % 10]))
    mixed = Batch().solve_batch(batch)
    monkeypatch.setitem(sys.modules, "torch", None)  # without it everything is in float64
    exact = Batch().solve_batch(flip_batch(shipped.network.astype(np.float64), X, batch.classes))
    assert mixed.solved.all()
    assert exact.solved.all()
    # a problem in forty may take another turn far away; the others end at the same point, to the tolerance of a solve
    assert (np.abs(mixed.distance / exact.distance - 1) < 1e-9).mean() >= 0.9


def test_a_group_is_solved_together_however_small_the_chunks_are() -> None:
    batch, groups = of_all_classes(random_network(14, (6, 30, 8)), 10)
    whole, split = (Batch(chunk=chunk).solve_batch(batch, groups=groups) for chunk in (None, 2))
    np.testing.assert_array_equal(split.dropped, whole.dropped)
    np.testing.assert_array_equal(split.x, whole.x)


def test_chunks_fit_the_memory_of_all_cores_by_the_variables_that_are_left() -> None:
    few, many, most = (
        flip_batch(linear(np.ones(n)), np.ones((1, n)), [(0, 1)], bounds=(-9.0, 9.0)).setting for n in (2, 2000, 20000)
    )
    assert Batch(chunk=7).chunk_size(few) == 7
    assert Batch().chunk_size(few) == LARGEST_CHUNK
    assert Batch().chunk_size(most) <= max(SMALLEST_CHUNK, Batch().chunk_size(many) // 9)
    assert Batch().chunk_size(many) * 2000 * 8 * DOUBLES * cores() <= MEMORY
    # Without bounds the linear classifier is solved in two variables.
    assert Batch().chunk_size(flip_batch(linear(np.ones(2000)), np.ones((1, 2000)), [(0, 1)]).setting) == LARGEST_CHUNK


# Attempts and rescue


def test_what_the_first_attempt_leaves_is_solved_by_others_or_said() -> None:
    batch = random_batch(random_network(8), 8, problems=8)
    full = Batch().solve_batch(batch)
    hasty = Batch(max_iter=2, attempts=1, rescue=False, soften=False).solve_batch(batch)
    honest(batch, hasty)
    left = ~hasty.solved
    assert left.any()
    assert (hasty.iterations <= 2).all()
    assert all("stopped after 2 iterations" in message for message in hasty.message[left])
    off = left & np.isnan(hasty.distance)
    assert (left & ~off).any()
    assert all(status is fo.Status.LIMIT for status in hasty.status[off])
    assert all(status is fo.Status.ON_BOUNDARY for status in hasty.status[left & ~off])
    rescued = Batch(max_iter=2, attempts=1, soften=False).solve_batch(batch)
    honest(batch, rescued)
    assert rescued.solved.sum() >= full.solved.sum() > hasty.solved.sum()
    assert (rescued.solver[left & rescued.solved] == "ipopt").all()
    assert (rescued.solver[~left] == "batch").all()
    assert (rescued.iterations[left] > hasty.iterations[left]).all()


def test_further_attempts_start_elsewhere_and_their_cost_adds_up() -> None:
    batch = random_batch(random_network(8), 8, problems=8)
    once, thrice = (Batch(max_iter=3, attempts=n, rescue=False).solve_batch(batch) for n in (1, 3))
    assert (thrice.forward[~once.solved] > once.forward[~once.solved]).all()
    np.testing.assert_array_equal(thrice.x[once.solved], once.x[once.solved])
    assert thrice.solved.sum() >= once.solved.sum()
    honest(batch, thrice)


@pytest.mark.parametrize("limit", [{"max_evaluations": 2}, {"max_seconds": 1e-9}])
def test_other_limits_are_limits_too(limit: dict) -> None:
    batch = random_batch(random_network(8), 8, problems=8)
    result = Batch(attempts=1, rescue=False, **limit).solve_batch(batch)
    assert not result.solved.any()
    off = np.isnan(result.distance)
    assert all(status is fo.Status.LIMIT for status in result.status[off]), result.status[off]
    assert all(status is fo.Status.ON_BOUNDARY for status in result.status[~off]), result.status[~off]
    assert all(message.startswith("stopped after") for message in result.message[~result.solved])


def test_one_problem_is_a_batch_of_its_own() -> None:
    batch = random_batch(random_network(9), 9, margin=0.05)
    together = Batch(rescue=False, attempts=1).solve_batch(batch)
    assert together.solved.any()
    for k in np.flatnonzero(together.solved):
        alone = Batch().solve(batch.problem(k))
        assert alone.success, alone.message
        assert alone.distance == pytest.approx(together.distance[k], rel=1e-9)
        assert alone.evaluations.forward == together.forward[k]
        assert alone.solver == "batch"


def test_what_it_cannot_take_is_said() -> None:
    problem = fo.flip_problem(three_classes(), np.array([1.0, 2.0]), (0, 1, 2))
    found = Batch().solve(problem)
    assert found.status is fo.Status.UNAVAILABLE
    assert "two classes" in found.message
    for options in ({"norm": 1}, {"outputs": "probabilities"}):
        assert Batch().cannot(fo.flip_problem(linear(A), np.ones(3), (0, 1), **options).setting) is not None


@pytest.mark.parametrize("name", ["attempts", "chunk"])
@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_bad_options_are_named(name: str, value: float) -> None:
    with pytest.raises(fo.InputError, match=f"{name}: expected a whole number >= 1, found {value}"):
        Batch(**{name: value})  # type: ignore[arg-type]


def test_an_empty_batch_has_an_empty_result() -> None:
    result = Batch().solve_batch(flip_batch(linear(A), np.empty((0, 3)), np.empty((0, 2))))
    assert result.x.shape == (0, 3)
    assert len(result.solved) == 0


# Softened networks


def test_softened_networks_lead_to_nearer_minima_of_an_erf_network() -> None:
    shipped = fo.load_shipped("mnist-net1")
    X = shipped.X[40:60]
    soft, hard = (
        fo.closest_flip_points(shipped.network, X, targets="all", solver=Batch(soften=soften))
        for soften in (True, False)
    )
    assert soft.success.all()
    closer = (soft.distance < 0.999 * hard.distance).sum()
    farther = (soft.distance > 1.001 * hard.distance).sum()
    assert closer > farther > 0  # another local minimum is not always a better one


def test_softened_networks_lead_to_nearer_minima_of_a_relu_network() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    X = shipped.X[40:80]
    soft, hard = (fo.closest_flip_points(shipped.network, X, solver=Batch(soften=soften)) for soften in (True, False))
    assert soft.success.all()
    assert (soft.distance < 0.999 * hard.distance).sum() > (soft.distance > 1.001 * hard.distance).sum()


def test_what_has_no_softer_form_is_solved_without() -> None:
    net = random_network(4, activation=fo.Tanh())
    batch = random_batch(net, 4)
    soft, hard = Batch().solve_batch(batch), Batch(soften=False).solve_batch(batch)
    np.testing.assert_array_equal(soft.x, hard.x)
    np.testing.assert_array_equal(soft.forward, hard.forward)


def test_classes_that_are_far_away_in_a_softened_network_are_given_up() -> None:
    shipped = fo.load_shipped("mnist-net1")
    X = shipped.X[60:70]
    full = fo.closest_flip_points(shipped.network, X, targets="all")
    near, all_ends = (fo.closest_flip_points(shipped.network, X, solver=Batch(prune=prune)) for prune in (True, False))
    # The nearest is restarted, and may become nearer.
    assert (near.distance <= full.nearest().distance * (1 + 1e-9)).all()
    np.testing.assert_allclose(near.distance, all_ends.distance, rtol=1e-9)
    assert all_ends.settled.all()
    assert not near.settled.any()
    assert near.evaluations.sum() < all_ends.evaluations.sum()


# Starts


def band() -> fo.DenseNetwork:
    """Class 0 between a sharp side at x = -1.2 and a soft one at x = 1, whose slope alone is felt between them."""
    W = [np.array([[8.0, 0.6]]), np.array([[1.0, 0.0], [-1.0, 0.0]])]
    return fo.DenseNetwork(W, [np.array([9.6, -0.6]), np.array([-1.0, 0.0])], fo.Erf(0.5))


def test_a_start_towards_a_sample_finds_the_nearer_side() -> None:
    net = band()
    X = np.linspace(-0.9, 0.8, 18)[:, None]
    assert (net.predict(X) == 0).all()
    batch = flip_batch(net, X, [(0, 1)] * len(X))
    samples = np.array([[-3.0], [3.0]])
    unsearched = Small(variables=0)
    one = Batch(small=unsearched).solve_batch(batch)
    two = Batch(small=unsearched, soften=False).solve_batch(batch, starts=3, towards=samples)
    assert two.solved.all()
    # Each side moves the other by what its erf lacks of 1, 2e-4 at most.
    np.testing.assert_allclose(two.distance, np.minimum(X[:, 0] + 1.2, 1.0 - X[:, 0]), atol=1e-3)
    other = one.distance > two.distance + 0.1
    assert other.any()  # the slope at x alone leads to the farther side
    assert not other.all()
    assert (two.starts == 3).all()
    assert ((two.agreeing >= 1) & (two.agreeing <= 2)).all()  # one of the two samples is on the other side
    assert (two.agreeing[other] == 1).all()
    honest(batch, two)


def test_further_starts_at_kinks_are_never_farther_and_are_counted() -> None:
    batch = random_batch(random_network(12, activation=fo.ReLU()), 12)
    result = Batch().solve_batch(batch, starts=5)
    honest(batch, result)
    assert (result.starts == 5).all()
    assert (result.agreeing > 1).any()
    assert (result.distance <= Batch().solve_batch(batch).distance * (1 + 1e-9)).all()


def test_further_starts_are_those_of_the_options() -> None:
    """x again leads to the same end; a start beyond the flip point need not."""
    batch = random_batch(random_network(11, (4, 20, 3)), 11, problems=12)
    again = Batch(smooth=Smooth(soften=(), restarts=(Start(), Start()))).solve_batch(batch, starts=3)
    assert again.solved.any()
    np.testing.assert_array_equal(again.agreeing[again.solved], 3)
    kinked = random_batch(random_network(12, activation=fo.ReLU()), 12)
    soften = Kinked().soften
    again = Batch(kinked=Kinked(restarts=(Start(0.0, soften),))).solve_batch(kinked, starts=2)
    one = Batch().solve_batch(kinked)
    np.testing.assert_array_equal(again.x, one.x)


def test_more_starts_are_never_farther() -> None:
    batch = random_batch(random_network(11, (4, 20, 3)), 11, problems=12)
    one, four = Batch().solve_batch(batch), Batch().solve_batch(batch, starts=4)
    assert (four.solved | ~one.solved).all()
    both = one.solved & four.solved
    assert (four.distance[both] <= one.distance[both]).all()
    assert (four.forward > one.forward).all()
    np.testing.assert_array_equal(one.starts, 1)
    np.testing.assert_array_equal(one.agreeing, 1)
    again = Batch().solve_batch(batch, starts=4)
    np.testing.assert_array_equal(again.x, four.x)
    honest(batch, four)


# Groups


def of_all_classes(net: fo.DenseNetwork, rows: int) -> tuple[FlipBatch, np.ndarray]:
    """Random inputs with every other class, and the group of each problem."""
    X = np.random.default_rng(0).standard_normal((rows, net.n_inputs))
    others = net.n_classes - 1
    classes = np.array([(own, k) for own in net.predict(X) for k in range(net.n_classes) if k != own])
    return flip_batch(net, np.repeat(X, others, axis=0), classes), np.repeat(np.arange(rows), others)


def test_only_what_cannot_be_the_nearest_is_dropped() -> None:
    batch, groups = of_all_classes(random_network(14, (6, 30, 8)), 10)
    full, pruned = Batch().solve_batch(batch), Batch().solve_batch(batch, groups=groups)
    kept = Batch(prune=False).solve_batch(batch, groups=groups)
    assert pruned.dropped.any()
    assert not kept.dropped.any()
    assert all("given up" in message for message in pruned.message[pruned.dropped])
    assert pruned.forward.sum() < kept.forward.sum()
    for group in range(10):
        mine = groups == group
        best = full.distance[mine & full.solved].min()
        assert pruned.distance[mine & pruned.solved & ~pruned.dropped].min() <= best * (1 + 1e-9)


@pytest.mark.parametrize("rash", [Batch(smooth=Smooth(hopeless=1.0, close=1.0)), Batch(max_iter=6)])
@pytest.mark.parametrize("rescue", [True, False])
def test_whatever_is_given_up_every_input_has_an_answer_that_stands(rash: Batch, rescue: bool) -> None:
    """Ties below a third class are replaced by flips to it, and a group that cannot be solved says so."""
    net = random_network(21, (6, 30, 8))
    X = np.random.default_rng(2).standard_normal((40, 6))
    table = fo.closest_flip_points(net, X, solver=replace(rash, rescue=rescue))
    np.testing.assert_array_equal(table.row, np.arange(40))
    assert table.success.mean() >= (0.9 if rescue else 0.5)  # six iterations are few
    for k in range(40):
        check = verify(fo.flip_problem(net, X[k], [int(c) for c in table.classes[k]]), table.x[k])
        assert "given up" not in table.message[k]
        assert check.closest() == (table.status[k] is fo.Status.CONVERGED)
        assert check.on_boundary == np.isfinite(table.distance[k])


@pytest.mark.parametrize("options", [{}, {"bounds": (-2.0, 2.0)}, {"margin": 0.05}], ids=["free", "bounds", "margin"])
def test_the_nearest_is_a_flip_and_as_near_as_that_of_all_pairs(options: dict) -> None:
    net = random_network(21, (6, 30, 8))
    X = np.clip(np.random.default_rng(2).standard_normal((20, 6)), -2, 2)
    near = fo.closest_flip_points(net, X, **options)
    every = fo.closest_flip_points(net, X, "all", starts=4, **options).nearest()
    assert near.success.all()
    assert (near.distance <= every.distance * (1 + 1e-6)).mean() >= 0.9  # with one start there may be another minimum
    for k in range(len(X)):
        problem = fo.flip_problem(net, X[k], [int(c) for c in near.classes[k]], **options)
        assert verify(problem, near.x[k]).closest()


def test_problems_that_start_at_the_same_point_share_its_forward_pass() -> None:
    """It is counted for the first problem of its group."""
    batch, groups = of_all_classes(random_network(9, (6, 20, 5)), 3)
    solver = Batch(soften=False, prune=False, rescue=False, attempts=1)
    together, alone = solver.solve_batch(batch, groups=groups), replace(solver, chunk=1).solve_batch(batch)
    np.testing.assert_array_equal(alone.forward - together.forward, np.arange(12) % 4 > 0)
    np.testing.assert_array_equal(together.x, alone.x)
    np.testing.assert_array_equal(together.backward, alone.backward)


def test_restarts_cost_and_are_never_farther() -> None:
    batch, groups = of_all_classes(random_network(14, (6, 30, 8)), 10)
    plain = Batch(smooth=Smooth(restarts=())).solve_batch(batch, groups=groups)
    full = Batch().solve_batch(batch, groups=groups)
    assert (full.forward + full.backward).sum() > (plain.forward + plain.backward).sum()
    for group in range(10):
        near, far = (
            np.nanmin(np.where(found.dropped, np.nan, found.distance)[groups == group]) for found in (full, plain)
        )
        assert near <= far * (1 + 1e-9)
