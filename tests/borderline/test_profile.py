"""All pairs of a model: what a row is made of, runs that are gone on with, files, pictures."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt import report
from flipopt.borderline import Measuring, Profile, closest, epbs, farther, idc, profile, rpbs
from flipopt.borderline.boundary import Boundaries
from flipopt.borderline.samples import Samples
from flipopt.networks.onnx_network import OnnxNetwork
from tests.borderline.cases import blobs

NET, X, LABELS = blobs()
FEW = Measuring(pairs=20, flips=6, starts=5, k=4, m=10)


@cache
def the_profile() -> Profile:
    return profile(NET, X, LABELS, options=FEW)


def test_a_row_is_what_the_single_calls_say() -> None:
    found = the_profile()
    assert found.classes.tolist() == [[0, 1], [1, 0], [0, 2], [2, 0], [1, 2], [2, 1]]
    k, (s, t) = 3, (2, 0)
    pairs, near = rpbs(NET, X, LABELS, s, t, 20), epbs(NET, X, LABELS, s, t, 20)
    best = closest(NET, X, LABELS, s, t, 6)
    assert found.sources[k] == (s == LABELS).sum()
    assert (found.rpbs_success[k], found.rpbs_yield[k]) == (pairs.success_rate, pairs.yield_rate)
    assert found.epbs_distance[k] == np.median(near.found.distance)
    assert (found.closest_success[k], found.closest_distance[k]) == (best.success_rate, np.median(best.found.distance))
    assert found.epbs_farther[k] == farther(near, best).median
    lines = idc(NET, near, starts=5, k=4, m=10)
    assert (found.idc[k], found.idc_low[k], found.idc_high[k]) == (lines.value, *lines.interval)
    assert found.points[k] == near.success.sum()
    evaluations = sum(int(some.evaluations.sum()) for some in (pairs, near, best))
    assert found.evaluations[k] == evaluations + 5 * 4 * 10
    assert found.edc1_test[2] == found.edc1_test[3]
    assert found.own_borderline.max() < 1e-3
    assert np.isnan(found.given_success).all()
    assert set(found.note) == {""}


def test_pairs_do_not_depend_on_each_other() -> None:
    whole, one = the_profile(), profile(NET, X, LABELS, [(2, 1), (1, 2)], options=FEW)
    assert one.classes.tolist() == [[1, 2], [2, 1]]
    for name in Profile.measures():
        np.testing.assert_array_equal(getattr(one, name), getattr(whole, name)[4:])


def test_matrices_fragile_pairs_and_words() -> None:
    found = the_profile()
    matrix = found.matrix("closest_distance")
    assert matrix.shape == (3, 3)
    assert np.isnan(np.diag(matrix)).all()
    assert matrix[2, 0] == found.closest_distance[3]
    least = found.most_fragile(2)
    assert least.closest_distance.tolist() == np.sort(found.closest_distance)[:2].tolist()
    assert found.most_fragile(1, by="idc", largest=True).idc[0] == found.idc.max()
    unknown = replace(found, closest_distance=np.full(6, np.nan))
    assert unknown.most_fragile(1).epbs_distance[0] == found.epbs_distance.min()
    (s, t) = least.classes[0]
    assert f"The shortest ways lead from “{s}” to “{t}”" in str(found)
    assert str(found).startswith("6 ordered pairs of 3 classes. The boundary is reached by random pairs of samples for")
    both = found.correlation("idc", "closest_distance")
    assert both.n == 3
    with pytest.raises(fo.InputError, match="name: expected one of sources, rpbs_success"):
        found.matrix("note")


def test_a_run_is_gone_on_with(tmp_path: Path) -> None:
    plain, kept = the_profile(), profile(NET, X, LABELS, options=FEW, run=tmp_path)
    chunks = sorted(tmp_path.glob("*.parquet"))
    assert len(chunks) == fo.runs.open(tmp_path).total == 3
    chunks[1].unlink()
    again = profile(NET, X, LABELS, options=FEW, run=tmp_path)
    for other in (kept, again):
        for name in Profile.names():
            np.testing.assert_array_equal(getattr(other, name), getattr(plain, name))
    with pytest.raises(fo.StorageError, match="X is"):
        profile(NET, 0.99 * X, LABELS, options=FEW, run=tmp_path)
    with pytest.raises(fo.StorageError, match="options is"):
        profile(NET, X, LABELS, options=replace(FEW, seed=1), run=tmp_path)


def test_another_process_finds_the_same() -> None:
    samples = Samples.of(NET, X, LABELS)
    task = Boundaries(samples, None, None, FEW, np.array([[0, 1]]))
    task.prepare()
    again = pickle.loads(pickle.dumps(task))
    assert "embedding" in vars(again.samples)
    here, there = task(range(1)), again(range(1))
    for name in Profile.names():
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_instances_of_another_method_are_measured() -> None:
    given = fo.borderline.Instances.join([rpbs(NET, X, LABELS, 0, 1), rpbs(NET, X, LABELS, 1, 0)])
    found = profile(NET, X, LABELS, [(0, 1)], given, options=FEW)
    own = given.between(0, 1)
    assert (found.given_success[0], found.given_yield[0]) == (own.success_rate, own.yield_rate)
    assert found.points[0] == own.success.sum()
    assert found.idc[0] == idc(NET, own, starts=5, k=4, m=10).value
    assert found.given_farther[0] > 1
    none = profile(NET, X, LABELS, [(0, 2)], given, options=FEW)
    assert none.points.tolist() == [0, 0]
    assert none.note.tolist() == ["no IDC: 0 borderline instances"] * 2


def test_held_out_samples_are_the_test() -> None:
    found = profile(NET, X[:90], LABELS[:90], [(0, 1)], test=X[90:], test_labels=LABELS[90:], options=FEW)
    near = [epbs(NET, X[:90], LABELS[:90], s, t, 20) for s, t in ((0, 1), (1, 0))]
    direct = fo.borderline.edc(NET, near, X[:90], LABELS[:90], 0, 1, X[90:], LABELS[90:])
    assert found.edc1_test[0] == direct.edc1_test
    assert found.edc2_borderline[1] == direct.edc2_borderline


def test_a_network_without_derivatives_has_no_closest_flips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    NET.save(tmp_path / "net.onnx")
    monkeypatch.setattr("flipopt.networks.onnx_network.has_torch", lambda: False)
    found = profile(OnnxNetwork(tmp_path / "net.onnx"), X, LABELS, [(0, 1)], options=FEW)
    plain = profile(NET, X, LABELS, [(0, 1)], options=FEW)
    assert np.isnan(found.closest_success).all()
    assert "no closest flip points: " in found.note[0]
    assert "torch" in found.note[0]
    assert found.epbs_success.tolist() == plain.epbs_success.tolist()
    assert found.idc.tolist() == pytest.approx(plain.idc.tolist(), abs=0.02)
    assert found.own_borderline[0] < 1e-3


def test_a_file_holds_it(tmp_path: Path) -> None:
    found = the_profile()
    found.save(tmp_path / "profile.parquet")
    again = Profile.load(tmp_path / "profile.parquet", ("a", "b", "c"))
    for name in Profile.names():
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert again.name_of(2) == "c"
    assert again.take([0]).class_names == ("a", "b", "c")
    with pytest.raises(fo.InputError, match="class_names: expected 3 names or more, found 1"):
        Profile.load(tmp_path / "profile.parquet", ("a",))
    rpbs(NET, X, LABELS, 0, 1).save(tmp_path / "other.parquet")
    with pytest.raises(fo.FileFormatError, match="expected the columns of a profile, found none called sources"):
        Profile.load(tmp_path / "other.parquet")


def test_bad_arguments_are_named() -> None:
    for arguments, words in [
        ({"pairs": "some"}, "pairs: expected one of all, found 'some'"),
        ({"pairs": []}, "pairs: expected at least one pair of classes, found none"),
        ({"pairs": [(0, 0)]}, "pairs: expected two different classes, found class 0 twice"),
        ({"pairs": [(0, 1, 2)]}, "pairs: expected two classes each, found 3"),
        ({"pairs": [(0, 5)]}, "pairs: expected a class from 0 to 2, found 5"),
        ({"pairs": 3}, "pairs: expected a sequence of pairs of classes"),
        ({"options": 3}, "options: expected Measuring, found int"),
        ({"instances": 3}, "instances: expected Instances, found int"),
        (
            {"labels": np.zeros(120, dtype=int)},
            "X: expected samples of two classes that the network puts there, found 1",
        ),
        ({"labels": LABELS % 2, "pairs": [(0, 2)]}, "pairs: expected classes with samples that the network puts there"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            profile(NET, X, **({"labels": LABELS, "options": FEW} | arguments))
    for options, words in [
        ({"on": "given"}, "on: expected one of rpbs, epbs, closest, found 'given'"),
        ({"on": "closest", "flips": 0}, "flips: expected a whole number >= 1 to measure closest"),
        ({"pairs": 0}, "pairs: expected a whole number >= 1"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            Measuring(**options)


def test_pictures(tmp_path: Path) -> None:
    found, near = the_profile(), epbs(NET, X, LABELS, 0, 1)
    pictures = {
        "profile": lambda path: found.plot(path),
        "one": lambda path: report.draw_profile(path, found, ["third"]),
        "embedding": lambda path: report.draw_embedding(path, NET, X, LABELS, near, X[:5], ("a", "b", "c")),
        "instances": lambda path: report.draw_instances(path, near, X, (1, 2)),
        "methods": lambda path: report.draw_instances(
            path, {"near": near, "closest": closest(NET, X, LABELS, 0, 1)}, X, (2, 1), 2
        ),
    }
    for name, draw in pictures.items():
        draw(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", name
    path = tmp_path / "nothing.png"
    with pytest.raises(fo.InputError, match="profile: expected at least one pair of classes with a number"):
        report.draw_profile(path, found.take(slice(0)))
    with pytest.raises(fo.InputError, match="instances: expected at least one borderline instance"):
        report.draw_embedding(path, NET, X, LABELS, near.take(slice(0)))
    with pytest.raises(fo.InputError, match="instances: expected a source with an instance by every method"):
        report.draw_instances(path, near.take(slice(0)), X, (2, 1))
    with pytest.raises(fo.InputError, match="X, shape: expected rows of as many pixels"):
        report.draw_instances(path, near, X, (2, 2))
    assert not path.exists()
