from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sklearn import metrics

from flipopt.explain import statistics
from tests.strategies import seeds


def drawn(seed: int, ties: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Scores and mistakes, at least one of either kind; coarse scores have ties."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 60))
    wrong = rng.uniform(size=rows) < rng.uniform(0.05, 0.95)
    wrong[0], wrong[-1] = True, False
    score = rng.standard_normal(rows) + rng.uniform(-1, 2) * wrong
    return (np.round(score, 1) if ties else score), wrong


@given(seeds)
def test_areas_and_curves_are_those_of_scikit_learn(seed: int) -> None:
    score, wrong = drawn(seed)
    assert statistics.auc(score, wrong) == pytest.approx(metrics.roc_auc_score(wrong, score))
    assert statistics.average_precision(score, wrong) == pytest.approx(metrics.average_precision_score(wrong, score))
    for ours, theirs in zip(statistics.roc(score, wrong), metrics.roc_curve(wrong, score, drop_intermediate=False)):
        np.testing.assert_allclose(ours, theirs)
    precision, recall, _ = metrics.precision_recall_curve(wrong, score)
    ours = statistics.precision_recall(score, wrong)
    np.testing.assert_allclose(ours[0], recall[::-1])
    np.testing.assert_allclose(ours[1][1:], precision[::-1][1:])


@given(seeds)
def test_the_area_is_that_under_the_curve_and_in_its_interval(seed: int) -> None:
    score, wrong = drawn(seed)
    area = statistics.auc(score, wrong)
    assert np.trapezoid(statistics.roc(score, wrong)[1], statistics.roc(score, wrong)[0]) == pytest.approx(area)
    low, high = statistics.auc_interval(area, int(wrong.sum()), int((~wrong).sum()))
    assert 0 <= low <= area <= high <= 1
    assert low < high


def test_few_mistakes_all_found_leave_room_for_doubt() -> None:
    few, many = (statistics.auc_interval(1.0, count, 200) for count in (3, 100))
    assert few[0] < many[0] < 1
    assert few[1] == many[1] == 1
    assert statistics.auc_interval(0.0, 3, 200)[1] == pytest.approx(1 - few[0])


def test_intervals_of_the_area_hold_as_often_as_they_say() -> None:
    # Normal scores that differ by 1 have an area of Phi(1 / sqrt 2).
    rng, truth, held = np.random.default_rng(1), 0.7602499, 0
    for _ in range(400):
        wrong = np.arange(60) < 12
        score = rng.standard_normal(60) + wrong
        low, high = statistics.auc_interval(statistics.auc(score, wrong), 12, 48)
        held += low <= truth <= high
    assert 0.92 <= held / 400 <= 0.985


def test_intervals_of_the_difference_hold_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(2), 0
    for _ in range(400):
        wrong = np.arange(60) < 8
        one, noise, other = rng.standard_normal((3, 60))
        a, b = one + 0.5 * noise + wrong, one + 0.5 * other + wrong  # the same area, scores alike
        _, (low, high) = statistics.auc_difference(a, b, wrong)
        held += low <= 0 <= high
    assert 0.92 <= held / 400 <= 0.99


def test_the_variance_of_the_difference_is_delongs() -> None:
    score, wrong = drawn(5, ties=False)
    other = np.random.default_rng(0).standard_normal(len(score))
    difference, (low, high) = statistics.auc_difference(score, other, wrong)
    assert difference == pytest.approx(statistics.auc(score, wrong) - statistics.auc(other, wrong))
    # By the definition: variances of the kernel's means over pairs.
    kernels = [
        (s[wrong][:, None] > s[~wrong]).astype(float) + 0.5 * (s[wrong][:, None] == s[~wrong]) for s in (score, other)
    ]
    gap = kernels[0] - kernels[1]
    parts = [gap.mean(axis=1), gap.mean(axis=0)]
    variances = [part.var(ddof=1) / len(part) for part in parts]
    assert (high - low) / 2 > 1.96 * np.sqrt(sum(variances))
    assert (high - low) / 2 < 1.5 * 1.96 * np.sqrt(sum(variances))


def test_one_mistake_says_nothing_of_a_difference() -> None:
    wrong = np.array([True, False, False, False])
    difference, interval = statistics.auc_difference(np.array([3.0, 1, 2, 0]), np.array([0.0, 1, 2, 3]), wrong)
    assert difference == pytest.approx(1.0)
    assert np.isnan(interval).all()


def test_perfect_rankings_of_few_say_nothing_and_of_many_a_lot() -> None:
    for count, said in ((2, False), (20, True)):
        wrong = np.arange(2 * count) < count
        score = np.arange(2.0 * count)
        difference, (low, high) = statistics.auc_difference(-score, score, wrong)
        assert difference == 1
        assert (low > 0) == said
        assert high >= 1
    assert (
        statistics.auc_difference(score, score, wrong)[1][0] < 0 < statistics.auc_difference(score, score, wrong)[1][1]
    )


def test_wilson_is_known_and_within_0_and_1() -> None:
    low, high = statistics.wilson(np.array([5, 0, 5, 0]), np.array([10, 5, 5, 0]))
    np.testing.assert_allclose([low[0], high[0]], [0.23659, 0.76341], atol=1e-5)
    assert low[1] == 0
    assert high[2] == 1
    assert (low[3], high[3]) == (0, 1)
