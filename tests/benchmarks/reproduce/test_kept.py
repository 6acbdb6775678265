from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import flipopt as fo
from benchmarks import __main__ as program
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.kept import computed
from benchmarks.reproduce.trainings import Job, data_of
from flipopt.common.errors import FlipoptError
from flipopt.runs.rows import Row
from models.recipes import RECIPES
from tests.benchmarks.reproduce.squares import squared

QUIET = Console(quiet=True)
RESULTS = Path(program.__file__).parent / "results" / "reproduction"


def run(folder: Path, values: list[int], **options: object) -> dict[str, list[Row]]:
    loads = {str(value): (folder, value) for value in values}
    return computed(folder / "rows.csv", ("value", "square"), "squares", loads, squared, QUIET, **options)  # type: ignore[arg-type]


def calls(folder: Path) -> list[int]:
    return sorted(int(line) for line in (folder / "calls").read_text().split())


def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    assert run(tmp_path, [2, 13])["13"][0]["square"] == "169"  # whose process died once
    assert calls(tmp_path) == [2, 13]
    rows = run(tmp_path, [2, 3, 13], again=lambda key: key == "2")
    assert {key: row[0]["square"] for key, row in rows.items()} == {"2": "4", "13": "169", "3": "9"}
    assert calls(tmp_path) == [2, 2, 3, 13]


def test_what_was_done_before_an_error_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FlipoptError, match="less than nothing"):
        run(tmp_path, [5, 6, 7, 8, -1])
    done = [value for value in calls(tmp_path) if value > 0]
    run(tmp_path, [5, 6, 7, 8])
    again = [value for value in calls(tmp_path) if value > 0]
    assert len(again) <= len(done) + 1  # at most the one that was under way


def test_jobs_differ_where_their_networks_would() -> None:
    recipe = RECIPES["mnist-net1"]
    X, labels = np.zeros((3, 100)), np.arange(3)
    jobs = [
        Job(recipe),
        Job(recipe, 1),
        Job(replace(recipe, epochs=3)),
        Job(recipe, rows=np.arange(200)),
        Job(recipe, rows=np.arange(201)),
        Job(recipe, extra=(X, labels)),
        Job(recipe, what="other"),
    ]
    assert len({job.key for job in jobs}) == len(jobs)
    assert Job(replace(recipe, name="other", paper="", published={})).key == Job(recipe).key
    assert Job(recipe, extra=(X + 1e-9, labels)).key == Job(recipe, extra=(X, labels)).key
    assert [job.shipped for job in jobs] == [True, *[False] * 5, True]
    assert not Job(RECIPES["cifar-2500"]).shipped


def test_a_network_is_trained_once_and_found_again(tmp_path: Path) -> None:
    desk = Desk(True, tmp_path / "work", tmp_path, QUIET)
    job = Job(replace(RECIPES["mnist-net1"], hidden=(12, 8), half=None), 3, keep=True)
    (first,) = desk.trained([job])
    (second,) = desk.trained([job])
    assert first.accuracy == second.accuracy
    assert set(first.accuracy) == {"train", "test"}
    assert first.network is not None
    assert second.network is not None
    x = np.ones(100)
    np.testing.assert_array_equal(first.network.logits(x), second.network.logits(x))
    assert isinstance(first.network, fo.DenseNetwork)
    assert not list((tmp_path / "work" / "networks").glob("*.checkpoint"))
    (path,) = (tmp_path / "work" / "networks").glob("*.npz")
    path.unlink()
    (third,) = desk.trained([job])  # its accuracy is known, but the network is wanted
    assert third.network is not None
    assert third.accuracy == first.accuracy


def test_keys_of_trainings_that_are_committed_are_what_they_were() -> None:
    rows = RESULTS.joinpath("trainings.csv").read_text()
    for name, seed in (("mnist-net1", 1), ("cifar-200", 2), ("cifar-2500", 0)):
        assert f"{Job(RECIPES[name], seed).key},{name},{seed},as the recipe says" in rows
    recipe = RECIPES["deepdig-cifar-resnet34"]
    assert Job(recipe).key != Job(replace(recipe, precision="float32")).key


def test_an_image_network_is_kept_as_a_file_for_images(tmp_path: Path) -> None:
    desk = Desk(True, tmp_path / "work", tmp_path, QUIET)
    jobs = [Job(replace(RECIPES[name], epochs=2), 1, keep=True) for name in ("cifar-resnet8", "deepdig-fashion-cnn")]
    for job, outcome in zip(jobs, desk.trained(jobs)):
        assert isinstance(outcome.network, fo.OnnxNetwork)
        data = data_of(job.recipe, quick=True)
        assert len(data.dataset.classes) == 10
        images = data.dataset.test.images / 255
        X = (images.transpose(0, 3, 1, 2) if images.ndim == 4 else images).reshape(len(images), -1)
        right = 100 * np.mean(outcome.network.predict(X) == data.dataset.test.labels)
        assert outcome.accuracy["test"] == pytest.approx(right, abs=1e-3)
    files = sorted(path.suffix for path in (tmp_path / "work" / "networks").iterdir())
    assert files == [".onnx", ".onnx"]


def test_a_committed_network_is_not_trained_again(tmp_path: Path) -> None:
    desk = Desk(True, tmp_path / "work", tmp_path, QUIET)
    (outcome,) = desk.trained([Job(RECIPES["mnist-cnn"], keep=True)])
    assert outcome.accuracy["test"] > 98
    assert isinstance(outcome.network, fo.OnnxNetwork)
    assert not list((tmp_path / "work" / "networks").iterdir())


def test_a_quick_desk_has_shipped_images_and_networks(tmp_path: Path) -> None:
    desk = Desk(True, tmp_path / "work", tmp_path, QUIET)
    case = desk.case("cifar-200", seed=1)
    shipped = fo.load_shipped("cifar-200")
    assert (len(case.train), len(case.test)) == (120, 80)
    np.testing.assert_allclose(case.test.X, shipped.X[120:])
    np.testing.assert_array_equal(case.predicted(case.test), shipped.network.predict(shipped.X[120:]))
    assert case.classes == ("airplane", "ship")
    assert len(case.test.take(slice(5))) == 5
