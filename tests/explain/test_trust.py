from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import flipopt as fo
from tests.cases import linear, three_classes
from tests.explain.tables import plane, table

W = np.array([3.0, 4.0])


def planted(rows: int = 200, seed: int = 0) -> tuple[fo.DenseNetwork, fo.FlipTable, np.ndarray, np.ndarray]:
    """A plane, and labels that are wrong near it more often than far away."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 2))
    net, flips = plane(W, X)
    wrong = rng.uniform(size=rows) < 0.5 * np.exp(-2 * flips.distance)
    return net, flips, X, np.where(wrong, 1 - flips.classes[:, 0], flips.classes[:, 0])


def test_mistakes_near_the_boundary_are_found_and_softmax_says_the_same_for_a_plane() -> None:
    net, flips, X, labels = planted()
    found = fo.explain.trust(flips, net, X, labels)
    wrong = flips.classes[:, 0] != labels
    assert found.mistakes == wrong.sum() > 5
    assert found.accuracy == pytest.approx(1 - wrong.mean())
    assert found.distance.auc == pytest.approx(roc_auc_score(wrong, -flips.distance))
    # Softmax of a linear network with two classes is a function of the distance.
    assert found.softmax.auc == pytest.approx(found.distance.auc)
    assert found.difference == pytest.approx(0)
    assert found.better == "cannot be said"
    assert found.distance.interval[0] < found.distance.auc < found.distance.interval[1]
    assert found.without_flip == 0
    assert f"{found.mistakes} mistakes among 200 inputs" in str(found)


def test_the_better_predictor_is_named() -> None:
    # Class 1 is a hundred times as steep on one half: its softmax is sure there, however near the boundary.
    class Steep(fo.DenseNetwork):
        def _logits(self, X):
            Y = super()._logits(X)
            return Y * np.where(X[:, 1:] > 0, 100.0, 0.3)

    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 2))
    _, flips = plane(np.array([1.0, 0.0]), X)
    net = Steep([np.array([[1.0, 0.0], [0.0, 0.0]])], [np.zeros(2)])
    near = flips.distance < 0.2
    labels = np.where(near, 1 - flips.classes[:, 0], flips.classes[:, 0])
    found = fo.explain.trust(flips, net, X, labels)
    assert found.better == "distance"
    assert found.distance.auc == 1
    assert found.softmax.auc < 0.9
    assert found.difference_interval[0] > 0


def test_calibration_counts_every_row_once() -> None:
    net, flips, X, labels = planted()
    found = fo.explain.trust(flips, net, X, labels, bins=8)
    for predictor in (found.distance, found.softmax):
        bins = predictor.calibration
        assert bins.count.sum() == 200
        assert bins.wrong.sum() == found.mistakes
        assert (bins.upper[:-1] < bins.lower[1:]).all()
        assert ((bins.low <= bins.share) & (bins.share <= bins.high)).all()
        assert len(bins) == 8
    assert found.distance.calibration.share[0] > found.distance.calibration.share[-1]
    assert found.expected_mistakes == pytest.approx((1 - net.probabilities(X).max(axis=1)).sum())


def test_softmax_that_is_one_in_floats_still_ranks() -> None:
    X = np.column_stack([np.linspace(50, 100, 20), np.zeros(20)])
    net, flips = plane(np.array([1.0, 0.0]), X)
    labels = (np.arange(20) < 4).astype(int)  # the nearest ones are mistakes
    found = fo.explain.trust(flips, net, X, labels)
    assert (found.softmax.values == 1).all()
    assert found.softmax.auc == 1


@pytest.mark.parametrize("wrong", [False, True])
def test_without_mistakes_or_with_nothing_else_it_cannot_be_said(wrong: bool) -> None:
    net, flips, X, _ = planted(20)
    found = fo.explain.trust(flips, net, X, flips.classes[:, int(wrong)])
    assert np.isnan(found.distance.auc)
    assert np.isnan(found.distance.interval).all()
    assert found.better == "cannot be said"
    assert "cannot be said" in str(found)
    assert found.mistakes == (20 if wrong else 0)


def test_rows_without_a_flip_are_counted_and_left_out() -> None:
    net, flips, X, labels = planted(50)
    status = flips.status.copy()
    status[[3, 7]] = fo.Status.NUMERICAL_ERROR
    X[3] = np.nan
    broken = table(flips.row, flips.classes, flips.x, np.where(np.arange(50) == 3, np.nan, flips.distance), status)
    found = fo.explain.trust(broken, net, X, labels)
    assert found.without_flip == 2
    assert len(found.row) == 48
    assert "2 inputs without a flip point are left out" in str(found)
    assert len(fo.explain.trust(flips[:0], net, X, labels).row) == 0


def test_one_row_and_one_class_are_no_error() -> None:
    net, flips, X, labels = planted(20)
    assert "1 input" in str(fo.explain.trust(flips[:1], net, X, labels))
    one = flips.classes[:, 0] == 0
    assert fo.explain.trust(flips[one], net, X, np.zeros(20, dtype=int)).mistakes == 0


def test_bad_labels_are_named() -> None:
    net, flips, X, labels = planted(20)
    with pytest.raises(fo.InputError, match="labels: expected 20 classes, one a row, found shape .19"):
        fo.explain.trust(flips, net, X, labels[:19])
    with pytest.raises(fo.InputError, match="labels: expected classes from 0 to 1, found 7"):
        fo.explain.trust(flips, net, X, np.where(np.arange(20) == 5, 7, labels))
    with pytest.raises(fo.InputError, match="labels: expected classes as whole numbers, found float64"):
        fo.explain.trust(flips, net, X, labels + 0.5)
    with pytest.raises(fo.InputError, match="X: expected all 20 rows or more"):
        fo.explain.trust(flips, net, X[:10], labels[:10])
    with pytest.raises(fo.InputError, match="flips: expected a FlipTable, found list"):
        fo.explain.trust([], net, X, labels)


def test_labels_may_be_names_and_numbers_of_the_estimators_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    truth = (X[:, 0] + 0.5 * rng.standard_normal(80) > 0).astype(int)
    expected = None
    for classes in (np.array([0, 1]), np.array(["no", "yes"]), np.array([1, 2])):
        estimator = LogisticRegression().fit(X, classes[truth])
        flips = fo.closest_flip_points(estimator, X)
        found = fo.explain.trust(flips, estimator, X, classes[truth])
        expected = expected or found.mistakes
        assert found.mistakes == expected > 0


def test_a_trust_score_has_its_place_among_others() -> None:
    net, flips, X, labels = planted()
    reference = fo.explain.trust(flips, net, X, labels)
    x = np.array([0.3, 0.0])
    score = fo.explain.trust_score(fo.closest_flip_point(net, x), net, x, reference, classes=("up", "down"))
    near = flips.distance <= 0.18
    wrong = flips.classes[:, 0] != labels
    assert score.distance == pytest.approx(0.18)
    assert score.percentile == pytest.approx(100 * near.mean())
    same = flips.classes[:, 0] == 0
    assert score.class_percentile == pytest.approx(100 * near[same].mean())
    assert score.wrong_as_near == pytest.approx(wrong[near].mean())
    assert score.wrong_beyond == pytest.approx(wrong[~near].mean())
    assert score.alternate == 1
    assert "“up” flips at a distance of 0.18" in str(score)
    assert "On the other side is “down”" in str(score)
    plain = fo.explain.trust_score(0.18, net, x, flips)
    assert plain.percentile == score.percentile
    assert plain.alternate is None
    assert "cannot be said" in str(plain)
    assert "cannot be said" in str(fo.explain.trust_score(0.1, net, x, flips[:0]))


def test_a_trust_score_wants_a_reference_and_a_distance() -> None:
    net, flips, X, _ = planted(10)
    with pytest.raises(fo.InputError, match="reference: expected a Trust or a FlipTable, found int"):
        fo.explain.trust_score(0.1, net, X[0], 3)
    with pytest.raises(fo.InputError, match="flip: expected a number >= 0, found -1"):
        fo.explain.trust_score(-1, net, X[0], flips)
    with pytest.raises(fo.InputError, match="classes: expected 2 names, found 1"):
        fo.explain.trust_score(0.1, net, X[0], flips, classes=("a",))


def test_the_alternate_class_of_mistakes() -> None:
    # Rows 0 to 3 are predicted as 0; their nearest flips lead to 1, 1, 2 and 1.
    flips = table(
        [0, 0, 1, 1, 2, 2, 3, 4],
        [(0, 1), (0, 2), (0, 1), (0, 2), (0, 1), (0, 2), (0, 1), (2, 1)],
        np.zeros((8, 2)),
        [1.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 1.0],
    )
    found = fo.explain.alternate(flips, [1, 2, 2, 0, 0], classes=("a", "b", "c"))
    assert found.row.tolist() == [0, 1, 2, 4]
    assert found.predicted.tolist() == [0, 0, 0, 2]
    assert found.alternate.tolist() == [1, 1, 2, 1]
    assert found.right.tolist() == [True, False, True, False]
    assert found.rank.tolist() == [1, 2, 1, 0]
    assert found.share == 0.5
    assert found.interval[0] < 0.5 < found.interval[1]
    assert found.matrix.tolist() == [[0, 3, 1], [0, 0, 0], [0, 1, 0]]
    assert "2 of 4 (50%" in str(found)
    assert "from “a” to “b” (3 inputs)" in str(found)


def test_the_alternate_class_of_a_network_with_three_classes() -> None:
    net = three_classes()
    X = np.array([[0.2, 0.0], [-0.3, 0.0], [0.2, 3.1], [2.0, 4.9]])
    flips = fo.closest_flip_points(net, X)
    found = fo.explain.alternate(flips, [1, 1, 2, 2])
    assert flips.classes.tolist() == [[0, 1], [1, 0], [0, 2], [0, 2]]
    assert found.row.tolist() == [0, 2, 3]
    assert found.right.all()


def test_no_mistakes_and_missing_flips_are_said() -> None:
    flips = table(
        [0, 1], [(0, 1), (1, 0)], np.zeros((2, 2)), [1.0, np.nan], [fo.Status.CONVERGED, fo.Status.INFEASIBLE]
    )
    found = fo.explain.alternate(flips, [0, 1])
    assert np.isnan(found.share)
    assert "cannot be said" in str(found)
    assert "1 input without a flip point is left out" in str(found)
    assert fo.explain.alternate(flips[:0], []).matrix.shape == (0, 0)
    assert "No mistakes" in str(fo.explain.alternate(flips[:0], []))
    with pytest.raises(fo.InputError, match="labels: expected all 2 rows or more that the flips are of, found 1"):
        fo.explain.alternate(flips, [0])
    with pytest.raises(fo.InputError, match="labels: expected classes from 0 to 0 or names among a, found 1"):
        fo.explain.alternate(flips, [0, 1], classes=("a",))
    with pytest.raises(fo.InputError, match="classes: expected 2 names or more, found 1"):
        fo.explain.alternate(flips, ["a", "a"], classes=("a",))


def test_a_float32_network_is_taken_as_it_is() -> None:
    net = linear(np.array([1.0, 0.0]), dtype=np.float32)
    X = np.array([[0.1, 0.0], [1.0, 0.0]])
    assert fo.explain.trust(fo.closest_flip_points(net, X), net, X, [1, 0]).distance.auc == 1
