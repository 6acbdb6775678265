"""Generators and discriminators: layers, forward passes, decoding, and files that are none."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import flipopt as fo
from flipopt.generative import Discriminator, Generator
from tests.generative import cases
from tests.generative.cases import IMAGE, LATENT, convolutional, dense, discriminator, query, write


def relu(out: str = "x", before: str = "c") -> onnx.NodeProto:
    return helper.make_node("Relu", [before], [out])


def gemm(out: str = "c", before: str = "z") -> onnx.NodeProto:
    return helper.make_node("Gemm", [before, "W", "b"], [out])


def parts(width: int = 4) -> dict[str, np.ndarray]:
    weights = cases.dense_weights(0, (LATENT, width))
    return {"W": weights["W1"], "b": weights["b1"]}


def test_layers_are_pre_activations_numbered_from_1() -> None:
    G = dense()
    assert [(layer.number, layer.name, layer.shape, layer.units, layer.activation) for layer in G.layers] == [
        (1, "c1", (24,), 24, "Relu"),
        (2, "c2", (20,), 20, "Relu"),
        (3, "c3", (16,), 16, "Tanh"),
    ]
    assert (G.n_latent, G.image_shape) == (LATENT, IMAGE)


def test_forward_is_the_formula() -> None:
    G, Z = dense(), np.random.default_rng(1).standard_normal((700, LATENT))
    for layer in (1, 2, 3):
        found = G.forward(Z, to=layer)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, cases.pre_activations(Z, layer), atol=1e-5)
    np.testing.assert_allclose(G.forward(Z).reshape(700, -1), np.tanh(cases.pre_activations(Z, 3)), atol=1e-5)
    assert G.forward(Z[0]).shape == IMAGE
    assert G.forward(Z[0], to=2).shape == (20,)
    assert G.forward(Z[:0], to=2).shape == (0, 20)


def test_layers_of_a_torch_module_come_after_batch_normalisation() -> None:
    import torch

    G, module = convolutional(), cases.convolutional_module()
    Z = np.random.default_rng(2).standard_normal((5, 10)).astype(np.float32)
    X, k = torch.as_tensor(Z)[:, :, None, None], 0
    for layer in module:
        if isinstance(layer, torch.nn.ReLU | torch.nn.Tanh):
            k += 1
            assert G.layers[k - 1].shape == tuple(X.shape[1:])
            np.testing.assert_allclose(G.forward(Z, to=k), X.flatten(1), atol=1e-4)
        X = layer(X)
    assert k == len(G.layers)
    np.testing.assert_allclose(G.forward(Z), X, atol=1e-5)
    np.testing.assert_array_equal(G.forward(Z[:, :, None, None]), G.forward(Z))


@pytest.mark.parametrize("kind", ["Relu", "LeakyRelu", "Elu", "Softplus", "Sigmoid"])
def test_decoding_pre_activations_goes_on_where_forward_stopped(kind: str) -> None:
    G = dense(kind=kind)
    Z = np.random.default_rng(3).standard_normal((9, LATENT))
    for layer in (1, 2, 3):
        h = G.forward(Z, to=layer)
        np.testing.assert_allclose(G.decode(h, frm=layer), G.forward(Z), atol=1e-6)
        again = G.decode(G.activate(h, layer), frm=layer, activated=True)
        np.testing.assert_allclose(again, G.forward(Z), atol=1e-6)


@pytest.mark.parametrize("kind", ["Relu", "Sigmoid"])
def test_masking_puts_activations_out(kind: str) -> None:
    """Of a sigmoid a pre-activation of 0 would not."""
    G, rng = dense(kind=kind), np.random.default_rng(4)
    h, mask = G.forward(query(G), to=2), rng.random(20) < 0.5
    a = np.maximum(h, 0) if kind == "Relu" else 1 / (1 + np.exp(-h))
    W, b = (cases.dense_weights(0, (LATENT, 24, 20, 16))[name] for name in ("W3", "b3"))
    expected = np.tanh((a * mask) @ W + b).reshape(IMAGE)
    np.testing.assert_allclose(G.decode(h, frm=2, mask=mask), expected, atol=1e-6)
    np.testing.assert_allclose(G.decode(a, frm=2, mask=mask, activated=True), expected, atol=1e-6)
    many = G.decode(h, frm=2, mask=np.stack([mask, ~mask]))
    np.testing.assert_allclose(many[0], expected, atol=1e-6)
    assert np.abs(many[1] - expected).max() > 1e-3


def test_gated_activations_are_one_layer() -> None:
    nodes = [
        gemm(),
        helper.make_node("Sigmoid", ["c"], ["gate"]),
        helper.make_node("Mul", ["c", "gate"], ["swish"]),
        helper.make_node("Gemm", ["swish", "V", "v"], ["e"]),
        helper.make_node("Div", ["e", "root"], ["scaled"]),
        helper.make_node("Erf", ["scaled"], ["erf"]),
        helper.make_node("Add", ["erf", "one"], ["more"]),
        helper.make_node("Mul", ["e", "more"], ["twice"]),
        helper.make_node("Mul", ["twice", "half"], ["gelu"]),
        helper.make_node("MatMul", ["gelu", "V"], ["x"]),
    ]
    square = {"V": np.eye(4, dtype=np.float32), "v": np.ones(4, np.float32)}
    numbers = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    G = Generator(write(nodes, parts() | square | numbers))
    assert [(layer.name, layer.activation, layer.activated) for layer in G.layers] == [
        ("c", "Swish", "swish"),
        ("e", "Gelu", "gelu"),
    ]
    z = query(G)
    np.testing.assert_allclose(G.decode(G.forward(z, to=1), frm=1), G.forward(z), atol=1e-6)


def test_many_readers_of_a_tensor_are_no_activation_of_many_nodes() -> None:
    """Nor do they take time in proportion to the square of their number."""
    gates = [helper.make_node("Sigmoid", ["c"], [f"gate{k}"]) for k in range(3000)]
    total = helper.make_node("Sum", [gate.output[0] for gate in gates], ["x"])
    start = time.perf_counter()
    G = Generator(write([gemm(), *gates, total], parts()))
    assert [(layer.name, layer.activation) for layer in G.layers] == [("c", "Sigmoid")]
    assert time.perf_counter() - start < 10


def test_a_batch_read_from_the_latent_is_read_from_the_cut() -> None:
    """As exporters write x.view(z.shape[0], ...)."""
    nodes = [
        helper.make_node("Shape", ["z"], ["n"], start=0, end=1),
        helper.make_node("Concat", ["n", "rest"], ["sides"], axis=0),
        gemm(),
        relu("a"),
        helper.make_node("Reshape", ["a", "sides"], ["x"]),
    ]
    G = Generator(write(nodes, parts() | {"rest": np.array([2, 2])}))
    Z = np.random.default_rng(0).standard_normal((3, LATENT))
    np.testing.assert_array_equal(G.decode(G.forward(Z, to=1), frm=1), G.forward(Z))


def test_a_layer_that_the_image_does_not_all_go_through_is_not_decoded() -> None:
    nodes = [
        gemm(),
        relu("a"),
        helper.make_node("MatMul", ["z", "W"], ["y"]),
        helper.make_node("Add", ["a", "y"], ["x"]),
    ]
    G = Generator(write(nodes, parts()))
    with pytest.raises(fo.InputError, match=r"generator\.onnx: expected a layer that all of the output goes through"):
        G.decode(G.forward(query(G), to=1), frm=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": [helper.make_node("Gemm", ["z", "W", "b"], ["x"])]}, "expected layers with activations"),
        ({"shape": (1, LATENT)}, "found a fixed batch of 1"),
        ({"shape": ("batch", 2, 3)}, "expected latent vectors"),
        ({"inputs": ("z", "noise")}, "expected one input, found z, noise"),
    ],
)
def test_files_that_are_no_generators_are_named(change: dict, message: str) -> None:
    path = write(change.pop("nodes", [gemm(), relu()]), parts(), **change)
    with pytest.raises(fo.FileFormatError, match=message) as caught:
        Generator(path)
    assert str(path) in str(caught.value)


def test_weights_and_rows_must_be_sound() -> None:
    constants = parts()
    constants["b"][1] = np.inf
    with pytest.raises(fo.FileFormatError, match="expected finite weights"):
        Generator(write([gemm(), relu()], constants))
    noise = [gemm("y"), helper.make_node("RandomNormalLike", ["y"], ["e"]), helper.make_node("Add", ["y", "e"], ["c"])]
    with pytest.raises(fo.FileFormatError, match="do not depend on each other or on chance"):
        Generator(write([*noise, relu()], parts()))
    with pytest.raises(fo.FileFormatError, match="missing"):
        Generator(Path("missing.onnx"))
    words = cases.folder() / "words.onnx"
    words.write_text("not a model")
    with pytest.raises(fo.FileFormatError, match=r"words\.onnx"):
        Generator(words)


def test_rows_that_depend_on_each_other_are_refused() -> None:
    centred = helper.make_node("ReduceMean", ["y"], ["mean"], axes=[0], keepdims=1)
    nodes = [gemm("y"), centred, helper.make_node("Sub", ["y", "mean"], ["c"]), relu()]
    with pytest.raises(fo.FileFormatError, match="evaluation mode"):
        Generator(write(nodes, parts()))


def test_arguments_are_checked() -> None:
    G = dense()
    for call, message in (
        (lambda: G.forward(np.zeros(3)), r"z: expected shape \(6,\) or \(batch, 6\)"),
        (lambda: G.forward(query(G), to=4), "to: expected a layer from 1 to 3, found 4"),
        (lambda: G.forward(query(G), to=0), "to: expected a whole number >= 1"),
        (lambda: G.decode(np.zeros(3), frm=1), "h: expected shape"),
        (lambda: G.decode(np.zeros((3, 24)), frm=1, mask=np.ones((2, 24))), "mask: expected one row, or 3"),
        (lambda: G.forward(np.full(LATENT, np.nan)), "z: expected finite numbers"),
    ):
        with pytest.raises(fo.InputError, match=message):
            call()


def test_what_a_discriminator_sees() -> None:
    D, G = discriminator(), dense()
    assert [layer.activation for layer in D.layers] == ["LeakyRelu", "Sigmoid"]
    X = G.forward(np.random.default_rng(0).standard_normal((7, LATENT)))
    c = D.forward(X, to=1)
    np.testing.assert_allclose(D.features(X, 1), np.where(c > 0, c, 0.2 * c), rtol=1e-6)
    assert D.forward(X).shape == (7, 1)
    np.testing.assert_array_equal(D.forward(X.reshape(7, -1)), D.forward(X))
    assert D.features(X[0], 1).shape == (12,)


def test_a_discriminator_that_compares_images_sees_them_alone() -> None:
    nodes = [
        helper.make_node("ReduceMean", ["z"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["z", "mean"], ["apart"]),
        helper.make_node("Add", ["z", "apart"], ["c"]),
        relu(),
    ]
    D = Discriminator(write(nodes, {}, ("batch", 5)))
    X = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    assert D.alone
    np.testing.assert_array_equal(D.forward(X), np.maximum(X, 0))


def test_no_torch_is_needed() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, flipopt as fo\n"
        f"G = fo.generative.Generator({str(cases.dense_file())!r})\n"
        "tree = fo.generative.explore(G, np.ones(6), 2, [0, 1], expansions=20)\n"
        "assert tree.verified.all() and len(tree.accepted) > 1\n"
        "print(G.decode(G.forward(np.zeros(6), to=2), frm=2).shape)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(IMAGE)


def test_the_cut_model_holds_no_weights_of_the_rest() -> None:
    G = convolutional()
    model = G.part(G.layers[-1].name, G.layers[-1].shape, G.output_name)
    assert not model.graph.initializer
    assert len(model.graph.node) == 1
