from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.features.shipped import SHIPPED, open_network, open_points
from models.recipes import RECIPES

# What each report must show at least; cifar-2500 is trained by the same command but too large to ship.
LEAST = {
    "mnist-net1": {"second half": 97.0, "test": 97.5},
    "mnist-net2": {"first half": 97.0, "test": 97.5},
    "mnist-fcn": {"test": 97.0},
    "cifar-200": {"test": 83.0},
}


@pytest.mark.parametrize("name", SHIPPED)
def test_networks_come_with_images_labels_features_and_a_report(name: str) -> None:
    shipped = fo.load_shipped(name)
    assert shipped.network.dtype == np.float32
    assert shipped.X.shape == (200, shipped.network.n_inputs)
    assert shipped.images.shape == (200, *((32, 32, 3) if name.startswith("cifar") else (28, 28)))
    assert shipped.features is None or shipped.images.shape[1:] == shipped.features.shape
    assert len(shipped.classes) == shipped.network.n_classes
    accuracy = shipped.report["accuracy_percent"]
    assert all(accuracy[split] >= least for split, least in LEAST[name].items())
    assert shipped.report["published_percent"].keys() <= accuracy.keys()
    # 200 images estimate the accuracy to within about 2.6 (MNIST) and 6.7 (CIFAR-10) percent at 2.5 deviations.
    right = 100 * np.mean(shipped.network.predict(shipped.X) == shipped.labels)
    assert right == pytest.approx(accuracy["test"], abs=2.6 if name.startswith("mnist") else 6.7)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_report_is_of_the_shipped_network_and_of_its_recipe(name: str) -> None:
    shipped, recipe = fo.load_shipped(name), RECIPES[name]
    settings = json.loads(json.dumps(asdict(recipe)))
    assert settings | shipped.report["recipe"] == settings
    assert shipped.report["published_percent"] == recipe.published
    assert shipped.report["parameters"] == shipped.network.n_parameters
    assert shipped.report["command"] == f"python -m models train {name} --seed {shipped.report['seed']}"


def test_the_fully_connected_network_has_relu_layers_and_takes_pixels() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    assert shipped.features is None
    assert [W.shape for W in shipped.network.weights] == [(784, 50), (50, 50), (50, 10)]
    assert all(isinstance(activation, fo.ReLU) for activation in shipped.network.activations)
    np.testing.assert_array_equal(shipped.X, shipped.images.reshape(200, 784) / 255)


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    known = "mnist-net1, mnist-net2, mnist-fcn, cifar-200"
    with pytest.raises(fo.InputError, match=f"name: expected one of {known}, found 'net1'"):
        fo.load_shipped("net1")


def test_a_network_is_opened_by_its_name_or_its_path(tmp_path: Path) -> None:
    shipped = fo.load_shipped("mnist-net1")
    named = open_network("mnist-net1")
    np.testing.assert_array_equal(named.weights[0], shipped.network.weights[0])
    fo.DenseNetwork([np.eye(2)], [np.zeros(2)]).save(tmp_path / "net.npz")
    for path in (tmp_path / "net.npz", str(tmp_path / "net.npz")):
        np.testing.assert_array_equal(open_network(path).weights[0], np.eye(2))
    with pytest.raises(fo.FileFormatError, match="net1: expected a .npz file"):
        open_network("net1")


def test_points_come_from_a_file_or_with_a_shipped_network(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.ones((3, 100)))
    assert open_points("mnist-net1", tmp_path / "X.npy", 100).shape == (3, 100)
    np.testing.assert_array_equal(open_points("mnist-net1", None, 100), fo.load_shipped("mnist-net1").X)
    with pytest.raises(fo.InputError, match="data: expected a file of points, found none"):
        open_points("net.npz", None, 100)
