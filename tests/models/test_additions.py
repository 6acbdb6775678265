from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import flipopt as fo
from data_prep.datasets import Dataset, Split
from flipopt.common.files import read_npz, write_npz
from models import __main__ as program
from models import training
from models.additions import only_rows, with_points
from models.recipes import RECIPES
from models.training import Batches, prepare
from tests.explain.tables import table

TOY = replace(RECIPES["mnist-net1"], half=None, features=20, hidden=(20, 10), epochs=2, batch=16)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """The shipped digits in place of the whole of MNIST."""
    shipped = fo.load_shipped("mnist-net1")
    dataset = Dataset(
        "toy",
        Split(shipped.images[:150], shipped.labels[:150]),
        Split(shipped.images[150:], shipped.labels[150:]),
        shipped.classes,
    )
    monkeypatch.setattr(training, "load_dataset", lambda name: dataset)
    monkeypatch.setitem(program.RECIPES, "mnist-net1", TOY)
    return dataset


def flips_of(toy: Dataset, n: int) -> fo.FlipTable:
    """As if of a network that takes the first ten digits for the next one."""
    rng, labels = np.random.default_rng(0), toy.train.labels
    predicted = np.where(np.arange(150) < 10, (labels + 1) % 10, labels)
    classes = np.column_stack([predicted, (predicted + 1) % 10])
    return table(np.arange(150), classes, rng.standard_normal((150, n)), rng.uniform(size=150))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(program.main, ["train", "mnist-net1", "--device", "cpu", *arguments])
    return result.exit_code, " ".join(result.output.split())


def test_a_network_is_trained_on_a_subset_and_with_further_points(toy: Dataset, tmp_path: Path) -> None:
    flips = flips_of(toy, 20)
    files = fo.explain.influence(flips, toy.train.labels, share=0.4).save(tmp_path)
    fo.explain.synthetic(flips, toy.train.labels).save(tmp_path / "extra.npz")
    out = tmp_path / "out"
    code, output = run(
        "--out", str(out), "--epochs", "3", "--subset", str(files[0]), "--extra", str(tmp_path / "extra.npz")
    )
    assert code == 0, output
    facts = json.loads((out / "mnist-net1.json").read_text())
    assert facts["changes"]["subset"]["rows"] == 60
    assert facts["changes"]["extra"]["points"] == 10
    options = "--seed 0 --epochs 3 --subset nearest.npz --extra extra.npz"
    assert facts["command"] == f"python -m models train mnist-net1 {options}"
    assert facts["recipe"]["epochs"] == 3
    assert facts["images"] == {"train": 150, "test": 50}  # accuracies are those of everything
    assert not list(out.glob("*.checkpoint"))


def test_what_is_trained_on_are_those_rows_and_points(toy: Dataset, tmp_path: Path) -> None:
    data, rows = prepare(TOY), np.arange(3, 150, 7)
    write_npz(tmp_path / "rows.npz", {"rows": rows, "labels": toy.train.labels[rows], "of": np.array(150)})
    X = np.random.default_rng(0).standard_normal((5, 20))
    write_npz(tmp_path / "extra.npz", {"X": X, "labels": np.array([1, 2, 3, 4, 9])})
    some = with_points(only_rows(data, TOY, tmp_path / "rows.npz"), tmp_path / "extra.npz")
    batches = Batches(some, 0, torch.device("cpu"))
    inputs, labels = batches(torch.arange(len(rows) + 5))
    np.testing.assert_array_equal(labels, [*toy.train.labels[rows], 1, 2, 3, 4, 9])
    np.testing.assert_allclose(inputs, [*data.inputs(toy.train.images[rows]), *X], rtol=1e-6, atol=1e-7)
    assert len(some.reports["train"].labels) == 150


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"of": np.array(151)}, "expected different rows of the 150 that mnist-net1 is trained on"),
        ({"rows": np.zeros(30, dtype=int)}, "expected different rows"),
        ({"rows": np.arange(30) / 2}, "expected different rows"),
        ({"rows": np.arange(130, 160)}, "expected 16 rows or more from 0 to 149, found 30 from 130 to 159"),
        ({"rows": np.arange(5)}, "expected 16 rows or more from 0 to 149, found 5 from 0 to 4"),
        ({"labels": np.zeros(30, dtype=int)}, "expected rows of the training data of mnist-net1, found other labels"),
    ],
)
def test_a_subset_of_something_else_is_refused(toy: Dataset, tmp_path: Path, change: dict, message: str) -> None:
    arrays = {"rows": np.arange(30), "labels": toy.train.labels[:30], "of": np.array(150)}
    write_npz(tmp_path / "rows.npz", {**arrays, **change})
    with pytest.raises(fo.FileFormatError, match=message):
        only_rows(prepare(TOY), TOY, tmp_path / "rows.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((3, 19))}, "expected X of shape .points, 20., found float64 .3, 19"),
        ({"labels": np.zeros(2, dtype=int)}, "expected a class for each point of X, found int64 .2"),
        ({"labels": np.array([0, 1, 10])}, "expected classes from 0 to 9, found 3 from 0 to 10"),
    ],
)
def test_points_of_something_else_are_refused(toy: Dataset, tmp_path: Path, change: dict, message: str) -> None:
    write_npz(tmp_path / "extra.npz", {"X": np.zeros((3, 20)), "labels": np.zeros(3, dtype=int), **change})
    with pytest.raises(fo.FileFormatError, match=message):
        with_points(prepare(TOY), tmp_path / "extra.npz")


def test_images_are_moved_and_further_points_are_not(toy: Dataset) -> None:
    data, X = prepare(TOY), np.random.default_rng(0).standard_normal((5, 20))
    batches = Batches(replace(data, extra=(X, np.arange(5))), 2, torch.device("cpu"))
    inputs, labels = batches(torch.tensor([150, 3, 154, 151]))
    np.testing.assert_array_equal(labels, [0, toy.train.labels[3], 4, 1])
    np.testing.assert_allclose(inputs[[0, 2, 3]], X[[0, 4, 1]], rtol=1e-6)
    moved, _ = batches(torch.full((50,), 3))
    still = data.inputs(toy.train.images[3:4])[0]
    assert 1 < (np.abs(np.asarray(moved) - still).max(axis=1) > 1e-3).sum() <= 50


def test_settings_are_chosen_without_the_test_set(toy: Dataset) -> None:
    data = prepare(replace(TOY, validation=0.2))
    assert {name: len(split.labels) for name, split in data.reports.items()} == {"train": 120, "validation": 30}
    np.testing.assert_array_equal(data.train.labels, toy.train.labels[:120])
    np.testing.assert_array_equal(data.reports["validation"].images, toy.train.images[120:])


def test_inputs_are_those_that_are_trained_on(toy: Dataset, tmp_path: Path) -> None:
    command = ["inputs", "mnist-net1", "--out", str(tmp_path / "train.npz"), "--rows", "40"]
    result = CliRunner().invoke(program.main, command)
    assert result.exit_code == 0, result.output
    assert "40 of 150 rows of 20 numbers" in result.output
    found = read_npz(tmp_path / "train.npz")
    np.testing.assert_allclose(found["X"], prepare(TOY).inputs(toy.train.images[:40]), atol=1e-6)
    np.testing.assert_array_equal(found["labels"], toy.train.labels)


def test_a_missing_file_is_named(toy: Dataset, tmp_path: Path) -> None:
    code, output = run("--out", str(tmp_path / "out"), "--subset", str(tmp_path / "none.npz"))
    assert code == 1
    assert "none.npz: no such file" in output
