"""Autoencoders: their layers, that onnxruntime computes what the formulas say, and files from anyone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from scipy.special import expit

import flipopt as fo
from flipopt.borderline import Architecture, Autoencoder
from tests.borderline.cases import convolutional, pictures


def weights(architecture: Architecture, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = [1.5 * layer.reach for layer in architecture.layers for _ in range(2)]
    return [(size * rng.standard_normal(shape)).astype(np.float32) for size, shape in zip(sizes, architecture.shapes)]


def colour() -> Architecture:
    return Architecture.of(convolutional((3, 8, 9)))


def test_the_layers_are_those_of_table_2() -> None:
    images = Architecture.of(fo.DenseNetwork([np.zeros((784, 2))], [np.zeros(2)]))
    assert [(layer.kind, layer.inputs, layer.outputs) for layer in images.layers] == [
        ("linear", 784, 100),
        ("linear", 100, 50),
        ("linear", 50, 784),
    ]
    assert images.n_parameters == 123_534
    assert [(layer.inputs, layer.outputs) for layer in colour().layers] == [
        (3, 12), (12, 24), (24, 48), (48, 24), (24, 12), (12, 3),
    ]  # fmt: skip
    assert [layer.kind for layer in colour().layers] == ["convolution"] * 3 + ["transposed"] * 3
    assert Architecture.of(convolutional((1, 8, 8))).layers[0].kind == "linear"
    assert Architecture.of(convolutional((3, 4, 4))).sides == (3, 4, 4)


def test_a_dense_one_is_its_formula() -> None:
    architecture = Architecture.of(pictures()[0])
    parts, X = weights(architecture), pictures()[1]
    W1, b1, W2, b2, W3, b3 = parts
    expected = expit(np.maximum(np.maximum(X @ W1 + b1, 0) @ W2 + b2, 0) @ W3 + b3)
    found = Autoencoder.of(architecture, parts).apply(X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_convolutional_one_is_torch_s() -> None:
    torch = pytest.importorskip("torch")
    parts, layers = weights(colour()), []
    for layer, W, b in zip(colour().layers, parts[::2], parts[1::2]):
        kind = torch.nn.Conv2d if layer.kind == "convolution" else torch.nn.ConvTranspose2d
        module = kind(layer.inputs, layer.outputs, 4, 1, 1)
        module.load_state_dict({"weight": torch.tensor(W), "bias": torch.tensor(b)})
        layers += [module, torch.nn.ReLU()]
    X = np.random.default_rng(1).random((5, 3, 8, 9), dtype=np.float32)
    with torch.no_grad():
        expected = torch.nn.Sequential(*layers[:-1], torch.nn.Sigmoid())(torch.tensor(X)).numpy()
    found = Autoencoder.of(colour(), parts).apply(X.reshape(5, -1))
    np.testing.assert_allclose(found, expected.reshape(5, -1), atol=1e-6)


@pytest.mark.parametrize("architecture", [Architecture.of(pictures()[0]), None])
def test_a_file_holds_it(tmp_path: Path, architecture: Architecture | None) -> None:
    architecture = architecture or colour()
    parts = weights(architecture)
    content = b"".join(part.tobytes() for part in parts)
    for here, there in zip(architecture.parts(content), parts):
        np.testing.assert_array_equal(here, there)
    with pytest.raises(fo.FileFormatError, match="weights of an autoencoder, found"):
        architecture.parts(content[:-4])
    made = Autoencoder.of(architecture, parts)
    made.save(tmp_path / "map.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "map.onnx"), full_check=True)
    again = Autoencoder.read(tmp_path / "map.onnx", made.n_inputs)
    X = np.random.default_rng(2).random((600, made.n_inputs))
    np.testing.assert_array_equal(again.apply(X), made.apply(X))
    np.testing.assert_allclose(again.apply(X[7]), made.apply(X)[7:8], atol=1e-6)
    assert made.apply(X[:0]).shape == (0, made.n_inputs)
    with pytest.raises(fo.InputError, match="X: expected shape"):
        made.apply(X[:, 1:])


def write(path: Path, outputs: int, value: float, count: int = 1, batch: int | str = "batch") -> None:
    """A product of inputs of 4 with a matrix of one value."""
    names = [f"y{k}" for k in range(count)]
    nodes = [helper.make_node("MatMul", ["x", "W"], [name]) for name in names]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [batch, 4])
    y = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [batch, outputs]) for name in names]
    W = numpy_helper.from_array(np.full((4, outputs), value, dtype=np.float32), "W")
    graph = helper.make_graph(nodes, "g", [x], y, [W])
    opset = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def test_files_of_anyone_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "map.onnx"
    for facts, words in [
        ((3, 1.0), "4 finite numbers of 4 inputs each, found shape"),
        ((4, 3e38), "4 finite numbers of 4 inputs each"),
        ((4, 1.0, 2), "and one output; found an input"),
        ((4, 1.0, 1, 2), "with any batch"),
        ((4, np.nan), "holds NaN"),
    ]:
        write(path, *facts)
        with pytest.raises(fo.FileFormatError, match=words):
            Autoencoder.read(path)
    write(path, 4, 0.25)
    np.testing.assert_allclose(Autoencoder.read(path).apply(np.ones(4)), np.ones((1, 4)))
    with pytest.raises(fo.FileFormatError, match="one of 5 numbers"):
        Autoencoder.read(path, 5)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(fo.FileFormatError):
        Autoencoder.read(path)
    with pytest.raises(fo.FileFormatError, match="no such file"):
        Autoencoder.read(tmp_path / "none.onnx")
