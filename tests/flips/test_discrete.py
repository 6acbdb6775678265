from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.problem import Evaluations, Oracle
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


@examples(8)
@given(seeds, st.booleans())
def test_discrete_constraints_hold_exactly(seed: int, freeze: bool) -> None:
    net, x = small(seed), mixed(seed)
    found = fo.closest_flip_point(
        net, x, bounds=(-3.0, 3.0), integers=[2], one_of=[(0, 1)], frozen=[3] if freeze else None
    )
    assert np.isfinite(found.distance) == (found.status in (fo.Status.CONVERGED, fo.Status.ON_BOUNDARY))
    assert (np.abs(found.x) <= 3).all()
    assert not freeze or found.x[3] == x[3]
    assert sorted(found.x[:2]) == [0.0, 1.0]
    assert found.x[2] == np.round(found.x[2])
    Y = net.logits(found.x)
    assert np.isnan(found.distance) or abs(Y[0] - Y[1]) <= 1e-8 * max(1.0, abs(Y[0]))
    assert np.isnan(found.distance) or found.distance == pytest.approx(np.linalg.norm(found.x - x))


@pytest.mark.parametrize("seed", range(6))
def test_discrete_problems_are_solved(seed: int) -> None:
    assert fo.closest_flip_point(small(seed), mixed(seed), bounds=(-3.0, 3.0), integers=[2], one_of=[(0, 1)]).success


def test_the_cost_is_that_of_all_solves() -> None:
    solver, x = Records(), mixed(0)
    options: dict = {"bounds": (-3.0, 3.0), "integers": [2], "one_of": [(0, 1)], "solver": solver}
    found = fo.closest_flip_point(small(0), x, 1 - int(small(0).predict(x)), starts=x[None], **options)
    assert found.success
    assert len(solver.oracles) == 4  # the relaxation, its rounding, another whole number, the other of the two
    assert found.evaluations == solver.cost


def test_every_rounding_has_all_its_starts() -> None:
    net, x = small(1), mixed(1)
    options: dict = {"bounds": (-3.0, 3.0), "integers": [2], "one_of": [(0, 1)]}
    one, three = Records(), Records()
    once = fo.closest_flip_point(net, x, solver=one, **options)
    thrice = fo.closest_flip_point(net, x, solver=three, starts=3, towards=2 * np.eye(N), **options)
    assert len(three.oracles) == 3 * len(one.oracles)
    assert (once.starts, thrice.starts) == (1, 3)
    assert thrice.evaluations.total > once.evaluations.total
    assert thrice.success
    assert thrice.distance <= once.distance * (1 + 1e-7)


def test_a_linear_choice_by_hand() -> None:
    # y_0 - y_1 = x_0 + x_1 = 0 from (1, 0.4) with x_0 whole: (0, 0) costs 1.08, (1, -1) costs 1.4.
    net = fo.DenseNetwork([np.array([[1.0, 0.0], [1.0, 0.0]])], [np.zeros(2)])
    found = fo.closest_flip_point(net, np.array([1.0, 0.4]), 1, integers=[0])
    assert found.success
    assert found.x == pytest.approx([0.0, 0.0], abs=1e-8)
    assert found.distance == pytest.approx(np.hypot(1, 0.4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"one_of": [(0,)]}, r"one_of\[0\]: expected at least two features below 5, found \[0\]"),
        ({"one_of": [(0, 5)]}, r"one_of\[0\]: expected at least two features below 5, found \[0, 5\]"),
        ({"one_of": [(0, 0)]}, r"one_of\[0\]: expected features that are in no other group"),
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
    assert "no rounding" in found.message
    assert np.isnan(found.distance)
