from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.flips.discrete import Discrete, Search
from flipopt.flips.lattice import Lattice
from flipopt.problem import Evaluations, FlipProblem, Oracle, Setting, flip
from flipopt.solvers import Answer, Ipopt
from tests.strategies import examples, seeds

N = 5


def small(seed: int) -> fo.DenseNetwork:
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal((N, 8)) / np.sqrt(N), rng.standard_normal((8, 2))]
    return fo.DenseNetwork(W, [0.3 * rng.standard_normal(8), np.zeros(2)], fo.Erf(1.0))


@dataclass(frozen=True, kw_only=True)
class Records(Ipopt):
    """IPOPT, remembering every solve."""

    oracles: list[Oracle] = field(default_factory=list)

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        self.oracles.append(oracle)
        return super()._solve(oracle, u0)

    @property
    def cost(self) -> Evaluations:
        return sum((oracle.evaluations for oracle in self.oracles), Evaluations())


def mixed(seed: int) -> np.ndarray:
    """One of two, a whole number, and two that may be anything."""
    rng = np.random.default_rng(seed)
    return np.concatenate([[1.0, 0.0], [float(rng.integers(-2, 3))], rng.uniform(-1, 1, 2)])


def lattice_points(x: np.ndarray, low: int, high: int, whole: list[int], groups: list[tuple[int, ...]]) -> np.ndarray:
    """Every combination of the discrete features, the others as in x."""
    numbers = itertools.product(*(range(low, high + 1) for _ in whole))
    members = list(itertools.product(*groups))
    points = []
    for values in numbers:
        for chosen in members:
            point = x.copy()
            point[whole] = values
            for group in groups:
                point[list(group)] = 0
            point[list(chosen)] = 1
            points.append(point)
    return np.array(points)


