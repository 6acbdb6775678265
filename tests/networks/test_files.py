from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import flipopt as fo
from tests.strategies import networks, points, seeds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


def assert_same(net: fo.DenseNetwork, other: fo.DenseNetwork, X: np.ndarray) -> None:
    tolerance = 1e-12 if net.dtype == np.float64 else 1e-6
    expected = net.logits(X)
    np.testing.assert_allclose(other.logits(X), expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))


@given(networks(), seeds, st.sampled_from(["float32", "float64"]))
def test_npz_keeps_everything(folder: Path, net: fo.DenseNetwork, seed: int, dtype: str) -> None:
    net = net.astype(dtype)
    net.save(folder / "net.npz")
    other = fo.load_network(folder / "net.npz")
    assert other.dtype == dtype
    assert other.activations == net.activations
    np.testing.assert_array_equal(other.logits(points(net, 5, seed)), net.logits(points(net, 5, seed)))


@given(networks(), seeds, st.sampled_from(["float32", "float64"]))
def test_onnx_keeps_logits(folder: Path, net: fo.DenseNetwork, seed: int, dtype: str) -> None:
    net = net.astype(dtype)
    if any(isinstance(activation, fo.ELU) and activation.shape for activation in net.activations):
        with pytest.raises(fo.InputError, match="ELU with one alpha per neuron"):
            net.save(folder / "net.onnx")
        return
    net.save(folder / "net.onnx")
    other = fo.load_network(folder / "net.onnx")
    assert other.dtype == dtype
    assert_same(net, other, points(net, 5, seed).astype(dtype))
    if dtype == "float32":
        X = points(net, 5, seed).astype(dtype)
        scale = max(1, np.abs(net.logits(X)).max())
        np.testing.assert_allclose(fo.OnnxNetwork(folder / "net.onnx").logits(X), net.logits(X), atol=1e-5 * scale)


@given(networks(), seeds)
def test_csv_keeps_logits(tmp_path_factory, net: fo.DenseNetwork, seed: int) -> None:
    net = net.with_activations([fo.Erf(0.3 + 0.1 * k) for k in range(net.n_layers - 1)])
    path = tmp_path_factory.mktemp("csv") / "net"
    net.save(path)
    assert_same(net, fo.load_network(path), points(net, 5, seed))
    assert (path / "W1.csv").exists()
    single = net.astype(np.float32)
    single.save(path.with_name("single"))
    X = points(net, 5, seed)
    assert_same(single, fo.load_network(path.with_name("single")), X)


