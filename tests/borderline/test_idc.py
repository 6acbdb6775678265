"""IDC, on boundaries whose oscillation is known."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.borderline import epbs, idc, oscillation
from flipopt.borderline.idc import bootstrap_interval
from tests.borderline.cases import along, blobs, corner, table
from tests.cases import disc, linear

FIGURE_3 = {"tsstssts": 5 / 8, "ttssssst": 2 / 8}


@pytest.mark.parametrize(("classes", "value"), FIGURE_3.items())
def test_figure_3(classes: str, value: float) -> None:
    letters = np.array(list(classes))
    assert oscillation(letters) == value
    net = along(classes)
    assert "".join("st"[k] for k in net.predict(np.arange(8)[:, None] / 8)) == classes
    # x_j = 0 and x_i = 1: from the start 1 the line begins at 0, from 0 at 1.
    found = idc(net, np.array([[0.0], [1.0]]), m=8)
    assert found.by_start[found.starts.tolist().index(1)] == value
    assert found.k == 1
    assert found.value == found.by_start.mean()


def test_several_lines_at_once() -> None:
    np.testing.assert_array_equal(oscillation(np.array([[0, 1, 1], [2, 2, 2], [0, 1, 2]])), [1 / 3, 0, 2 / 3])
    with pytest.raises(fo.InputError, match="classes: expected the classes of at least one point"):
        oscillation(np.empty((3, 0)))


def test_points_are_at_i_over_m_from_the_other_end() -> None:
    """The circle of radius 1: points on it and a line through the middle are inside but for the ends."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = 1.001 * np.column_stack([np.cos(angles), np.sin(angles)])
    found = idc(disc(1.0), ring, k=11, m=50, starts=None, chunk=70)
    assert found.value == pytest.approx(1 / 50)  # t = 0 is outside, t = 49/50 is not, t = 1 is not looked at
    np.testing.assert_allclose(found.by_start, 1 / 50)
    assert found.interval == pytest.approx((1 / 50, 1 / 50))
    assert "changes class 1.00 times in 50 points" in str(found)
    assert np.isnan(found.third)


def test_a_plane_does_not_oscillate_and_a_seed_decides() -> None:
    rng = np.random.default_rng(0)
    flat = np.column_stack([np.full(40, -1e-6), rng.standard_normal(40)])
    assert idc(linear(np.array([1.0, 0.0])), flat, k=5, m=10).value == 0
    net, X, labels = blobs()
    points = epbs(net, X, labels, 0, 1)
    one, same, other = (idc(net, points, starts=8, k=4, m=10, seed=seed) for seed in (3, 3, 4))
    assert (one.value, one.interval, one.starts.tolist()) == (same.value, same.interval, same.starts.tolist())
    assert one.starts.tolist() != other.starts.tolist()
    assert len(one.by_start) == 8
    assert one.interval[0] <= one.value <= one.interval[1]
    whole = idc(net, points, starts=8, k=4, m=10, seed=3, chunk=10)
    np.testing.assert_array_equal(whole.by_start, one.by_start)


def test_classes_are_those_of_the_whole_network() -> None:
    """A first layer that is narrower than the inputs is walked in its own space."""
    rng = np.random.default_rng(1)
    W = [rng.standard_normal((30, 6)), rng.standard_normal((6, 4)), rng.standard_normal((4, 3))]
    net = fo.DenseNetwork(W, [rng.standard_normal(w.shape[1]) for w in W], fo.Tanh())
    X = rng.standard_normal((9, 30))
    found = idc(net, X, k=3, m=7, starts=None, seed=2)
    choices = np.random.default_rng(2)
    others = np.stack([choices.choice(8, 3, replace=False) for _ in range(9)])
    others += others >= np.arange(9)[:, None]
    t = np.arange(7) / 7
    for i in range(9):
        lines = [net.predict(t[:, None] * X[i] + (1 - t[:, None]) * X[j]) for j in others[i]]
        assert found.by_start[i] == pytest.approx(oscillation(np.array(lines)).mean())


def test_points_in_a_third_class_are_counted() -> None:
    points = np.array([[0.0, -1.0], [0.0, 1.0]])  # half of the way is in class 2
    assert idc(corner(), table(points), m=50).third == pytest.approx(0.49, abs=0.02)
    assert idc(corner(), points, 0, 1, m=50).third == idc(corner(), table(points), m=50).third


def test_the_interval_covers_the_mean() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, 400)
    low, high = bootstrap_interval(values)
    assert low < 3.0 < high
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.1)


def test_bad_arguments_are_named() -> None:
    net, X, labels = blobs()
    both = fo.borderline.Instances.join([epbs(net, X, labels, 0, 1), epbs(net, X, labels, 1, 0)])
    for points, options, words in [
        (X[:1], {}, "points: expected at least two borderline points, found 1"),
        (both, {}, "points: expected instances of one direction"),
        (table(np.empty((0, 2))), {}, "at least two borderline points, found 0"),
        (X, {"k": 0}, "k: expected a whole number >= 1"),
        (X, {"m": 0}, "m: expected a whole number >= 1"),
        (X, {"starts": 0}, "starts: expected a whole number >= 1"),
        (X, {"s": 0, "t": 9}, "t: expected a class from 0 to 2, found 9"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            idc(net, points, **options)
