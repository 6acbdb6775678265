"""ONNX files from strangers: what cannot be read or translated is named by file, node and operator."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flipopt as fo
from tests.networks.onnx_cases import torch

assert torch

KERNEL = np.ones((2, 1, 3, 3), dtype=np.float32)
W = np.ones((4, 3), dtype=np.float32)
Build = Callable[[], onnx.ModelProto]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def node(op: str, *inputs: str, out: str = "y", name: str = "culprit", domain: str = "", **facts) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [out], name=name, domain=domain, **facts)


def model(nodes, constants=None, sides=(1, 4, 4), kind: int = TensorProto.FLOAT, output="y", opset: int = 17) -> Build:
    """A graph that takes ``sides`` and, unless they end in scores, is flattened at the end."""

    def build() -> onnx.ModelProto:
        arrays = {"K": KERNEL, "W": W, **(constants or {})}
        inputs = [helper.make_tensor_value_info("x", kind, ["batch", *sides])]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
        graph = helper.make_graph(list(nodes), "g", inputs, outputs, tensors)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    return build


def one(op: str, *constants: str, extra=None, sides=(1, 4, 4), opset: int = 17, domain: str = "", **facts) -> Build:
    """One node named culprit on the input, flattened."""
    nodes = [node(op, "x", *constants, out="t", domain=domain, **facts), node("Flatten", "t", name="last")]
    return model(nodes, extra, sides, opset=opset)


ML = "ai.onnx.ml"


def linear_classifier(**facts) -> onnx.NodeProto:
    names = {"name": "culprit", "domain": ML, "classlabels_ints": [0, 1]}
    return helper.make_node("LinearClassifier", ["x"], ["label", "y"], **names, **facts)


REFUSED: dict[str, tuple[Build, str]] = {
    "unknown operator": (one("Frobnicate"), r"node 'culprit' \(Frobnicate\): not an operator"),
    "unknown domain": (one("Relu", domain="com.evil"), r"node 'culprit' \(com.evil.Relu\): not an operator"),
    "rounding": (one("Floor"), r"node 'culprit' \(Floor\): not an operator"),
    "a recurrent layer": (one("LSTM", "K", "K", hidden_size=2), r"node 'culprit' \(LSTM\)"),
    "a random operator": (one("RandomNormalLike"), r"node 'culprit' \(RandomNormalLike\)"),
    "a tree ensemble": (
        one("TreeEnsembleClassifier", sides=(4,), domain=ML),
        r"node 'culprit' \(ai.onnx.ml.TreeEnsembleClassifier\)",
    ),
    "a convolution of the wrong channels": (one("Conv", "K", sides=(3, 4, 4)), r"node 'culprit' \(Conv\): "),
    "a convolution with weights that are not known": (
        one("Conv", "x"),
        r"node 'culprit' \(Conv\): expected a constant",
    ),
    "a convolution with a wrong kernel shape": (
        one("Conv", "K", kernel_shape=[2, 2]),
        r"node 'culprit' \(Conv\): expected a kernel of shape \[3, 3\]",
    ),
    "a convolution with too few pads": (one("Conv", "K", pads=[1, 1]), r"node 'culprit' \(Conv\): expected 4 pads"),
    "a convolution with stride 0": (one("Conv", "K", strides=[0, 1]), r"\(Conv\): expected 2 positive strides"),
    "a convolution without weights": (one("Conv"), r"node 'culprit' \(Conv\)"),
    "NaN in a kernel": (one("Conv", "K", extra={"K": KERNEL * np.nan}), "K holds NaN$"),
    "infinity in a kernel": (
        one("Conv", "K", extra={"K": KERNEL * np.inf}),
        r"node 'culprit' \(Conv\): K holds NaN or infinity",
    ),
    "pooling without a kernel": (one("MaxPool"), r"node 'culprit' \(MaxPool\): expected 1 to 3 spatial axes"),
    "pooling with a kernel too large": (one("MaxPool", kernel_shape=[9, 9]), r"node 'culprit' \(MaxPool\): "),
    "batch norm in training": (
        one("BatchNormalization", "g", "g", "g", "g", extra={"g": np.ones(1, np.float32)}, training_mode=1),
        r"node 'culprit' \(BatchNormalization\): expected the statistics of the training",
    ),
    "dropout in training": (
        one("Dropout", "r", "t1", extra={"r": np.float32(0.5), "t1": np.array(True)}),
        r"node 'culprit' \(Dropout\): expected a dropout that is off",
    ),
    "a reshape that does not fit": (one("Reshape", "s", extra={"s": ints(0, 5, -1)}), r"node 'culprit' \(Reshape\): "),
    "a memory bomb": (
        one("Expand", "s", extra={"s": ints(1, 1000000, 4000, 4000)}, sides=(1, 1, 1)),
        r"node 'culprit' \(Expand\): elements of .*: expected at most",
    ),
    "a memory bomb of constants": (
        model(
            [
                node("ConstantOfShape", "s", out="t"),
                node("ReduceSum", "t", out="u", name="b"),
                node("Add", "x", "u", out="v", name="c"),
                node("Flatten", "v", name="d"),
            ],
            {"s": ints(100000, 100000)},
        ),
        r"node 'culprit' \(ConstantOfShape\): elements of .*: expected at most",
    ),
    "padding by a file": (
        one("Pad", "p", extra={"p": ints(0, 0, 2**40, 0, 0, 0, 0, 0)}),
        r"node 'culprit' \(Pad\): elements of .*: expected at most",
    ),
    "padding by a convolution": (
        one("Conv", "K", pads=[2**20] * 4),
        r"node 'culprit' \(Conv\): elements of .*: expected at most",
    ),
    "padding by a pooling": (
        one("MaxPool", kernel_shape=[2**20 + 1] * 2, pads=[2**20] * 4),
        r"node 'culprit' \(MaxPool\): elements of .*: expected at most",
    ),
    "a convolution with very many outputs": (
        one("Conv", "K", extra={"K": np.ones((2**14, 1, 1, 1), np.float32)}, pads=[2**9] * 4),
        r"node 'culprit' \(Conv\): elements of .*: expected at most",
    ),
    "a transposed convolution with huge strides": (
        one("ConvTranspose", "K", extra={"K": np.ones((1, 2, 3, 3), np.float32)}, strides=[2**20] * 2),
        r"node 'culprit' \(ConvTranspose\): elements of .*: expected at most",
    ),
    "a huge input": (
        model([node("ReduceMean", "x", axes=[1], keepdims=0)], sides=(2**20, 2**20)),
        "elements of input 'x' of shape .*: expected at most",
    ),
    "an index out of range": (one("Gather", "i", extra={"i": ints(7)}, axis=2), r"node 'culprit' \(Gather\): "),
    "an axis out of range": (one("Transpose", perm=[0, 1, 9, 2]), r"node 'culprit' \(Transpose\): "),
    "a cast to text": (one("Cast", to=TensorProto.STRING), r"node 'culprit' \(Cast\): a cast to STRING"),
    "a resize by cubics": (
        one("Resize", "", "s", extra={"s": np.array([1, 1, 2, 2], np.float32)}, mode="cubic"),
        r"node 'culprit' \(Resize\): mode cubic is not translated",
    ),
    "a resize by other neighbours": (
        one("Resize", "", "s", extra={"s": np.array([1, 1, 2, 2], np.float32)}, mode="nearest", nearest_mode="ceil"),
        r"node 'culprit' \(Resize\): nearest neighbours by half_pixel and ceil are not translated",
    ),
    "an input from nowhere": (one("Add", "nothing"), r"node 'culprit' \(Add\): .*computes its input 'nothing'"),
    "a circle": (
        model(
            [node("Add", "x", "b", out="a"), node("Add", "a", "x", out="b", name="n"), node("Flatten", "b", name="f")]
        ),
        r"node 'culprit' \(Add\): nothing before it computes its input 'b'",
    ),
    "a division by zero": (
        one("Div", "z", extra={"z": np.zeros(4, np.float32)}),
        r"node 'culprit' \(Div\): expected a division by numbers other than 0",
    ),
    "logarithms of negative numbers": (
        model([node("Neg", "x", out="t", name="a"), node("Log", "t", out="u"), node("Flatten", "u", name="f")]),
        r"node 'culprit' \(Log\): makes NaN or infinity",
    ),
    "rows that depend on each other": (
        one("ReduceMean", axes=[0]),
        "net.onnx: expected rows that do not depend on the others",
    ),
    "scores without a batch": (
        model([node("ReduceSum", "x", keepdims=0)]),
        r"node 'culprit' \(ReduceSum\): expected scores",
    ),
    "scores of too many axes": (
        model([node("Relu", "x")], sides=(2, 4, 4)),
        r"tensor 'y': expected scores of shape \(batch, classes\)",
    ),
    "a softmax over the batch": (
        model([node("Flatten", "x", out="t"), node("Softmax", "t", axis=0)]),
        r"node 'culprit' \(Softmax\): expected a softmax over the classes",
    ),
    "coefficients that do not fit": (
        model([linear_classifier(coefficients=[1.0] * 7, intercepts=[0.0, 0.0])], sides=(4,)),
        r"node 'culprit' \(ai.onnx.ml.LinearClassifier\): expected coefficients and intercepts for each of 2 classes",
    ),
    "coefficients for other inputs": (
        model([linear_classifier(coefficients=[1.0] * 6, intercepts=[0.0, 0.0])], sides=(4,)),
        r"node 'culprit' \(ai.onnx.ml.LinearClassifier\): ",
    ),
    "an unknown transform": (
        model([linear_classifier(coefficients=[1.0] * 8, intercepts=[0.0, 0.0], post_transform="PROBIT")], sides=(4,)),
        r"node 'culprit' \(ai.onnx.ml.LinearClassifier\): post_transform PROBIT is not translated",
    ),
    "an old opset": (one("Relu", opset=6), "net.onnx: expected operators of opset 7 or later, found 6"),
    "integers as input": (
        model([node("Flatten", "x")], kind=TensorProto.INT64),
        "input 'x': expected floats, found INT64",
    ),
    "sides that are not known": (model([node("Flatten", "x")], sides=(1, "height", 4)), "with known sides"),
    "an output that nobody computes": (
        model([node("Flatten", "x")], output="elsewhere"),
        "no node computes the output 'elsewhere'",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_file_is_named_with_its_node_and_operator(kind: str, tmp_path: Path) -> None:
    build, message = REFUSED[kind]
    (tmp_path / "net.onnx").write_bytes(build().SerializeToString())
    with pytest.raises(fo.FileFormatError, match=message) as caught:
        fo.load_network(tmp_path / "net.onnx")
    assert str(caught.value).startswith(str(tmp_path / "net.onnx"))
    assert len(str(caught.value)) < 600


def labels_alone() -> onnx.ModelProto:
    built = model([node("Flatten", "x", out="t", name="f"), node("ArgMax", "t", axis=1)])()
    built.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    return built


def two_inputs() -> onnx.ModelProto:
    built = model([node("Add", "x", "x2", out="t"), node("Flatten", "t", name="f")])()
    built.graph.input.append(helper.make_tensor_value_info("x2", TensorProto.FLOAT, ["batch", 1, 4, 4]))
    return built


def no_output() -> onnx.ModelProto:
    built = model([node("Flatten", "x")])()
    del built.graph.output[:]
    return built


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (labels_alone, r"node 'culprit' \(ArgMax\): expected scores among the outputs, found labels alone"),
        (two_inputs, r"expected one input, found x, x2"),
        (no_output, "the graph has no output"),
    ],
)
def test_what_is_no_classifier_is_refused(build: Build, message: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(build().SerializeToString())
    with pytest.raises(fo.FileFormatError, match=rf"net.onnx: {message}"):
        fo.load_network(tmp_path / "net.onnx")


def external(folder: Path, **facts: str) -> Path:
    """A good network whose kernel lies in weights.bin, with some of what is said of it replaced."""
    built = one("Conv", "K")()
    tensor = built.graph.initializer[0]
    (folder / "weights.bin").write_bytes(b"\0" * 8 + tensor.raw_data)
    said = {"location": "weights.bin", "offset": "8", "length": str(len(tensor.raw_data)), **facts}
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in said.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "net.onnx").write_bytes(built.SerializeToString())
    return folder / "net.onnx"


def test_data_beside_the_file_are_read(tmp_path: Path) -> None:
    net = fo.load_network(external(tmp_path))
    np.testing.assert_allclose(net.logits(np.ones(16)), np.full(8, 9.0))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"location": "../weights.bin"}, "only if it is in the same folder"),
        ({"location": "/etc/passwd"}, "only if it is in the same folder"),
        ({"location": "folder/weights.bin"}, "only if it is in the same folder"),
        ({"location": ""}, "only if it is in the same folder"),
        ({"location": ".."}, "only if it is in the same folder"),
        ({"location": "missing.bin"}, "expected the file 'missing.bin' beside the model"),
        ({"location": "link.bin"}, "expected the file 'link.bin' beside the model"),
        ({"location": "folder"}, "expected the file 'folder' beside the model"),
        ({"offset": "9"}, "expected 81 bytes in weights.bin, found 80"),
        ({"offset": "-8"}, "expected a whole number"),
        ({"offset": "1e3"}, "expected a whole number"),
        ({"length": "71"}, r"expected 72 bytes for shape \(2, 1, 3, 3\), found 71"),
        ({"length": "999999999999"}, "expected 72 bytes"),
    ],
)
def test_data_elsewhere_or_of_another_size_are_not_read(facts: dict[str, str], message: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    secret = tmp_path / "weights.bin"
    secret.write_bytes(b"\0" * 200)
    os.symlink(secret, home / "link.bin")
    path = external(home, **facts)
    with pytest.raises(fo.FileFormatError, match=message) as caught:
        fo.load_network(path)
    assert "net.onnx: the data of tensor 'K'" in str(caught.value)


def test_data_elsewhere_are_not_read_for_a_branch_either(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(np.ones(3, np.float32).tobytes())
    tensor = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../secret.bin")
    made = helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])
    branch = helper.make_graph([node("Identity", "k", out="o")], "b", [], [made], [tensor])
    choice = node("If", "yes", out="w", then_branch=branch, else_branch=branch)
    built = model([choice, node("Add", "x", "w", name="sum")], {"yes": np.array(True)}, (3,))()
    home = tmp_path / "home"
    home.mkdir()
    (home / "net.onnx").write_bytes(built.SerializeToString())
    with pytest.raises(fo.FileFormatError, match="the data of tensor 'k' are in '../secret.bin'"):
        fo.OnnxNetwork(home / "net.onnx", control_flow=True)


def test_the_note_tells_of_a_logsoftmax_that_is_taken_off(tmp_path: Path) -> None:
    for kind, note in (("LogSoftmax", "the logits are what goes into the last LogSoftmax"), ("Softmax", "")):
        built = model([node("Flatten", "x", out="t"), node(kind, "t", axis=1)])()
        (tmp_path / "net.onnx").write_bytes(built.SerializeToString())
        assert fo.OnnxNetwork(tmp_path / "net.onnx").note == note


def test_too_much_data_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = external(tmp_path)
    monkeypatch.setenv("FLIPOPT_MAX_BYTES", str(4 * path.stat().st_size))
    with pytest.raises(fo.FileFormatError, match="bytes that it takes in memory: expected at most"):
        fo.load_network(path)
    path = external(tmp_path, location="many.bin", offset="0", length=str(4 * 2**30))
    built = onnx.load(path, load_external_data=False)
    built.graph.initializer[0].dims[:] = [2**30]
    path.write_bytes(built.SerializeToString())
    with (tmp_path / "many.bin").open("wb") as file:
        file.truncate(4 * 2**30)  # a file of holes, which takes no room on the disk
    monkeypatch.delenv("FLIPOPT_MAX_BYTES")
    with pytest.raises(fo.FileFormatError, match=r"tensor 'K': bytes: expected at most \d+, found 4294967296"):
        fo.load_network(path)


def test_flipped_bytes_give_a_network_or_an_error_that_names_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "net.onnx"
    sources = [
        one("Conv", "K", pads=[1, 1, 1, 1])().SerializeToString(),
        model([linear_classifier(coefficients=[1.0] * 8, intercepts=[0.0, 0.0])], sides=(4,))().SerializeToString(),
    ]
    messages = []
    for k in range(200):
        content = bytearray(sources[k % 2])
        content[rng.integers(len(content))] = rng.integers(256)
        path.write_bytes(bytes(content))
        try:
            net = fo.load_network(path)
            with np.errstate(all="ignore"):  # a weight may have become huge
                net.logits(np.zeros((2, net.n_inputs)))
        except fo.FileFormatError as error:
            messages.append(str(error))
    assert all(message.startswith(str(path)) for message in messages)
    assert 50 < len(messages) < 190


def test_an_operator_without_translation_can_still_be_evaluated(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(one("Floor")().SerializeToString())
    net = fo.OnnxNetwork(tmp_path / "net.onnx")
    assert net.logits(np.full(16, 1.5)).tolist() == [1.0] * 16
    with pytest.raises(fo.DerivativeError, match=r"net.onnx: node 'culprit' \(Floor\)"):
        net.jacobian(np.ones(16))


def test_names_that_a_graph_does_not_have_are_bad_arguments(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(one("Conv", "K")().SerializeToString())
    with pytest.raises(fo.InputError, match="output: expected a tensor of the graph, found 'z'"):
        fo.OnnxNetwork(tmp_path / "net.onnx", output="z")
    with pytest.raises(fo.InputError, match="embedding: expected a tensor of the graph, found 'z'"):
        fo.OnnxNetwork(tmp_path / "net.onnx", embedding="z")
    net = fo.OnnxNetwork(tmp_path / "net.onnx", embedding="t")
    assert net.embedding(np.ones((3, 16))).shape == (3, 8)
