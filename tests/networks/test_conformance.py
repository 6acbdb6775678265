"""One suite for every implementation of the Network protocol."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import flipopt as fo
from flipopt.networks.stages import Affine, Pointwise, StagedNetwork
from tests.derivatives import centred, torch_twin

RNG = np.random.default_rng(3)
WIDTHS = (6, 8, 7, 4)
DENSE = fo.DenseNetwork(
    [RNG.standard_normal(pair) for pair in pairwise(WIDTHS)],
    [RNG.standard_normal(width) for width in WIDTHS[1:]],
    [fo.Tanh(), fo.ELU(1.0)],
)


def make(kind: str, folder: Path) -> fo.Network:
    if kind == "dense":
        return DENSE
    if kind == "staged":
        layers = [Affine(W, b) for W, b in zip(DENSE.weights, DENSE.biases)]
        hidden = [stage for layer, act in zip(layers, DENSE.activations) for stage in (layer, Pointwise(act))]
        return StagedNetwork([*hidden, layers[-1]], 6)
    if kind == "dense float32":
        return DENSE.astype(np.float32)
    if kind == "torch":
        return fo.TorchNetwork(torch_twin(DENSE))
    if kind == "torch float32":
        return fo.TorchNetwork(torch_twin(DENSE)).astype(np.float32)
    DENSE.astype(np.float32).save(folder / "net.onnx")
    return fo.OnnxNetwork(folder / "net.onnx")


DIFFERENTIABLE = ["dense", "staged", "dense float32", "torch", "torch float32", "onnx"]


@pytest.fixture(params=DIFFERENTIABLE)
def net(request: pytest.FixtureRequest, tmp_path: Path) -> fo.Network:
    return make(request.param, tmp_path)


@pytest.fixture(params=DIFFERENTIABLE)
def differentiable(request: pytest.FixtureRequest, tmp_path: Path) -> fo.Network:
    return make(request.param, tmp_path)


def tolerance(net: fo.Network) -> float:
    return 1e-12 if net.dtype == np.float64 else 2e-5


def test_it_meets_the_protocol(net: fo.Network) -> None:
    assert isinstance(net, fo.Network)
    assert (net.n_inputs, net.n_classes) == (6, 4)
    assert net.dtype in (np.float32, np.float64)


@pytest.mark.parametrize("shape", [(6,), (1, 6), (9, 6)])
def test_values_are_those_of_the_dense_network(net: fo.Network, shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).standard_normal(shape).astype(net.dtype)
    for ours, expected in (
        (net.logits(X), DENSE.logits(X)),
        (net.probabilities(X), DENSE.probabilities(X)),
        (net.embedding(X), DENSE.embedding(X)),
    ):
        assert ours.dtype == net.dtype
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, atol=tolerance(net) * 10)
    np.testing.assert_array_equal(net.predict(X), DENSE.predict(X))
    np.testing.assert_allclose(net.probabilities(X).sum(axis=-1), 1, atol=tolerance(net))


@pytest.mark.parametrize("shape", [(6,), (9, 6)])
@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_derivatives_are_those_of_the_dense_network(differentiable, shape, outputs: str) -> None:
    net, rng = differentiable, np.random.default_rng(0)
    X, D = (rng.standard_normal(shape).astype(net.dtype) for _ in range(2))
    V = rng.standard_normal((*shape[:-1], 4)).astype(net.dtype)
    for ours, expected in (
        (net.jacobian(X, outputs), DENSE.jacobian(X, outputs)),
        (net.vjp(X, V, outputs), DENSE.vjp(X, V, outputs)),
        (net.hessian_product(X, V, D, outputs), DENSE.hessian_product(X, V, D, outputs)),
    ):
        assert ours.dtype == net.dtype
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, atol=tolerance(net) * np.abs(expected).max() * 10)
    if net.dtype == np.float64:
        along = centred(net.logits if outputs == "logits" else net.probabilities, X, D)
        np.testing.assert_allclose(np.einsum("...kn,...n->...k", net.jacobian(X, outputs), D), along, atol=1e-7)


def test_one_linearisation_serves_many_weights(differentiable) -> None:
    net = differentiable
    X = np.random.default_rng(0).standard_normal((5, 6)).astype(net.dtype)
    Y, pullback = net.linearize(X)
    np.testing.assert_allclose(Y, net.logits(X), atol=tolerance(net) * 10)
    for k, row in enumerate(np.eye(4, dtype=net.dtype)):
        np.testing.assert_allclose(pullback(row), net.jacobian(X)[:, k], atol=tolerance(net) * 10)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), r"X: expected shape \(6,\) or \(batch, 6\), found \(5,\)"),
        (np.zeros((2, 3, 6)), r"X: expected shape"),
        (np.full(6, np.nan), r"X: expected finite numbers, found nan at index \(0,\) and 5 more"),
        (["a"] * 6, "X: expected real numbers"),
        ([[1.0], [1.0, 2.0]], "X: expected a rectangular array"),
    ],
)
def test_bad_points_are_named(net: fo.Network, X, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        net.logits(X)


def test_bad_weights_and_options_are_named(differentiable) -> None:
    X = np.zeros((3, 6))
    with pytest.raises(fo.InputError, match="V: expected shape"):
        differentiable.vjp(X, np.ones(5))
    with pytest.raises(fo.InputError, match="V: expected 3 rows"):
        differentiable.vjp(X, np.ones((2, 4)))
    with pytest.raises(fo.InputError, match="D: expected shape"):
        differentiable.hessian_product(X, np.ones(4), np.ones(5))
    with pytest.raises(fo.InputError, match="outputs: expected one of logits, probabilities, found 'y'"):
        differentiable.vjp(X, np.ones(4), "y")
    with pytest.raises(fo.InputError, match="dtype: expected float32 or float64"):
        differentiable.astype("int32")


def test_onnx_without_torch_is_evaluated_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = make("onnx", tmp_path)
    monkeypatch.setattr("flipopt.networks.onnx_network.has_torch", lambda: False)
    forward = make("onnx", tmp_path)
    X = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    np.testing.assert_allclose(forward.logits(X), net.logits(X), atol=1e-5)
    np.testing.assert_allclose(forward.embedding(X), net.embedding(X), atol=1e-5)
    assert forward.dtype == np.float32
    assert forward.astype("float32") is forward
    for ask in (
        lambda: forward.jacobian(np.zeros(6)),
        lambda: forward.vjp(np.zeros(6), np.ones(4)),
        lambda: forward.hessian_product(np.zeros(6), np.ones(4), np.ones(6)),
        lambda: forward.linearize(np.zeros(6)),
        lambda: forward.astype("float64"),
        lambda: fo.closest_flip_point(forward, np.zeros(6)),
    ):
        with pytest.raises(fo.DerivativeError, match=r"net.onnx: .*pip install 'flipopt\[torch\]'"):
            ask()


def test_onnx_gives_any_tensor_by_name(tmp_path: Path) -> None:
    net = make("onnx", tmp_path)
    x = np.ones(6, dtype=np.float32)
    np.testing.assert_allclose(net.intermediate(x, "y1"), DENSE.forward(x)[0], atol=1e-5)
    first, second = net.intermediate(np.ones((3, 6)), ["y1", "y2"])
    assert (first.shape, second.shape) == ((3, 8), (3, 7))
    with pytest.raises(fo.InputError, match="names: expected tensors among"):
        net.intermediate(x, "nothing")


def test_onnx_takes_the_logits_before_a_softmax(tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    DENSE.astype(np.float32).save(tmp_path / "net.onnx")
    model = onnx.load(tmp_path / "net.onnx")
    model.graph.node.append(helper.make_node("Softmax", ["logits"], ["z"]))
    model.graph.output[0].name = "z"
    onnx.save(model, tmp_path / "softmax.onnx")
    x = np.ones(6, dtype=np.float32)
    np.testing.assert_allclose(fo.OnnxNetwork(tmp_path / "softmax.onnx").logits(x), DENSE.logits(x), atol=1e-5)


def test_torch_takes_images_and_names_its_embedding() -> None:
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
        torch.nn.Linear(72, 5),
        torch.nn.Tanh(),
        torch.nn.Linear(5, 3),
    ).double()
    net = fo.TorchNetwork(module, input_shape=(1, 8, 8))
    assert (net.n_inputs, net.n_classes) == (64, 3)
    x, d = np.random.default_rng(0).standard_normal((2, 64))
    np.testing.assert_allclose(net.jacobian(x) @ d, centred(net.logits, x, d), atol=1e-8)
    assert net.embedding(x).shape == (5,)
    assert fo.TorchNetwork(module, (1, 8, 8), embedding="2").embedding(x).shape == (72,)
    with pytest.raises(fo.InputError, match="embedding: expected a submodule"):
        fo.TorchNetwork(module, (1, 8, 8), embedding="nowhere")
    with pytest.raises(fo.InputError, match="module: expected a torch.nn.Module"):
        fo.TorchNetwork(lambda x: x)
    with pytest.raises(fo.InputError, match="input_shape: expected the shape"):
        fo.TorchNetwork(torch.nn.Conv2d(1, 2, 3))


def test_a_piecewise_linear_torch_network_has_no_curvature() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).double()
    net = fo.TorchNetwork(module)
    np.testing.assert_array_equal(net.hessian_product(np.ones(4), np.ones(3), np.ones(4)), np.zeros(4))
    linear = fo.TorchNetwork(torch.nn.Linear(4, 3).double())
    np.testing.assert_array_equal(linear.hessian_product(np.ones(4), np.ones(3), np.ones(4)), np.zeros(4))
