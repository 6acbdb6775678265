from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.common.files import read_npz
from tests.explain.tables import table


def hundred() -> tuple[fo.FlipTable, np.ndarray]:
    """Rows 0 to 99 in a random order of distances; every tenth is a mistake."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 100)
    predicted = np.where(np.arange(100) % 10 == 0, (labels + 1) % 3, labels)
    classes = np.column_stack([predicted, (predicted + 1) % 3])
    return table(np.arange(100), classes, rng.standard_normal((100, 4)), rng.permutation(100) + 1.0), labels


def test_subsets_by_distance() -> None:
    flips, labels = hundred()
    found = fo.explain.influence(flips, labels, share=0.2)
    assert (flips.distance[found.nearest] <= 20).all()
    assert (flips.distance[found.farthest] >= 81).all()
    assert len(found.nearest) == len(found.farthest) == len(found.random) == len(np.unique(found.random)) == 20
    assert found.mistakes.tolist() == list(range(0, 100, 10))
    assert np.bincount(labels[found.random]).tolist() == np.bincount(labels[found.nearest]).tolist()
    assert found.reach == 20
    np.testing.assert_array_equal(found.random, fo.explain.influence(flips, labels, share=0.2).random)
    assert found.random.tolist() != fo.explain.influence(flips, labels, share=0.2, seed=1).random.tolist()
    assert "The 20 inputs nearest to a flip (20% of 100) are within 20 of one" in str(found)
    assert len(fo.explain.influence(flips, labels, radius=7.5).nearest) == 7


def test_files_of_subsets(tmp_path: Path) -> None:
    flips, labels = hundred()
    labels = np.where(flips.classes[:, 0] != labels, flips.classes[:, 0], labels)  # no mistakes
    found = fo.explain.influence(flips, labels)
    written = found.save(tmp_path / "new" / "subsets")
    assert [path.name for path in written] == ["nearest.npz", "farthest.npz", "random.npz"]
    arrays = read_npz(written[0])
    np.testing.assert_array_equal(arrays["rows"], found.nearest)
    np.testing.assert_array_equal(arrays["labels"], labels[found.nearest])
    assert arrays["of"] == 100
    (tmp_path / "file").write_text("")
    with pytest.raises(fo.StorageError, match="file: cannot be made"):
        found.save(tmp_path / "file")


def test_flips_as_training_points(tmp_path: Path) -> None:
    flips, labels = hundred()
    corrected = fo.explain.synthetic(flips, labels)
    assert corrected.row.tolist() == list(range(0, 100, 10))
    np.testing.assert_array_equal(corrected.X, flips.x[::10])
    np.testing.assert_array_equal(corrected.labels, labels[::10])
    kept = fo.explain.synthetic(flips, labels, label="kept")
    np.testing.assert_array_equal(kept.labels, flips.classes[::10, 0])
    assert len(fo.explain.synthetic(flips, labels, which="right").X) == 90
    assert len(fo.explain.synthetic(flips, labels, which="all").X) == 100
    assert "10 flip points as training points" in str(corrected)
    corrected.save(tmp_path / "extra.npz")
    np.testing.assert_array_equal(read_npz(tmp_path / "extra.npz")["labels"], corrected.labels)


def test_no_flips_no_mistakes_and_bad_arguments() -> None:
    flips, labels = hundred()
    nothing = fo.explain.influence(flips[:0], labels)
    assert len(nothing.nearest) == len(nothing.random) == len(nothing.mistakes) == 0
    assert "0 inputs" in str(nothing)
    assert len(fo.explain.synthetic(flips[:0], labels).X) == 0
    status = np.array([fo.Status.INFEASIBLE, *flips.status[1:]], dtype=object)
    lost = table(flips.row, flips.classes, flips.x, flips.distance, status)
    assert fo.explain.influence(lost, labels, share=1.0).without_flip == 1
    assert 0 not in fo.explain.influence(lost, labels, share=1.0).nearest
    assert "1 input without a flip point is left out" in str(fo.explain.synthetic(lost, labels))
    with pytest.raises(fo.InputError, match="share: expected a number above 0 and up to 1, found 0"):
        fo.explain.influence(flips, labels, share=0)
    with pytest.raises(fo.InputError, match="labels: expected all 100 rows or more that the flips are of, found 99"):
        fo.explain.influence(flips, labels[:99])
    with pytest.raises(fo.InputError, match="which: expected one of mistakes, right, all, found 'most'"):
        fo.explain.synthetic(flips, labels, which="most")
    with pytest.raises(fo.InputError, match="label: expected one of corrected, kept, found 'true'"):
        fo.explain.synthetic(flips, labels, label="true")


def test_labels_may_be_names_that_the_network_knows() -> None:
    flips, labels = hundred()
    net = fo.DenseNetwork([np.eye(4)[:, :3]], [np.zeros(3)])
    net.class_names = ("a", "b", "c")
    names = np.array(net.class_names)[labels]
    np.testing.assert_array_equal(fo.explain.synthetic(flips, names, net=net).labels, labels[::10])
    assert fo.explain.influence(flips, names, net=net).mistakes.tolist() == list(range(0, 100, 10))
