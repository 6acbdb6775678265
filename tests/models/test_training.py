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
from models import __main__ as program
from models import checkpoints, training
from models.architectures import DenseModule, to_dense
from models.export import accuracy, trained
from models.image_networks import IMAGE_NETWORKS, OnRows
from models.recipes import RECIPES, Recipe
from models.targets import TARGET_RECIPES
from models.training import Batches, prepare, train


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """The shipped planes and ships in place of the whole of CIFAR-10."""
    shipped = fo.load_shipped("cifar-200")
    train_split = Split(shipped.images[:160], shipped.labels[:160])
    dataset = Dataset("toy", train_split, Split(shipped.images[160:], shipped.labels[160:]), ("airplane", "ship"))
    monkeypatch.setattr(training, "load_dataset", lambda name: dataset)
    return dataset


TOY = replace(RECIPES["cifar-200"], features=30, hidden=(20, 10), epochs=4, batch=32)
TOY_PIXELS = replace(RECIPES["mnist-fcn"], hidden=(20, 10), epochs=4, batch=32)


def test_the_export_is_the_trained_network(toy: Dataset) -> None:
    data = prepare(TOY)
    model = train(TOY, data, seed=1, device="cpu")
    net = to_dense(model)
    X = data.inputs(toy.test.images)
    with torch.no_grad():
        expected = model(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(net.logits(X), expected, atol=1e-4 * np.abs(expected).max())
    assert net.dtype == np.float32
    assert model.scale.std() > 0  # standardisation was in the model, and is folded into the first layer


def test_the_export_of_a_relu_network_on_pixels_is_the_trained_network(toy: Dataset) -> None:
    data = prepare(TOY_PIXELS)
    model = train(TOY_PIXELS, data, seed=1, device="cpu")
    net = to_dense(model)
    X = data.inputs(toy.test.images)
    np.testing.assert_array_equal(X[3].reshape(32, 32, 3), toy.test.images[3] / 255)
    with torch.no_grad():
        expected = model(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(net.logits(X), expected, atol=1e-5 * max(1, np.abs(expected).max()))
    assert net.dtype == np.float32
    assert [type(activation) for activation in net.activations] == [fo.ReLU, fo.ReLU]


@pytest.mark.parametrize("standardise", ["none", "each", "common"])
def test_every_way_of_standardising_exports(toy: Dataset, standardise: str) -> None:
    recipe = replace(TOY, standardise=standardise, epochs=1)
    data = prepare(recipe)
    model = train(recipe, data, seed=0, device="cpu")
    X = data.inputs(toy.test.images)
    with torch.no_grad():
        expected = model(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(to_dense(model).logits(X), expected, atol=1e-4)


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The first ``after`` steps of training are done, and no more before the next call of it."""
    step, done = training._Learner.step, []

    def interrupted(*arguments):
        if len(done) == after:
            monkeypatch.setattr(training._Learner, "step", step)
            raise KeyboardInterrupt
        done.append(step(*arguments))
        return done[-1]

    monkeypatch.setattr(training._Learner, "step", interrupted)


@pytest.mark.parametrize("seconds", [300.0, 0.0], ids=["after epochs", "within epochs"])
@pytest.mark.parametrize("recipe", [TOY, TOY_PIXELS], ids=["one cycle", "decay"])
def test_a_seed_decides_and_an_interrupted_run_goes_on(
    toy: Dataset, recipe: Recipe, seconds: float, tmp_path: Path, monkeypatch
) -> None:
    data = prepare(recipe)
    whole = to_dense(train(recipe, data, seed=1, device="cpu"))
    other = to_dense(train(recipe, data, seed=2, device="cpu"))
    assert not np.array_equal(whole.weights[0], other.weights[0])
    checkpoint = tmp_path / "c"
    monkeypatch.setattr(checkpoints, "SECONDS", seconds)
    interrupt(monkeypatch, after=13)  # two epochs of five steps, and three
    with pytest.raises(KeyboardInterrupt):
        train(recipe, data, seed=1, device="cpu", checkpoint=checkpoint)
    saved = torch.load(checkpoint, weights_only=True)
    assert (saved["epoch"], len(saved.get("losses", []))) == (2, 0 if seconds else 3)
    resumed = to_dense(train(recipe, data, seed=1, device="cpu", checkpoint=checkpoint))
    for ours, expected in zip(resumed.weights, whole.weights):
        np.testing.assert_array_equal(ours, expected)


def test_the_learning_rate_decays_after_every_100_steps() -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    schedule = training._schedule(RECIPES["mnist-fcn"], optimiser, steps=1000)
    rates = []
    for _ in range(201):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert [rates[step] for step in (0, 99, 100, 199, 200)] == pytest.approx([0.01, 0.01, 0.0099, 0.0099, 0.009801])


@pytest.mark.parametrize("features", [4096, None])
def test_augmented_batches_are_moved_and_mirrored_images(toy: Dataset, features: int | None) -> None:
    data = prepare(replace(TOY, features=features))
    batches = Batches(data, 3, torch.device("cpu"))
    torch.manual_seed(0)
    rows, labels = batches(torch.arange(8))
    assert rows.shape == (8, features or 3072)
    np.testing.assert_array_equal(labels, toy.train.labels[:8])
    X = rows.double().numpy()
    images = X.reshape(8, 32, 32, 3) if data.features is None else data.features.inverse_transform(X)
    padded = np.pad(toy.train.images[:8] / 255, [(0, 0), (3, 3), (3, 3), (0, 0)], mode="edge")
    for image, source in zip(images, padded):
        windows = [source[down : down + 32, right : right + 32] for down in range(7) for right in range(7)]
        candidates = windows + [window[:, ::-1] for window in windows]
        assert min(np.abs(candidate - image).max() for candidate in candidates) < 1e-5


def test_image_networks_are_those_described() -> None:
    sizes = {name: n_parameters(build()) for name, build in IMAGE_NETWORKS.items()}
    assert sizes == {
        **{"cnn": 105_962, "resnet8": 78_042, "vit": 60_634},
        **{"deepdig-cnn": 14_070, "resnet34": 21_282_122, "googlenet": 6_166_250},
        **{"boundary-cnn": 235_194, "boundary-vit": 205_834},
    }
    kinds = [type(layer).__name__ for layer in IMAGE_NETWORKS["cnn"]()]
    assert kinds[:4] == kinds[4:8] == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"]
    of_targets = {recipe.architecture for recipe in TARGET_RECIPES.values()} - {"mlp"}
    assert set(IMAGE_NETWORKS) == ({recipe.architecture for recipe in RECIPES.values()} - {None}) | of_targets


def test_an_image_network_is_trained_and_exported(toy: Dataset, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(program.RECIPES, "cifar-resnet8", replace(RECIPES["cifar-resnet8"], epochs=1, batch=32))
    result = CliRunner().invoke(program.main, ["train", "cifar-resnet8", "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    names = sorted(path.name.removeprefix("cifar-resnet8") for path in tmp_path.iterdir())
    assert names == [".json", ".onnx", ".sample.npz"]
    facts = json.loads((tmp_path / "cifar-resnet8.json").read_text())
    assert facts["parameters"] == 78_042
    images = np.moveaxis(toy.test.images, 3, 1).astype(np.float32) / 255
    assert b"site-packages" not in (tmp_path / "cifar-resnet8.onnx").read_bytes()  # says nothing of this machine
    net = fo.OnnxNetwork(tmp_path / "cifar-resnet8.onnx")
    right = 100 * np.mean(net.predict(images.reshape(len(images), -1)) == toy.test.labels)
    assert facts["accuracy_percent"]["test"] == pytest.approx(right, abs=0.01)


def test_an_image_network_learns(toy: Dataset) -> None:
    recipe = replace(RECIPES["cifar-resnet8"], epochs=4, batch=16)
    data = prepare(recipe)
    net = trained(train(recipe, data, seed=0, device="cpu"))
    assert accuracy(net, data, toy.train) > 65  # planes against ships; chance is 50


def test_products_in_bfloat16_train_weights_in_float32(toy: Dataset) -> None:
    recipe = replace(RECIPES["cifar-resnet8"], epochs=1, batch=32)
    data = prepare(recipe)
    exact, rounded = (
        train(replace(recipe, precision=precision), data, seed=0, device="cpu").state_dict()
        for precision in ("float32", "bfloat16")
    )
    last = next(name for name in reversed(exact) if name.endswith("weight"))
    assert {value.dtype for value in rounded.values()} == {torch.float32, torch.int64}
    assert not torch.equal(exact[last], rounded[last])
    torch.testing.assert_close(rounded[last], exact[last], rtol=0, atol=0.02)


@pytest.mark.parametrize("name", ["cnn", "vit", "deepdig-cnn"])
def test_rows_are_images_row_by_row(name: str) -> None:
    torch.manual_seed(0)
    network = IMAGE_NETWORKS[name]().eval()
    images = torch.rand(3, 28, 28)
    on_rows = OnRows(network, (28, 28))
    assert on_rows.input_shape == (1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(on_rows(images.reshape(3, -1)), network(images[:, None]))


def test_halves_are_reported_apart(toy: Dataset) -> None:
    data = prepare(replace(TOY, half=1))
    np.testing.assert_array_equal(data.train.labels, toy.train.labels[80:])
    assert list(data.reports) == ["first half", "second half", "test"]


def test_architectures_are_those_of_the_papers() -> None:
    widths = {name: (recipe.features, *recipe.hidden) for name, recipe in RECIPES.items()}
    assert widths["mnist-net1"] == (100, 500, 500, 500, 400, 300, 250, 250, 250, 200, 150, 150, 100)
    assert widths["cifar-200"] == (200, 700, 600, 510, 440, 375, 325, 285, 250, 215, 160, 100, 40)
    assert widths["cifar-2500"] == (2500, 1000, 500, 455, 410, 365, 320, 275, 230, 185, 140, 95, 50)
    assert widths["mnist-fcn"] == widths["fashion-fcn"] == (None, 50, 50)
    assert n_parameters(DenseModule((100, *RECIPES["mnist-net1"].hidden, 10))) == 1_192_072
    assert n_parameters(DenseModule((784, *RECIPES["mnist-fcn"].hidden, 10), RECIPES["mnist-fcn"].activation)) == 42_310


def test_the_six_classifiers_of_deepdig_are_trained_as_their_paper_says() -> None:
    six = [recipe for recipe in RECIPES.values() if recipe.paper.startswith("Karimi, Derr and Tang 2019")]
    assert {recipe.name: recipe.published["test"] for recipe in six} == {
        **{"mnist-fcn": 97.57, "fashion-fcn": 88.24, "deepdig-mnist-cnn": 98.75, "deepdig-fashion-cnn": 89.11},
        **{"deepdig-cifar-resnet34": 82.68, "deepdig-cifar-googlenet": 84.71},
    }
    settings = {(recipe.epochs, recipe.batch, recipe.learning_rate, recipe.decay) for recipe in six}
    assert settings == {(40, 64, 0.01, 0.99)}
    assert {(recipe.shift_pixels, recipe.dropout, recipe.weight_decay) for recipe in six} == {(0, 0.0, 0.0)}


def n_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_command_trains_exports_and_reports(toy: Dataset, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(program.RECIPES, "cifar-200", replace(TOY, epochs=2))
    result = CliRunner().invoke(program.main, ["train", "cifar-200", "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    names = sorted(path.name.removeprefix("cifar-200") for path in tmp_path.iterdir())
    assert names == [".features.npz", ".json", ".npz", ".onnx", ".sample.npz"]
    facts = json.loads((tmp_path / "cifar-200.json").read_text())
    net = fo.load_network(tmp_path / "cifar-200.npz")
    with np.load(tmp_path / "cifar-200.sample.npz") as sample:
        right = 100 * np.mean(net.predict(sample["features"]) == sample["labels"])
    assert facts["accuracy_percent"]["test"] == pytest.approx(right, abs=0.01)
    assert facts["published_percent"] == {"test": 84.05}
    np.testing.assert_allclose(
        fo.load_network(tmp_path / "cifar-200.onnx").logits(np.ones(30)), net.logits(np.ones(30)), atol=1e-6
    )
    shown = CliRunner().invoke(program.main, ["report", str(tmp_path / "cifar-200.json")])
    assert "84.05" in shown.output


def test_a_network_on_pixels_is_exported_without_features(toy: Dataset, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(program.RECIPES, "mnist-fcn", replace(TOY_PIXELS, epochs=1))
    result = CliRunner().invoke(program.main, ["train", "mnist-fcn", "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    names = sorted(path.name.removeprefix("mnist-fcn") for path in tmp_path.iterdir())
    assert names == [".json", ".npz", ".onnx", ".sample.npz"]
    facts = json.loads((tmp_path / "mnist-fcn.json").read_text())
    assert facts["recipe"]["features"] is None
    assert facts["sigma"] == []
    net = fo.load_network(tmp_path / "mnist-fcn.npz")
    assert facts["parameters"] == net.n_parameters == 3072 * 20 + 20 + 20 * 10 + 10 + 10 * 2 + 2
    with np.load(tmp_path / "mnist-fcn.sample.npz") as sample:
        np.testing.assert_array_equal(sample["features"], sample["images"].reshape(-1, 3072) / 255)
