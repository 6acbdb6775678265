"""DeepDIG as a whole: every source has a record, runs are gone on with, maps that fail cost the others nothing."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.borderline import (
    Architecture,
    DeepDig,
    DeepDigOptions,
    Instances,
    Maps,
    MapStatus,
    Outcome,
    Refinement,
    Tradeoff,
    Training,
    carry,
    deepdig,
    tradeoff,
)
from flipopt.borderline.carrying import as_samples
from flipopt.borderline.deepdig import Components
from flipopt.borderline.learning import Lesson, learn
from flipopt.networks.onnx_network import OnnxNetwork
from tests.borderline.cases import pictures

pytest.importorskip("torch")

NET, X, LABELS = pictures()
FEW = DeepDigOptions(alpha=3.0, steps=50, batch=16, maps_at_once=2, tries=1)


@cache
def dug() -> DeepDig:
    return deepdig(NET, X, LABELS, options=FEW)


def same(one: DeepDig, other: DeepDig, but: tuple[str, ...] = ("seconds",)) -> None:
    for name in Instances.names():
        np.testing.assert_array_equal(getattr(one.instances, name), getattr(other.instances, name))
    for name in set(Maps.names()) - set(but):
        np.testing.assert_array_equal(getattr(one.maps, name), getattr(other.maps, name))
    np.testing.assert_array_equal(one.seeds, other.seeds)


def test_every_source_has_a_record() -> None:
    found = dug()
    assert len(found.instances) == 6 * 50
    assert found.instances.success_rate > 0.9
    assert found.instances.yield_rate > 0.5
    some = found.instances.between(2, 0)
    assert some.row.tolist() == np.flatnonzero(LABELS == 2).tolist()
    lost = [status in (Outcome.LOST_I, Outcome.LOST_II, Outcome.NOT_S) for status in some.status]
    assert some.searched.tolist() == [not gone for gone in lost]
    first, second = (found.autoencoders[2, 0, component, 0] for component in (1, 2))
    T = first.apply(X[some.row])
    S = second.apply(T)
    there = (NET.predict(X[some.row]) == 2) & (NET.predict(T) == 0) & (NET.predict(S) == 2)
    assert some.searched.tolist() == there.tolist()
    good = some.success
    alpha = some.alpha[good, None]
    np.testing.assert_allclose(some.x[good], (1 - alpha) * S[good] + alpha * T[good], atol=1e-6)
    np.testing.assert_allclose(some.distance[good], np.linalg.norm(some.x[good] - X[some.row[good]], axis=1))
    z = NET.probabilities(some.x[good])
    assert np.abs(z[:, 2] - z[:, 0]).max() <= 1e-4


def test_maps_say_what_they_have_learned() -> None:
    maps = dug().maps
    both_ways = [(a, b) for a in range(3) for b in range(3) if a != b]
    assert sorted(map(tuple, maps.classes.tolist())) == sorted(both_ways * 2)
    k = int(np.flatnonzero((maps.classes == (2, 0)).all(axis=1) & (maps.component == 1))[0])
    inputs = X[LABELS == 2]
    Y = dug().autoencoders[2, 0, 1, 0].apply(inputs)
    assert maps.inputs[k] == 50
    assert maps.accuracy_all[k] == (NET.predict(Y) == 2).mean()
    assert maps.success_all[k] == (NET.predict(Y) == 0)[NET.predict(inputs) == 2].mean()
    assert maps.error_all[k] == pytest.approx(((Y - inputs) ** 2).sum(axis=1).mean(), rel=1e-5)
    assert (maps.collapsed == ~(maps.error_all < maps.variance)).all()
    assert (maps.tries == 1).all()
    assert (maps.steps == 50).all()
    assert "6 maps of component I: success" in str(dug())
    frame = maps.to_pandas()
    assert list(frame.columns[:4]) == ["i", "j", "component", "seed"]
    assert set(frame["status"]) <= {status.name for status in MapStatus}


def test_seeds_are_maps_of_their_own() -> None:
    options = replace(FEW, steps=20, seeds=(0, 7), count=10)
    both, one = (deepdig(NET, X, LABELS, [(1, 0)], replace(options, seeds=seeds)) for seeds in ((0, 7), (7,)))
    assert len(both.instances) == 40
    assert sorted(both.autoencoders) == sorted((s, 1 - s, c, seed) for s in (0, 1) for c in (1, 2) for seed in (0, 7))
    alone = both.of(7)
    assert alone.instances.row.tolist() == one.instances.row.tolist()
    np.testing.assert_allclose(alone.maps.error, one.maps.error[np.argsort(one.maps.component)], rtol=1e-2)
    assert not np.allclose(both.of(0).maps.error, alone.maps.error)
    with pytest.raises(fo.InputError, match=r"seed: expected one of \[0, 7\], found 3"):
        both.of(3)


def test_a_run_that_was_stopped_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, plain = [], Components.__call__

    def stopped(self: Components, part: range) -> object:
        calls.append(part)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(self, part)

    monkeypatch.setenv("FLIPOPT_THREADS", "1")
    monkeypatch.setattr("flipopt.runs.executors.cores", lambda: 1)
    monkeypatch.setattr(Components, "__call__", stopped)
    with pytest.raises(KeyboardInterrupt):
        deepdig(NET, X, LABELS, options=FEW, run=tmp_path)
    assert fo.runs.open(tmp_path).done == 2
    again = deepdig(NET, X, LABELS, options=FEW, run=tmp_path)
    assert len(calls) == 4
    same(again, dug())
    same(deepdig(NET, X, LABELS, options=FEW, run=tmp_path), again, but=())
    assert len(calls) == 4
    fewer = deepdig(NET, X, LABELS, options=replace(FEW, count=5), run=tmp_path)
    assert (len(fewer.instances), len(calls)) == (30, 4)
    with pytest.raises(fo.StorageError, match="options is"):
        deepdig(NET, X, LABELS, options=replace(FEW, alpha=1.0), run=tmp_path)


def test_another_process_trains_the_same() -> None:
    samples = as_samples(NET, X, LABELS, None)
    task = Components(samples, np.array([[0, 1, 0], [1, 0, 0]]), replace(FEW, steps=5))
    _ = task.logits
    there = pickle.loads(pickle.dumps(task))(range(2))
    assert there.weights == task(range(2)).weights


def test_a_folder_holds_it_and_torch_is_not_needed(tmp_path: Path) -> None:
    dug().save(tmp_path / "maps")
    same(DeepDig.load(tmp_path / "maps", NET, X, LABELS), dug(), but=())
    same(carry(NET, dug(), X, LABELS), dug(), but=())
    NET.save(tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", X=X, labels=LABELS)
    script = """
