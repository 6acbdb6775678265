"""What torch exports by default loads with the logits and derivatives of the module that it came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from tests.networks.onnx_cases import MODULES, SHAPE, central_differences, export, module_of, torch, torch_values


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every network as torch writes it when asked for nothing but a file: a batch of 1, weights beside the file."""
    folder = tmp_path_factory.mktemp("exports")
    for name in MODULES:
        export(module_of(name), folder / f"{name}.onnx")
    return folder


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).random((7, 64))


@pytest.mark.parametrize("name", MODULES)
def test_logits_and_gradients_are_those_of_the_module(name: str, exports: Path, X: np.ndarray) -> None:
    net = fo.load_network(exports / f"{name}.onnx")
    module = module_of(name).double()
    module = module[:-1] if name == "relu" else module  # the softmax
    Y, J = torch_values(module, X)
    double = net.astype("float64")
    np.testing.assert_allclose(double.logits(X), Y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(double.jacobian(X), J, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(net.logits(X.astype(np.float32)), Y, rtol=1e-4, atol=1e-5)
    assert double.dtype == np.float64
    assert net.dtype == np.float32


@pytest.mark.parametrize("name", MODULES)
def test_derivatives_are_those_of_its_own_logits(name: str, exports: Path, X: np.ndarray) -> None:
    net = fo.load_network(exports / f"{name}.onnx").astype("float64")
    d = np.random.default_rng(2).standard_normal(64)
    np.testing.assert_allclose(net.jacobian(X[0]) @ d, central_differences(net, X[0], d), rtol=1e-7, atol=1e-8)
    v = np.array([1.0, -1.0, 0.5])
    step = 1e-5
    slope = (net.vjp(X[0] + step * d, v) - net.vjp(X[0] - step * d, v)) / (2 * step)
    np.testing.assert_allclose(net.hessian_product(X[0], v, d), slope, atol=1e-7)


def test_what_is_dense_is_analytic_and_the_rest_is_a_torch_network(exports: Path) -> None:
    kinds = {name: type(fo.load_network(exports / f"{name}.onnx")) for name in MODULES}
    assert kinds.pop("relu") is fo.DenseNetwork
    assert set(kinds.values()) == {fo.OnnxNetwork}
    assert issubclass(fo.OnnxNetwork, fo.TorchNetwork)


@pytest.mark.parametrize("name", MODULES)
def test_a_file_fixed_to_one_input_takes_any_batch(name: str, exports: Path, X: np.ndarray) -> None:
    net = fo.OnnxNetwork(exports / f"{name}.onnx").astype("float64")
    rows = np.stack([net.logits(x) for x in X])
    np.testing.assert_allclose(net.logits(X), rows, atol=1e-12)
    embedded = net.embedding(X)
    np.testing.assert_allclose(embedded, np.stack([net.embedding(x) for x in X]), atol=1e-12)


def test_only_what_mixes_its_batch_is_run_row_by_row(exports: Path) -> None:
    rows = {name: fo.OnnxNetwork(exports / f"{name}.onnx").module.rows for name in MODULES}
    assert rows == {"cnn": None, "resnet": None, "gelu": None, "relu": None, "vit": 1}


def test_a_file_fixed_to_a_batch_of_two_takes_any_batch(tmp_path: Path, X: np.ndarray) -> None:
    export(module_of("vit"), tmp_path / "vit.onnx", batch=2)
    Y, _ = torch_values(module_of("vit").double(), X)
    net = fo.load_network(tmp_path / "vit.onnx").astype("float64")
    np.testing.assert_allclose(net.logits(X), Y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(net.logits(X[0]), Y[0], rtol=1e-5, atol=1e-5)


def test_a_dynamic_batch_needs_no_rows(tmp_path: Path, X: np.ndarray) -> None:
    dynamic = ({0: torch.export.Dim("batch")},)
    export(module_of("vit"), tmp_path / "vit.onnx", batch=2, dynamic_shapes=dynamic)
    net = fo.load_network(tmp_path / "vit.onnx")
    assert net.module.rows is None
    Y, J = torch_values(module_of("vit").double(), X)
    np.testing.assert_allclose(net.astype("float64").logits(X), Y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(net.astype("float64").jacobian(X), J, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["gelu", "vit"])
def test_smooth_networks_flip(name: str, exports: Path, X: np.ndarray) -> None:
    net = fo.load_network(exports / f"{name}.onnx")
    flips = fo.closest_flip_points(net, X[:2])
    assert flips.success.all()
    own = fo.closest_flip_points(fo.TorchNetwork(module_of(name), input_shape=SHAPE), X[:2])
    np.testing.assert_allclose(flips.distance, own.distance, rtol=1e-4)


def test_forward_passes_without_torch_are_the_same(
    exports: Path, X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    nets = {name: fo.OnnxNetwork(exports / f"{name}.onnx") for name in MODULES}
    monkeypatch.setattr("flipopt.networks.onnx_network.has_torch", lambda: False)
    points = X.astype(np.float32)
    for name, net in nets.items():
        forward = fo.load_network(exports / f"{name}.onnx")
        assert forward.n_classes == 3
        np.testing.assert_allclose(forward.logits(points), net.logits(points), atol=1e-5)


def test_kinks_are_calls_of_torch_functions_that_are_named_for_them(exports: Path, X: np.ndarray) -> None:
    class Listen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            heard.append(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    heard: list[str] = []
    net = fo.load_network(exports / "cnn.onnx")
    with Listen():
        net.logits(X)
    names = [name for name in heard if "relu" in name or "max_pool" in name]
    assert {"relu", "leaky_relu", "max_pool2d"} <= set(names)


def test_a_convolutional_network_can_be_traced(exports: Path, X: np.ndarray) -> None:
    for name in ("cnn", "resnet"):
        module = fo.load_network(exports / f"{name}.onnx").module
        traced = torch.fx.symbolic_trace(module)
        points = torch.tensor(X, dtype=torch.float32).reshape(-1, *SHAPE)
        torch.testing.assert_close(traced(points), module(points))


def test_parameters_are_frozen_buffers(exports: Path) -> None:
    module = fo.load_network(exports / "vit.onnx").astype("float64").module
    floats = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
    assert {buffer.dtype for buffer in floats} == {torch.float64}
    assert not any(buffer.requires_grad for buffer in floats)
    assert sum(buffer.numel() for buffer in floats) > 500


def test_networks_with_kinks_flip_as_their_modules_do(exports: Path, X: np.ndarray) -> None:
    net = fo.load_network(exports / "cnn.onnx")
    own = fo.TorchNetwork(module_of("cnn"), input_shape=SHAPE)
    assert net.kinked
    np.testing.assert_allclose(net.sizes(X), own.sizes(X), rtol=1e-4)
    flips = fo.closest_flip_points(net, X[:2])
    assert np.isfinite(flips.distance).all()
    np.testing.assert_allclose(flips.distance, fo.closest_flip_points(own, X[:2]).distance, rtol=1e-3)


def test_kinks_are_softened_where_rows_run_one_by_one(exports: Path, X: np.ndarray) -> None:
    net = fo.load_network(exports / "cnn.onnx").astype("float64")
    alone = net.astype("float32").astype("float64")
    alone.module.rows = 1
    np.testing.assert_allclose(alone.sizes(X), net.sizes(X), rtol=1e-6)
    soft, other = net.softened(0.1, 1.0), alone.softened(0.1, 1.0)
    assert np.abs(soft.logits(X) - net.logits(X)).max() > 1e-3
    np.testing.assert_allclose(other.logits(X), soft.logits(X), atol=1e-6)
    np.testing.assert_allclose(other.jacobian(X), soft.jacobian(X), atol=1e-6)
    V = np.tile([1.0, -1.0, 0.5], (len(X), 1))
    count = soft.rounded_off(X, V)
    assert count.min() > 0
    for rows in (1, 2):
        other.module.rows = rows
        np.testing.assert_array_equal(other.rounded_off(X, V), count)
    assert other.rounded_off(X[:0], V[:0]).shape == (0,)