def discrete_problem(seed: int) -> tuple[fo.DenseNetwork, np.ndarray, dict, np.ndarray]:
    """A network, an input, options, and every point that they allow."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    W = [rng.standard_normal((n, 8)) / np.sqrt(n), rng.standard_normal((8, classes))]
    net = fo.DenseNetwork(W, [0.3 * rng.standard_normal(8), 0.3 * rng.standard_normal(classes)], fo.Tanh())
    groups = [(0, 1, 2)] if n > 3 and rng.random() < 0.6 else []
    whole = list(range(3 if groups else 0, n))
    frozen = [whole.pop()] if len(whole) > 1 and rng.random() < 0.3 else []
    x = np.where(rng.random(n) < 0.5, rng.integers(-2, 3, n), rng.uniform(-2, 2, n)).astype(float)
    norm = rng.choice([1.0, 2.0, np.inf])
    options: dict = {"bounds": (-2.0, 2.0), "integers": whole, "one_of": groups, "frozen": frozen, "norm": norm}
    points = lattice_points(x, -2, 2, whole, groups)
    if norm == 2:
        options["weights"] = rng.uniform(0.1, 10, n)
    if rng.random() < 0.4:
        a = rng.standard_normal(n)
        options["constraints"] = fo.LinearConstraint(a[None], -np.inf, a @ x + 0.2)
        points = points[points @ a <= a @ x + 0.2]
    return net, x, options, points


@pytest.mark.parametrize("block", range(4))
def test_small_discrete_problems_are_solved_as_by_brute_force(block: int) -> None:
    """Fifty each: optimal in all of them, or infeasible in both."""
    for seed in range(50 * block, 50 * block + 50):
        net, x, options, points = discrete_problem(seed)
        found = fo.closest_flip_point(net, x, **options)
        others = points[net.predict(points) != net.predict(x)]
        if len(others) == 0:
            assert found.status is fo.Status.INFEASIBLE
            continue
        weights = options.get("weights", np.ones(len(x)))
        nearest = min(np.linalg.norm(np.sqrt(weights) * (point - x), ord=options["norm"]) for point in others)
        assert found.success, found.message
        assert found.distance == pytest.approx(nearest, rel=1e-12)
        assert net.predict(found.x) == found.classes[1] != net.predict(x)
        assert (points == found.x).all(axis=1).any()


@examples(6)
@given(seeds, st.booleans(), st.booleans())
def test_discrete_constraints_hold_exactly(seed: int, freeze: bool, valid: bool) -> None:
    net, x = small(seed), mixed(seed)
    options: dict = {"bounds": (-3.0, 3.0), "integers": [2], "one_of": [(0, 1)], "frozen": [3] if freeze else None}
    found = fo.closest_flip_point(net, x, valid=valid, **options)
    assert np.isfinite(found.distance) == (found.status in (fo.Status.CONVERGED, fo.Status.ON_BOUNDARY))
    if np.isnan(found.distance):
        return
    assert (np.abs(found.x) <= 3).all()
    assert not freeze or found.x[3] == x[3]
    assert sorted(found.x[:2]) == [0.0, 1.0]
    assert found.x[2] == np.round(found.x[2])
    Y = net.logits(found.x)
    i, j = found.classes
    assert Y[j] - Y[i] >= -1e-8 * max(1.0, abs(Y[0]))
    assert not valid or net.predict(found.x) == j
    assert found.distance == pytest.approx(np.linalg.norm(found.x - x))


@pytest.mark.parametrize("seed", range(4))
def test_mixed_problems_are_solved_as_by_trying_every_choice(seed: int) -> None:
    net, x = small(seed), mixed(seed)
    found = fo.closest_flip_point(net, x, bounds=(-3.0, 3.0), integers=[2], one_of=[(0, 1)])
    own = net.predict(x)
    tried = []
    for point in lattice_points(x, -3, 3, [2], [(0, 1)]):
        if net.predict(point) != own:
            tried.append(np.linalg.norm(point - x))
            continue
        flip = fo.closest_flip_point(net, point, source=own, bounds=(-3.0, 3.0), frozen=[0, 1, 2])
        if flip.success:
            tried.append(np.linalg.norm(flip.x - x))
    assert found.success
    assert found.distance == pytest.approx(min(tried), rel=1e-6)


def test_other_solvers_solve_the_relaxations() -> None:
    solver, x = Records(), mixed(0)
    options: dict = {"bounds": (-3.0, 3.0), "integers": [2], "one_of": [(0, 1)]}
    found = fo.closest_flip_point(small(0), x, solver=solver, **options)
    assert found.success
    assert len(solver.oracles) > 2
    assert found.evaluations.backward == solver.cost.backward
    assert found.distance == pytest.approx(fo.closest_flip_point(small(0), x, **options).distance, rel=1e-6)


def test_numbers_with_small_steps_are_rounded_inside() -> None:
    """Incomes in units of money: too many points to examine, and rounding them costs next to nothing."""
    rng = np.random.default_rng(4)
    units = np.array([3e4, 2e4, 1.0, 1.0])
    W = [rng.standard_normal((4, 8)) / units[:, None], rng.standard_normal((8, 2))]
    net = fo.DenseNetwork(W, [np.zeros(8), np.zeros(2)], fo.Tanh())
    x = np.array([41_230.0, 8_000.0, 1.0, -1.0])
    options: dict = {"weights": 1 / units**2, "bounds": (-5 * units, 5 * units), "valid": True}
    relaxed = fo.closest_flip_point(net, x, **options)
    found = fo.closest_flip_point(net, x, integers=[0, 1, 2, 3], **options)
    assert found.success, found.message
    assert (found.x == np.round(found.x)).all()
    assert net.predict(found.x) == found.classes[1]
    assert found.distance >= relaxed.distance * (1 - 1e-9)


def test_a_search_that_is_cut_short_does_not_claim_to_be_the_nearest() -> None:
    net, x = small(2), mixed(2)
    problem = fo.flip_problem(net, x, (int(net.predict(x)), 1 - int(net.predict(x))), bounds=(-3.0, 3.0))
    lattice = Lattice.of(problem.setting, x, np.array([2]), [(0, 1)])
    search = Search(relaxations=3, together=1)
    found = Discrete(net, problem, lattice, fo.solvers.Batch(), Ipopt().solve, search=search).run()
    assert found.status in (fo.Status.ON_BOUNDARY, fo.Status.LIMIT)
    assert "not proved" in found.message or "none found" in found.message


def test_a_linear_choice_by_hand() -> None:
    # y_0 - y_1 = x_0 + x_1 = 0 from (1, 0.4) with x_0 whole: (0, 0) costs 1.08, (1, -1) costs 1.4.
    net = fo.DenseNetwork([np.array([[1.0, 0.0], [1.0, 0.0]])], [np.zeros(2)])
    found = fo.closest_flip_point(net, np.array([1.0, 0.4]), 1, integers=[0])
    assert found.success
    assert found.x == pytest.approx([0.0, 0.0], abs=1e-8)
    assert found.distance == pytest.approx(np.hypot(1, 0.4))


@pytest.mark.parametrize("seed", range(3))
def test_the_least_change_of_discrete_features_is_that_by_brute_force(seed: int) -> None:
    net, x = small(seed), np.round(mixed(seed))
    wanted = 1 - int(net.predict(x))
    points = lattice_points(x, -3, 3, [2, 3, 4], [(0, 1)])
    lower = np.where(np.arange(2) == wanted, 0.65, -np.inf)
    found = fo.least_change(net, x, lower, np.inf, bounds=(-3.0, 3.0), integers=[2, 3, 4], one_of=[(0, 1)])
    allowed = points[net.probabilities(points)[:, wanted] >= 0.65]
    assert len(allowed) > 0
    assert found.success
    assert found.distance == pytest.approx(np.linalg.norm(allowed - x, axis=1).min())


def test_the_least_change_of_mixed_features_keeps_them_exact() -> None:
    net, x = small(0), mixed(0)
    wanted = 1 - int(net.predict(x))
    lower = np.where(np.arange(2) == wanted, 0.6, -np.inf)
    found = fo.least_change(net, x, lower, np.inf, bounds=(-3.0, 3.0), integers=[2], one_of=[(0, 1)])
    assert found.success, found.message
    assert found.x[2] == np.round(found.x[2])
    assert sorted(found.x[:2]) == [0.0, 1.0]
    assert net.probabilities(found.x)[wanted] >= 0.6 - 1e-7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"one_of": [(0,)]}, r"one_of\[0\]: expected two or more different features below 5, found \(0,\)"),
        ({"one_of": [(0, 5)]}, r"one_of\[0\]: expected two or more different features below 5, found \(0, 5\)"),
        ({"one_of": [(0, 0)]}, r"one_of\[0\]: expected two or more different features below 5, found \(0, 0\)"),
        ({"one_of": [(0, 1), (1, 2)]}, r"one_of\[1\]: expected features that are in no other group, found \[1, 2\]"),
        ({"one_of": [(0, 1)], "integers": [1]}, r"one_of\[0\]: expected features that are in no other group"),
        ({"integers": [7]}, "integers: expected"),
    ],
)
def test_bad_groups_are_named(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.closest_flip_point(small(0), np.zeros(N), **options)


def test_no_rounding_within_the_bounds_is_infeasible() -> None:
    found = fo.closest_flip_point(small(0), np.full(N, 0.5), bounds=(0.2, 0.8), integers=[0])
    assert found.status is fo.Status.INFEASIBLE
    assert "no whole number" in found.message
    assert np.isnan(found.distance)


def test_without_time_nothing_is_called_proved() -> None:
    rng = np.random.default_rng(0)
    W = [rng.standard_normal((4, 6)), rng.standard_normal((6, 3))]
    net = fo.DenseNetwork(W, [rng.standard_normal(6), rng.standard_normal(3)], fo.Tanh())
    setting, x = Setting.of(net, bounds=(-5, 5)), np.array([1.0, 2, 0, 0])
    i = int(net.predict(x))
    problem = FlipProblem(setting, x, flip(3, [i, (i + 1) % 3]))
    lattice = Lattice.of(setting, x, np.array([0, 1]), ())
    ipopt = Ipopt()
    result = Discrete(net, problem, lattice, ipopt, ipopt.solve, search=Search(seconds=0.0)).run()
    assert result.status is fo.Status.LIMIT
    assert "none found after 0 relaxations" in result.message
