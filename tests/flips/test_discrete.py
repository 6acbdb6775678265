from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipopt as fo
from tests.strategies import seeds

N = 5
EXACT = (fo.Status.CONVERGED, fo.Status.ON_BOUNDARY)


def small(seed: int) -> fo.DenseNetwork:
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal((N, 8)) / np.sqrt(N), rng.standard_normal((8, 2))]
    return fo.DenseNetwork(W, [0.3 * rng.standard_normal(8), np.zeros(2)], fo.Erf(1.0))


@settings(max_examples=15)
@given(seeds, st.booleans())
def test_discrete_constraints_hold_exactly(seed: int, freeze: bool) -> None:
    net, rng = small(seed), np.random.default_rng(seed)
    x = np.concatenate([[1.0, 0.0], [float(rng.integers(-2, 3))], rng.uniform(-1, 1, 2)])
    found = fo.closest_flip_point(
        net, x, bounds=(-3.0, 3.0), integers=[2], one_of=[(0, 1)], frozen=[3] if freeze else None
    )
    if found.status not in EXACT:
        return
    assert sorted(found.x[:2]) == [0.0, 1.0]
    assert found.x[2] == np.round(found.x[2])
    assert (np.abs(found.x) <= 3).all()
    assert not freeze or found.x[3] == x[3]
    Y = net.logits(found.x)
    assert abs(Y[0] - Y[1]) <= 1e-8 * max(1.0, abs(Y[0]))
    assert found.distance == pytest.approx(np.linalg.norm(found.x - x))


def test_discrete_problems_of_a_few_seeds_are_all_solved() -> None:
    # The property above lets a failed solve pass; this shows that it is not a way out.
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = np.concatenate([[1.0, 0.0], [float(rng.integers(-2, 3))], rng.uniform(-1, 1, 2)])
        assert fo.closest_flip_point(small(seed), x, bounds=(-3.0, 3.0), integers=[2], one_of=[(0, 1)]).success


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