def test_csv_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    net = fo.DenseNetwork([np.ones((2, 3)), np.ones((3, 2))], [np.zeros(3), np.zeros(2)], fo.Tanh())
    with pytest.raises(fo.InputError, match="CSV format holds erf layers"):
        net.save(tmp_path / "net")
    (tmp_path / "there").mkdir()
    with pytest.raises(fo.InputError, match="exists already"):
        net.with_activations(fo.Erf(1.0)).save(tmp_path / "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


def test_unknown_suffix_and_folder_are_refused(tmp_path: Path) -> None:
    net = fo.DenseNetwork([np.ones((2, 3))], [np.zeros(3)])
    with pytest.raises(fo.InputError, match="path: expected a name ending in .npz"):
        net.save(tmp_path / "net.pkl")
    with pytest.raises(fo.InputError, match="path: expected a folder that exists"):
        net.save(tmp_path / "nowhere" / "net.npz")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.npz"
    net = fo.DenseNetwork([np.ones((2, 3))], [np.zeros(3)])
    net.save(path)
    before = path.read_bytes()

    def fail(stream, **arrays) -> None:
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        net.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def export_torch(module: torch.nn.Module, path: Path, n_inputs: int) -> None:
    """As torch's own exporter would write a chain, but without the packages that it needs."""
    nodes, constants, current = [], [], "x"
    for k, layer in enumerate(module):
        out = f"t{k}"
        if isinstance(layer, torch.nn.Linear):
            constants += [
                numpy_helper.from_array(layer.weight.detach().numpy(), f"w{k}"),
                numpy_helper.from_array(layer.bias.detach().numpy(), f"b{k}"),
            ]
            nodes.append(helper.make_node("Gemm", [current, f"w{k}", f"b{k}"], [out], transB=1))
        elif isinstance(layer, torch.nn.LeakyReLU):
            nodes.append(helper.make_node("LeakyRelu", [current], [out], alpha=layer.negative_slope))
        elif isinstance(layer, torch.nn.Softmax):
            nodes.append(helper.make_node("Softmax", [current], [out], axis=1))
        else:
            nodes.append(helper.make_node(type(layer).__name__, [current], [out]))
        current = out
    save_graph(path, nodes, constants, n_inputs, current)


def save_graph(path: Path, nodes, constants, n_inputs: int, output: str, kind: int = TensorProto.FLOAT) -> None:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["batch", n_inputs])],
        [helper.make_tensor_value_info(output, kind, None)],
        constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_a_torch_chain_with_gemm_leaky_relu_flatten_and_softmax_is_read(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(5, 7),
        torch.nn.LeakyReLU(0.1),
        torch.nn.Linear(7, 6),
        torch.nn.Tanh(),
        torch.nn.Identity(),
        torch.nn.Linear(6, 3),
        torch.nn.Softmax(dim=1),
    )
    export_torch(module, tmp_path / "net.onnx", 5)
    net = fo.load_network(tmp_path / "net.onnx")
    X = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
    np.testing.assert_allclose(net.probabilities(X), module(torch.tensor(X)).detach().numpy(), atol=1e-6)
    assert net.widths == (5, 7, 6, 3)


def test_elementwise_constants_before_between_and_after_layers_are_folded(tmp_path: Path) -> None:
    """((x - 0.1) / 0.5) W1, * 2, + b, / sigma, erf, W2, / 4."""
    rng = np.random.default_rng(0)
    arrays = {
        "shift": rng.standard_normal(3), "scale": np.array([0.5, 2.0, 1.5]), "W1": rng.standard_normal((3, 4)),
        "two": np.array(2.0), "b": rng.standard_normal((1, 4)), "sigma": np.array([0.7, -0.8, 0.9, 1.0]),
        "W2": rng.standard_normal((4, 2)), "four": np.array([4.0]),
    }  # fmt: skip
    steps = [("Sub", "shift"), ("Div", "scale"), ("MatMul", "W1"), ("Mul", "two"), ("Add", "b"), ("Div", "sigma"),
             ("Erf", None), ("MatMul", "W2"), ("Div", "four")]  # fmt: skip
    nodes, current = [], "x"
    for k, (op, constant) in enumerate(steps):
        nodes.append(helper.make_node(op, [current, constant] if constant else [current], [f"t{k}"]))
        current = f"t{k}"
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    save_graph(tmp_path / "net.onnx", nodes, constants, 3, current, TensorProto.DOUBLE)
    net = fo.load_network(tmp_path / "net.onnx")
    from scipy.special import erf

    x = rng.standard_normal((5, 3))
    a = arrays
    c = ((x - a["shift"]) / a["scale"] @ a["W1"] * 2 + a["b"]) / a["sigma"]
    np.testing.assert_allclose(net.logits(x), erf(c) @ a["W2"] / 4, rtol=1e-13)


def test_an_activation_right_after_the_input_gets_an_identity_layer(tmp_path: Path) -> None:
    W = numpy_helper.from_array(np.array([[1.0, 2.0], [3.0, 4.0]]), "W")
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("MatMul", ["t", "W"], ["y"])]
    save_graph(tmp_path / "net.onnx", nodes, [W], 2, "y", TensorProto.DOUBLE)
    net = fo.load_network(tmp_path / "net.onnx")
    np.testing.assert_allclose(net.logits([0.5, -1.0]), np.tanh([0.5, -1.0]) @ [[1, 2], [3, 4]], rtol=1e-14)