import sys
sys.modules["torch"] = None
import numpy as np, flipopt as fo
data = np.load("data.npz")
found = fo.borderline.carry(fo.load_network("net.onnx"), "maps", data["X"], data["labels"], [(0, 1)])
found.instances.save("instances.parquet")
print(found.instances.counts)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = Instances.join([dug().instances.between(0, 1), dug().instances.between(1, 0)])
    assert done.stdout.strip() == str(here.counts)


def test_autoencoders_of_others_are_carried(tmp_path: Path) -> None:
    maps = {(s, t, c): dug().autoencoders[s, t, c, 0] for s, t in ((0, 1), (1, 0)) for c in (1, 2)}
    maps[0, 1, 2].save(tmp_path / "back.onnx")
    found = carry(NET, maps | {(0, 1, 2): tmp_path / "back.onnx"}, X, LABELS)
    one = dug().instances.between(0, 1)
    np.testing.assert_array_equal(found.instances.between(0, 1).x, one.x)
    assert len(found.maps) == 0
    half = carry(NET, {(0, 1, 1): maps[0, 1, 1]}, X, LABELS, count=20, refinement=Refinement(beta=1e-3))
    assert set(half.instances.counts) <= {"LOST_I", "LOST_II", "NOT_S"}
    for arguments, words in [
        ({"maps": 3}, "maps: expected a folder, a DeepDig or a mapping, found int"),
        ({"maps": {}}, "maps: expected classes with samples, found no autoencoders"),
        ({"maps": {(0, 1): 2}}, r"maps: expected keys \(s, t, component\)"),
        ({"maps": {(0, 1, 3): 2}}, "maps: expected component 1 or 2, found 3"),
        ({"maps": {(0, 1, 1): 2}}, "maps: expected autoencoders of 16 numbers"),
        ({"maps": {(0, 9, 1): maps[0, 1, 1]}}, r"maps: expected two classes below 3, found \(0, 9\)"),
        ({"pairs": [(0, 2)]}, r"pairs: expected pairs that there are autoencoders of, found \(0, 2\)"),
        ({"refinement": 3}, "refinement: expected Refinement"),
        ({"count": 0}, "count: expected a whole number >= 1"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            carry(NET, **({"maps": maps, "X": X, "labels": LABELS} | arguments))


def test_a_manifest_of_anyone_is_checked(tmp_path: Path) -> None:
    dug().save(tmp_path)
    path = tmp_path / "deepdig.json"
    about = json.loads(path.read_text())
    record = about["maps"][0]
    for change in (
        {"format": 2},
        {"keys": [[0, 1]]},
        {"keys": [[0, 1, 1, "../x"]]},
        {"keys": [[0, 1, 1, 5]]},
        {"maps": [record | {"status": "GOOD"}]},
        {"maps": [record | {"i": -1}]},
        {"maps": [record | {"component": 3}]},
        {"maps": [record | {"error": "x"}]},
        {"maps": 3},
    ):
        path.write_text(json.dumps(about | change))
        with pytest.raises(fo.FileFormatError):
            carry(NET, tmp_path, X, LABELS)
    path.write_text("[")
    with pytest.raises(fo.FileFormatError, match="not the manifest of autoencoders"):
        carry(NET, tmp_path, X, LABELS)


def test_a_map_to_one_image_has_collapsed_and_is_tried_again() -> None:
    architecture, inputs = Architecture.of(NET), X[LABELS == 0]
    lessons = [Lesson.split((0, t), 1, 1.0, 0, inputs, np.ones(50, dtype=bool), 0.8) for t in (1, 2)]
    image = np.clip(inputs.mean(axis=0), 1e-3, 1 - 1e-3)
    constant = [np.zeros(shape, dtype=np.float32) for shape in architecture.shapes]
    constant[-1] = np.log(image / (1 - image)) + 0.05
    sound = [np.eye(*shape) if len(shape) == 2 else np.zeros(shape) for shape in architecture.shapes]
    sound[-2], sound[-1] = 4 * sound[-2], sound[-1] - 2  # the logistic function of 4 (x - 1/2) is x, nearly
    tried = []

    def train(some: list[Lesson]) -> list[list[np.ndarray]]:
        tried.append([(lesson.target, lesson.seed) for lesson in some])
        return [constant if lesson.target == 1 or lesson.attempt == 0 else sound for lesson in some]

    lost, found = learn(NET, architecture, lessons, train, tries=3)
    assert lost is not None
    assert found is not None
    assert (lost.collapsed, lost.tries, found.collapsed, found.tries) == (True, 3, False, 2)
    assert [[target for target, _ in some] for some in tried] == [[1, 2], [1, 2], [1]]
    assert len({seed for some in tried for _, seed in some}) == 5
    broken = learn(NET, architecture, lessons, lambda some: [[np.full(p.shape, np.nan) for p in sound]] * len(some), 1)
    assert [one is not None and one.collapsed for one in broken] == [True, True]


def test_a_map_that_leads_nowhere_costs_the_others_nothing() -> None:
    found = deepdig(NET, X, LABELS, [(0, 1)], replace(FEW, alpha=0.0, steps=20))
    assert [status.name for status in found.maps.status[2:]] == ["TOO_FEW", "TOO_FEW"]
    assert found.maps.message[3] == "not trained: fewer than two inputs to learn from"
    assert set(found.instances.counts) <= {"LOST_I", "NOT_S"}
    assert np.isnan(found.instances.success_rate)
    assert found.instances.yield_rate == 0.0
    assert sorted(key[2] for key in found.autoencoders) == [1, 1]


def test_rows_that_are_not_finite_have_their_status() -> None:
    bad = X.astype(np.float64)
    bad[[0, 4], 3] = np.nan, np.inf
    found = deepdig(NET, bad, LABELS, [(0, 1)], replace(FEW, steps=20))
    broken = found.instances.row[found.instances.status == Outcome.NOT_FINITE]
    assert broken.tolist() == [0, 4]
    assert found.maps.inputs[:2].tolist() == [49, 49]


def test_alpha_is_chosen_by_numbers(tmp_path: Path) -> None:
    found = tradeoff(NET, X, LABELS, 0, 1, (0.0, 1.0, 10.0), training=Training(steps=50, batch=16))
    assert found.alpha.tolist() == [0.0, 1.0, 10.0]
    assert found.success[0] == 0.0 < found.success[2]
    assert (found.variance == found.variance[0]).all()
    found.plot(tmp_path / "tradeoff.png")
    assert (tmp_path / "tradeoff.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    made = Tradeoff(
        alpha=np.array([0.1, 0.5, 1.0, 9.0]),
        success=np.array([0.5, 0.985, 0.99, 1.0]),
        accuracy=np.array([0.5, 0.0, 0.0, 0.0]),
        error=np.array([1.0, 2.0, 3.0, 9.0]),
        variance=np.full(4, 8.0),
        collapsed=np.array([False, False, False, True]),
        classes_of=(0, 1),
        seed=0,
    )
    assert made.chosen == 1
    assert "alpha 0.5 leads 98.5% of the samples over" in str(made)
    assert "Collapsed: alpha 9." in str(made)
    assert made.take([0, 3]).chosen == 0
    none = made.take([3])
    assert none.chosen is None
    assert str(none) == "From class 0 to class 1 every map has collapsed."
    none.plot(tmp_path / "none.pdf")
    with pytest.raises(fo.InputError, match="tradeoff: expected at least one alpha"):
        made.take([]).plot(tmp_path / "nothing.png")


def test_bad_arguments_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, words in [
        ({"pairs": [(1, 1)]}, "pairs: expected two different classes, found class 1 twice"),
        ({"labels": LABELS % 2, "pairs": [(0, 2)]}, "pairs: expected classes with samples"),
        ({"labels": LABELS[1:]}, "labels: expected 150 classes, one a row"),
        ({"labels": LABELS + 1}, "labels: expected classes from 0 to 2, found 3"),
        ({"X": 2 * X}, "X: expected numbers from 0 to 1, as the autoencoders end in a sigmoid"),
        ({"X": X[:, 1:]}, r"X: expected shape \(16,\)"),
        ({"options": Training()}, "options: expected DeepDigOptions, found Training"),
        ({"refinement": 3}, "refinement: expected Refinement, found int"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            deepdig(NET, **({"X": X, "labels": LABELS, "options": FEW} | arguments))
    for options, words in [
        ({"loss": "mine"}, "loss: expected one of literal, authors"),
        ({"alpha": -1}, "alpha: expected a number >= 0"),
        ({"train_share": 1.0}, "train_share: expected a number between 0 and 1"),
        ({"steps": 0}, "steps: expected a whole number >= 1"),
        ({"seeds": (1, 1)}, "seeds: expected different whole numbers"),
        ({"seeds": 1}, "seeds: expected a sequence"),
        ({"count": 0}, "count: expected a whole number >= 1"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            DeepDigOptions(**options)
    for s, t, alphas, words in [
        (0, 0, (1.0,), "t: expected another class than s"),
        (0, 1, (), "found no alphas"),
        (0, 1, (-1.0,), "alphas: expected a number >= 0"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            tradeoff(NET, X, LABELS, s, t, alphas)
    NET.save(tmp_path / "net.onnx")
    monkeypatch.setattr("flipopt.networks.onnx_network.has_torch", lambda: False)
    with pytest.raises(fo.DerivativeError, match="torch"):
        deepdig(OnnxNetwork(tmp_path / "net.onnx"), X, LABELS, [(0, 1)], FEW)
