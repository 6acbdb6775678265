"""Algorithm 1: what is found, what has failed at which step, and that no pair costs another anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.borderline import Outcome, refine
from tests.borderline.cases import corner
from tests.cases import disc, linear, moons
from tests.strategies import examples, seeds


def printed(
    net: fo.Network, a: np.ndarray, b: np.ndarray, s: int, t: int, beta: float
) -> tuple[np.ndarray | None, int]:
    """Algorithm 1 as it is printed, one pair at a time: the point, or None, and the steps."""
    for step in range(1, 200):
        middle = (a + b) / 2
        z = net.probabilities(middle)
        k = int(z.argmax())
        if k not in (s, t):
            return None, step
        a, b = (middle, b) if k == s else (a, middle)
        if abs(z[s] - z[t]) < beta:
            return middle, step
    raise AssertionError


def pairs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of classes 0 and 1 of moons()."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(8 * count, 2))
    classes = moons().predict(X)
    return X[classes == 0][:count], X[classes == 1][:count]


@given(seeds, st.sampled_from([0.3, 1e-4, 1e-9]), st.booleans())
@examples(25)
def test_it_is_the_printed_algorithm(seed: int, beta: float, flat: bool) -> None:
    net = fo.DenseNetwork([np.random.default_rng(seed).standard_normal((3, 4))], [np.zeros(4)]) if flat else moons()
    X = np.random.default_rng(seed).standard_normal((12, net.n_inputs))
    classes = net.predict(X)
    s = classes[0]
    A = X[classes == s]
    for t in np.setdiff1d(classes, s):
        B = X[classes == t][: len(A)]
        found = refine(net, A[: len(B)], B, s, t, beta, chunk=3)
        for k, (a, b) in enumerate(zip(A, B)):
            point, steps = printed(net, a, b, s, t, beta)
            assert found.steps[k] == steps
            assert found.success[k] == (point is not None)
            if point is not None:
                np.testing.assert_allclose(found.x[k], point, atol=1e-12)
                assert found.gap[k] <= beta


@given(seeds, st.booleans(), st.integers(1, 9))
@examples(20)
def test_points_are_between_their_ends_and_pairs_do_not_depend_on_each_other(
    seed: int, strict: bool, chunk: int
) -> None:
    A, B = pairs(10, seed)
    order = np.random.default_rng(seed).permutation(len(A))
    found = refine(moons(), A, B, strict=strict, chunk=chunk)
    other = refine(moons(), A[order], B[order], strict=strict)
    for name in ("x", "gap", "alpha", "steps", "evaluations", "distance"):
        np.testing.assert_array_equal(getattr(found, name)[order], getattr(other, name))
    assert ((found.alpha >= 0) & (found.alpha <= 1)).all()
    assert (found.gap[found.success] <= 1e-4).all()
    np.testing.assert_allclose(found.x, A + found.alpha[:, None] * (B - A), atol=1e-12)
    np.testing.assert_allclose(found.distance, np.linalg.norm(found.x - A, axis=1))


def test_of_a_plane_the_point_is_exact() -> None:
    net = linear(np.array([1.0, 1.0]), offset=-1.0)
    T = np.array([[0.9, 0.8], [3.0, 0.0], [0.7, 7.0]])
    found = refine(net, np.zeros(2), T, 1, 0, beta=0)
    np.testing.assert_allclose(found.alpha, 1 / T.sum(axis=1), rtol=3e-16)
    np.testing.assert_allclose(found.x.sum(axis=1), 1.0, rtol=1e-15)
    assert found.success.all()
    assert found.classes.tolist() == [[1, 0]] * 3
    assert (found.row.tolist(), found.partner.tolist()) == ([0, 0, 0], [0, 1, 2])


def test_a_third_class_ends_the_strict_search_and_not_the_other() -> None:
    # Midpoints (-1, 1): class 1 by a hair; then class 2 is ahead near x_0 = 0 unless x_1 is negative there.
    S = np.array([[-3.0, 0.5], [-3.0, 2.0], [-3.0, -1.0], [-3.0, 1.2]])
    T = np.array([[4.0, 0.5], [1.0, -3.0], [2.5, -1.0], [4.0, -9.0]])
    strict, other = (refine(corner(), S, T, 1, 0, strict=value) for value in (True, False))
    assert [status.name for status in strict.status] == ["LEFT", "FOUND", "FOUND", "FOUND"]
    assert strict.third.tolist() == [2, -1, -1, -1]
    assert strict.message[0] == f"left the two classes at step {strict.steps[0]}: class 2 is ahead"
    assert [status.name for status in other.status] == ["LEFT", "FOUND", "FOUND", "FOUND"]
    np.testing.assert_allclose(other.x[0], [0.0, 0.5], atol=1e-12)
    np.testing.assert_array_equal(strict.x[1:], other.x[1:])


def test_the_other_search_finds_what_the_strict_one_misses() -> None:
    """Scores (1 - x, x - 1, 10 - 30 |x - 1/2|): the third is ahead in the middle, 1/2, and behind where others tie."""
    W = [np.array([[1.0, -1.0]]), np.array([[-1.0, 1.0, -30.0], [1.0, -1.0, -30.0]])]
    net = fo.DenseNetwork(W, [np.array([-0.5, 0.5]), np.array([0.5, -0.5, 10.0])], fo.ReLU())
    strict, other = (refine(net, [-4.0], [5.0], strict=value) for value in (True, False))
    assert strict.message.tolist() == ["left the two classes at step 1: class 2 is ahead"]
    assert other.success[0]
    assert other.x[0, 0] == pytest.approx(1.0, abs=1e-3)


def test_every_bad_pair_has_its_status_and_costs_the_others_nothing() -> None:
    S = np.array([[2.0, -1.0], [-2.0, -1.0], [2.0, -1.0], [np.nan, 0.0], [2.0, -1.0], [2.0, -1.0]])
    T = np.array([[-2.0, -1.0], [-3.0, -1.0], [3.0, -1.0], [-2.0, -1.0], [np.inf, 0.0], [0.5, 5.0]])
    found = refine(corner(), S, T, 0, 1)
    names = ["FOUND", "NOT_S", "NOT_T", "NOT_FINITE", "NOT_FINITE", "NOT_T"]
    assert [status.name for status in found.status] == names
    alone = refine(corner(), S[:1], T[:1], 0, 1)
    for name in ("x", "alpha", "gap", "steps", "evaluations"):
        np.testing.assert_array_equal(getattr(found, name)[:1], getattr(alone, name))
    assert np.isnan(found.x[1:]).all()
    assert found.evaluations[3:5].tolist() == [0, 0]
    assert found.success_rate == 1.0
    assert found.yield_rate == pytest.approx(1 / 6)
    assert found.counts == {"FOUND": 1, "NOT_S": 1, "NOT_T": 2, "NOT_FINITE": 2}
    assert str(found).startswith("1 of 1 pair (100%) end as a borderline instance, 17% of all sources")
    assert "start not in class s: 1" in str(found)


def test_classes_are_predicted_or_one_a_pair() -> None:
    S, T = np.array([[2.0, -5.0], [-2.0, -5.0], [-2.0, 5.0]]), np.array([[-2.0, -5.0], [-3.0, -5.0], [9.0, 5.0]])
    found = refine(corner(), S, T)
    assert found.classes.tolist() == [[0, 1], [1, 1], [2, 0]]
    assert [status.name for status in found.status] == ["FOUND", "SAME", "FOUND"]
    given_ = refine(corner(), S, T, [0, 1, 2], np.array([1, 0, 0]))
    assert [status.name for status in given_.status] == ["FOUND", "NOT_T", "FOUND"]
    np.testing.assert_array_equal(given_.x[[0, 2]], found.x[[0, 2]])
    assert len(found.between(2, 0)) == 1


class Broken(fo.TorchNetwork):
    """Scores are NaN where x_1 is near 1."""

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X[:, 1:] - 1) < 0.25, np.nan, super()._logits(X))


def test_limits_jumps_and_scores_that_are_no_numbers() -> None:
    A, B = pairs(4)
    few = refine(moons(), A, B, beta=1e-9, iterations=3)
    assert {status.name for status in few.status} == {"LIMIT"}
    assert few.message[0] == "stopped by the limit of steps (3)"
    assert few.steps.tolist() == [3] * 4
    # x - 0.3 is rounded nowhere near 0.3, and the scores tie between two neighbouring numbers.
    steep = fo.DenseNetwork([np.eye(1), np.array([[1e18, 0.0]])], [[-0.3], [40.0, 0.0]], fo.Identity())
    jump = refine(steep, [0.0], [1.0], beta=1e-6)
    assert jump.status[0] is Outcome.JUMP
    assert refine(steep, [0.0], [1.0], beta=0).success[0]
    net = disc(0.5)
    net.__class__ = Broken
    found = refine(net, [0.0, 0.0], [[0.0, 2.0], [2.0, 0.0], [0.0, 1.1]])
    assert [status.name for status in found.status] == ["BROKEN", "FOUND", "BROKEN"]
    assert found.steps.tolist()[::2] == [1, 0]


def test_networks_that_are_not_dense_are_computed_in_their_own_precision() -> None:
    net = disc(1.0).astype(np.float32)
    found = refine(net, [0.0, 0.0], [[2.0, 0.0], [0.0, 5.0]])
    assert found.success.all()
    z = net.probabilities(found.x)
    np.testing.assert_allclose(np.abs(z[:, 0] - z[:, 1]), found.gap, atol=1e-7)
    exact = refine(net, [0.0, 0.0], [[2.0, 0.0], [0.0, 5.0]], beta=0)
    np.testing.assert_allclose(exact.alpha, [0.5, 0.2], rtol=1e-15)


def test_a_table_can_be_taken_elsewhere(tmp_path: Path) -> None:
    found = refine(corner(), [[2.0, -1.0], [2.0, -1.0]], [[-2.0, -1.0], [3.0, -1.0]], 0, 1)
    frame = found.to_pandas()
    assert list(frame.columns[:4]) == ["row", "partner", "i", "j"]
    assert frame["status"].tolist() == ["FOUND", "NOT_T"]
    assert frame["success"].tolist() == [True, False]
    found.save(tmp_path / "instances.parquet")
    moved = found.measured_from(np.array([[0.0, -1.0], [0.0, 0.0]]))
    assert moved.distance[0] == pytest.approx(abs(found.x[0, 0]))
    assert np.isnan(moved.distance[1])
    with pytest.raises(fo.InputError, match="X: expected 2 rows or more of 2 numbers"):
        found.measured_from(np.zeros((1, 2)))


def test_no_pairs_are_no_instances() -> None:
    found = refine(corner(), np.empty((0, 2)), np.empty((0, 2)), 0, 1)
    assert len(found) == 0
    assert np.isnan(found.success_rate)
    assert str(found) == "No pairs: there is nothing to search between."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"S": np.zeros((2, 3))}, r"S: expected shape \(2,\)"),
        ({"T": np.zeros((3, 2))}, "T: expected 2 points, as S has, or one, found 3"),
        ({"s": 3}, "s: expected classes from 0 to 2, found 3"),
        ({"t": -1}, "t: expected classes from 0 to 2, found -1"),
        ({"t": [1, 0, 1]}, "t: expected a class, or 2 classes, one a pair"),
        ({"s": 0.5}, "s: expected a class, or 2 classes"),
        ({"s": 1}, "t: expected other classes than s, found class 1 twice in pair 0"),
        ({"t": [1, 0]}, "found class 0 twice in pair 1"),
        ({"beta": -1}, "beta: expected a number >= 0"),
        ({"iterations": 0}, "iterations: expected a whole number >= 1"),
        ({"chunk": 0}, "chunk: expected a whole number >= 1"),
    ],
)
def test_bad_arguments_are_named(changes: dict, words: str) -> None:
    arguments = {"S": np.ones((2, 2)), "T": -np.ones((2, 2)), "s": 0, "t": 1} | changes
    with pytest.raises(fo.InputError, match=words):
        refine(corner(), **arguments)
