"""Crossings of lines with boundaries that are known, or found by a fine scan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import flipopt as fo
from benchmarks.spirals import spirals
from flipopt.paths import Proving, Sampling, crossings
from tests.cases import disc, linear, moons, three_classes
from tests.strategies import examples, networks, points, seeds

MODES = ("proved", "adaptive")
PROVABLE = ("erf", "relu")


def scan(net: fo.Network, a: np.ndarray, b: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """Indices of the alphas after which the predicted class changes."""
    classes = net.predict((1 - alphas)[:, None] * a + alphas[:, None] * b)
    return np.flatnonzero(np.diff(classes))


def assert_to_the_last_bit(net: fo.Network, A: np.ndarray, B: np.ndarray, found: fo.paths.Crossings) -> None:
    """The class after is predicted at alpha, and the class before at the number below it."""
    A, B = np.broadcast_arrays(*map(np.atleast_2d, (A, B)))
    for alpha, side in ((np.nextafter(found.alpha, -np.inf), 0), (found.alpha, 1)):
        X = (1 - alpha)[:, None] * A[found.line] + alpha[:, None] * B[found.line]
        np.testing.assert_array_equal(net.predict(X), found.classes[:, side])


def assert_chained(found: fo.paths.Crossings) -> None:
    """Sorted, and every crossing starts from the class that the one before it led to."""
    assert (np.lexsort((found.alpha, found.line)) == np.arange(len(found))).all()
    at = found.start.copy()
    for line, (before, after) in zip(found.line, found.classes):
        assert before == at[line] != after
        at[line] = after


@pytest.mark.parametrize("mode", MODES)
def test_a_line_through_a_linear_classifier_crosses_once_at_a_known_place(mode: str) -> None:
    net = linear(np.array([3.0, 4.0]), offset=-5.0)  # 3 x + 4 y = 5
    A, B = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]]), np.array([[2.0, 2.0], [1.0, 0.0], [0.0, 3.0]])
    found = crossings(net, A, B, mode)
    assert found.line.tolist() == [0]
    assert found.alpha[0] == pytest.approx(5 / 14, rel=1e-15)
    assert found.classes.tolist() == [[1, 0]]
    assert found.start.tolist() == [1, 1, 0]
    assert found.count.tolist() == [1, 0, 0]
    assert found.decided.all()
    assert (found.evaluations > 0).all()
    assert_to_the_last_bit(net, A, B, found)


@pytest.mark.parametrize("mode", MODES)
def test_lines_go_on_beyond_their_ends(mode: str) -> None:
    net = linear(np.array([1.0]), offset=-2.0)
    assert len(crossings(net, [0.0], [1.0], mode)) == 0
    found = crossings(net, [0.0], [1.0], mode, beyond=1.5)
    assert found.alpha == pytest.approx([2.0])
    assert found.start.tolist() == [1]


@pytest.mark.parametrize("mode", MODES)
def test_a_third_class_in_between_is_crossed_too(mode: str) -> None:
    net = three_classes()  # (x_0, -x_0, x_1 - 3)
    found = crossings(net, [-2.0, 4.0], [2.0, 4.0], mode)
    assert found.classes.tolist() == [[1, 2], [2, 0]]
    np.testing.assert_allclose(found.alpha, [0.25, 0.75])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", PROVABLE)
def test_spirals_are_crossed_as_often_as_a_fine_scan_finds(kind: str, mode: str) -> None:
    net = spirals(kind)
    A, B = np.random.default_rng(0).uniform(-1.2, 1.2, size=(2, 60, 2))
    found = crossings(net, A, B, mode)
    assert found.decided.all()
    alphas = np.linspace(0, 1, 2001)
    for k in range(60):
        mine, seen = found.alpha[found.line == k], scan(net, A[k], B[k], alphas)
        assert len(mine) == len(seen)
        assert ((alphas[seen] <= mine) & (mine <= alphas[seen + 1])).all()
    assert found.count.max() >= 4
    assert_chained(found)
    assert_to_the_last_bit(net, A, B, found)


@examples(25)
@given(networks(), seeds)
def test_proved_lines_have_no_other_crossings_and_agree_with_samples(net: fo.DenseNetwork, seed: int) -> None:
    A, B = 3 * points(net, 6, seed).reshape(2, 3, -1)
    found, sampled = (crossings(net, A, B, mode, beyond=0.1) for mode in MODES)
    alphas = np.linspace(-0.1, 1.1, 1201)
    for k in np.flatnonzero(found.decided):
        mine, seen = found.alpha[found.line == k], scan(net, A[k], B[k], alphas)
        assert all(((alphas[s] <= mine) & (mine <= alphas[s + 1])).any() for s in seen)
        assert len(mine) >= len(seen)
    assert_chained(found)
    assert_chained(sampled)


def test_a_boundary_that_is_touched_is_undecided_and_little_else() -> None:
    """The lead is erf(x)^2-like: 0 at one place only, and never negative."""
    W = [np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]])]
    net = fo.DenseNetwork(W, [np.array([0.5, -0.5]), np.array([-2 * 0.5204998778130465, 0.0])], fo.Erf(1.0))
    found = crossings(net, [-3.0], [3.0])  # erf(x + 1/2) - erf(x - 1/2) - 2 erf(1/2), largest at 0
    assert not found.decided[0]
    assert len(found.undecided) >= 1
    assert found.undecided.low.min() == pytest.approx(0.5, abs=1e-3)
    assert found.undecided.high.max() == pytest.approx(0.5, abs=1e-3)
    assert found.evaluations[0] < 20_000


def test_classes_that_tie_everywhere_are_undecided_in_few_steps() -> None:
    W = np.array([[1.0], [1.0]])
    net = fo.DenseNetwork([W, np.ones((1, 2))], [np.zeros(1), np.zeros(2)], fo.Tanh())
    found = crossings(net, [-1.0, 0.0], [1.0, 1.0])
    assert not found.decided[0]
    assert (found.undecided.low[0], found.undecided.high[-1]) == (0.0, 1.0)
    assert found.evaluations[0] < 20_000
    relu = crossings(net.with_activations(fo.ReLU()), [-1.0, 0.0], [1.0, 1.0])
    assert not relu.decided[0]


def test_lines_may_begin_on_the_boundary() -> None:
    net, x = moons(), np.array([0.3, 0.9])
    on = fo.paths.bisect(net, x, [0.5, -0.8], beta=0).x[0]
    for A, B in ((x, on), (on, x)):
        for mode in MODES:
            found = crossings(net, A, B, mode)
            assert found.decided[0]
            assert len(found) <= 1  # at the very end, or not at all
            if len(found):
                end = 1.0 if A is x else 0.0
                assert found.alpha[0] == pytest.approx(end, abs=1e-6)


def test_few_lines_are_cut_into_parts_and_found_alike() -> None:
    net = moons()
    A, B = np.random.default_rng(1).uniform(-1, 2, size=(2, 40, 2))
    together = crossings(net, A, B)
    for k in range(3):
        alone = crossings(net, A[k], B[k])
        np.testing.assert_allclose(alone.alpha, together.alpha[together.line == k], rtol=0, atol=1e-14)


def test_two_parts_of_a_mixed_network_are_both_followed() -> None:
    rng = np.random.default_rng(0)
    W = [rng.standard_normal(shape) for shape in ((2, 12), (12, 8), (8, 3))]
    b = [rng.standard_normal(width) for width in (12, 8, 3)]
    net = fo.DenseNetwork(W, b, [fo.ReLU(), fo.Tanh()])
    A, B = rng.standard_normal((2, 20, 2)) * 2
    found = crossings(net, A, B)
    assert found.decided.all()
    for k in range(20):
        assert (found.line == k).sum() == len(scan(net, A[k], B[k], np.linspace(0, 1, 4001)))


def _trained(kind: str):
    X, y = points(moons(), 200, 0), (points(moons(), 200, 0)[:, 0] > 0).astype(int)
    if kind == "logistic regression":
        return LogisticRegression().fit(X, y)
    if kind == "perceptron":
        return MLPClassifier((8,), activation="tanh", max_iter=20, random_state=0).fit(X, y)
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["logistic regression", "perceptron", "module"])
def test_estimators_and_modules_that_are_dense_are_proved(kind: str) -> None:
    A, B = np.random.default_rng(0).uniform(-2, 2, size=(2, 10, 2))
    found, sampled = (crossings(_trained(kind), A, B, mode) for mode in MODES)
    assert found.decided.all()
    np.testing.assert_allclose(found.alpha, sampled.alpha, atol=1e-12)


def test_any_network_can_be_sampled_and_others_are_not_proved() -> None:
    net = disc(1.0)
    found = crossings(net, [-2.0, 0.6], [2.0, 0.6], "adaptive")
    np.testing.assert_allclose(found.alpha, [0.3, 0.7])
    assert found.classes.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(fo.InputError, match="TorchNetwork; mode='adaptive' takes every network"):
        crossings(net, [-2.0, 0.6], [2.0, 0.6])


def test_tables_can_be_taken_elsewhere(tmp_path: Path) -> None:
    net = spirals("relu")
    found = crossings(net, np.zeros(2), np.random.default_rng(0).uniform(-1, 1, size=(20, 2)), "adaptive")
    frame = found.to_pandas()
    assert list(frame.columns) == ["line", "alpha", "i", "j"]
    assert len(frame) == len(found) > 0
    found.save(tmp_path / "crossings.parquet")
    assert (tmp_path / "crossings.parquet").stat().st_size > 0
    some = found.take(found.line == found.line[0])
    assert len(some.start) == 20
    assert (some.line == found.line[0]).all()


def test_a_bar_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    crossings(linear(np.ones(2)), np.zeros(2), np.ones((5, 2)), progress=True)
    assert "crossings, proved" in capsys.readouterr().out


def test_bad_arguments_are_refused() -> None:
    net, a, b = linear(np.ones(2)), np.zeros(2), np.ones(2)
    for arguments, why in [
        ((a, a), "the same point twice in row 0"),
        ((np.zeros((2, 2)), np.ones((3, 2))), "expected 2 points, as A has"),
        ((np.array([np.nan, 0.0]), b), "A: expected finite"),
        ((np.zeros((0, 2)), b), "at least one point"),
        ((np.zeros(3), b), "A: expected shape"),
        ((a, b, "exact"), "mode: expected one of proved, adaptive"),
        ((a, b, "proved", -0.1), "beyond: expected a number >= 0"),
        ((a, b, "proved", 0.0, Sampling()), "expected a Proving in proved mode"),
        ((a, b, "adaptive", 0.0, Proving()), "expected a Sampling in adaptive mode"),
    ]:
        with pytest.raises(fo.InputError, match=why):
            crossings(net, *arguments)
    with pytest.raises(fo.InputError, match="order: expected at most 12"):
        Proving(order=13)
    with pytest.raises(fo.InputError, match="safety: expected a number >= 1"):
        Sampling(safety=0.5)
