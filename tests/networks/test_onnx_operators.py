"""Every operator that is translated computes what onnxruntime computes, in the forms of old and new opsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flipopt as fo
from tests.networks.onnx_cases import central_differences

RNG = np.random.default_rng(0)
IMAGE, ROWS, SEQUENCE = (3, 6, 6), (5,), (4, 6)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def number(value: float) -> np.ndarray:
    return np.array(value, dtype=np.float32)


def case(op: str, *constants, shape=ROWS, opset: int = 20, before: str = "", outputs: int = 1, **facts) -> tuple:
    """A graph of one node with the input first, and constants (None: left out) after it."""
    return op, constants, shape, opset, before, outputs, facts


DOUBLED = np.array([1, 1, 2, 2], dtype=np.float32)
TRIPLED = np.array([1, 1, 3, 3], dtype=np.float32)
SIZE = ints(1, 3, 4, 9)
CASES = {
    "add": case("Add", normal(5)),
    "sub": case("Sub", normal(5)),
    "mul": case("Mul", normal(5)),
    "div": case("Div", 2 + np.abs(normal(5))),
    "pow 2": case("Pow", number(2.0)),
    "pow 1.5": case("Pow", number(1.5), before="Exp"),
    "pow 3 at opset 7": case("Pow", number(3.0), opset=7),
    "sqrt": case("Sqrt", before="Exp"),
    "exp": case("Exp"),
    "log": case("Log", before="Exp"),
    "neg": case("Neg"),
    "abs": case("Abs"),
    "reciprocal": case("Reciprocal", before="Exp"),
    "sin": case("Sin"),
    "cos": case("Cos"),
    "erf": case("Erf"),
    "relu": case("Relu"),
    "leaky relu": case("LeakyRelu", alpha=0.2),
    "prelu with one slope": case("PRelu", normal(1)),
    "prelu with a slope a column": case("PRelu", normal(5)),
    "prelu with a slope a channel": case("PRelu", normal(3, 1, 1), shape=IMAGE),
    "prelu with a slope a pixel": case("PRelu", normal(3, 6, 6), shape=IMAGE),
    "elu": case("Elu", alpha=0.7),
    "selu": case("Selu"),
    "celu": case("Celu", alpha=0.7),
    "hard sigmoid": case("HardSigmoid", alpha=0.3, beta=0.4),
    "hard swish": case("HardSwish"),
    "clip": case("Clip", number(-0.5), number(0.8)),
    "clip from 0": case("Clip", number(0.0)),
    "clip from below": case("Clip", number(-0.3)),
    "clip from above": case("Clip", None, number(0.4)),
    "clip of relu6": case("Clip", opset=10, min=0.0, max=6.0),
    "clip of nothing": case("Clip"),
    "max": case("Max", normal(5)),
    "min": case("Min", normal(5)),
    "sum": case("Sum", normal(5), normal(5)),
    "sigmoid": case("Sigmoid", before="Neg"),
    "tanh": case("Tanh"),
    "gelu": case("Gelu"),
    "gelu by tanh": case("Gelu", approximate="tanh"),
    "softplus": case("Softplus"),
    "softsign": case("Softsign"),
    "mish": case("Mish"),
    "dropout": case("Dropout", outputs=1),
    "dropout at opset 11": case("Dropout", opset=11, ratio=0.3),
    "cast": case("Cast", to=TensorProto.FLOAT),
    "softmax of a sequence": case("Softmax", shape=SEQUENCE, axis=1),
    "softmax at opset 11": case("Softmax", shape=SEQUENCE, opset=11, axis=1),
    "log-softmax of a sequence": case("LogSoftmax", shape=SEQUENCE),
    "gemm": case("Gemm", normal(4, 5), normal(4), transB=1, alpha=0.5, beta=2.0),
    "gemm without bias": case("Gemm", normal(5, 4)),
    "matmul": case("MatMul", normal(6, 3), shape=SEQUENCE),
    "einsum": case("Einsum", normal(6, 3), shape=SEQUENCE, equation="bij,jk->bik"),
    "conv": case("Conv", normal(4, 3, 3, 3), normal(4), shape=IMAGE, pads=[1, 1, 1, 1], strides=[2, 1]),
    "conv in groups": case("Conv", normal(6, 1, 3, 3), shape=IMAGE, group=3, dilations=[2, 1]),
    "conv with uneven pads": case("Conv", normal(2, 3, 2, 2), shape=IMAGE, pads=[0, 1, 1, 0]),
    "conv with the same shape": case("Conv", normal(2, 3, 2, 3), shape=IMAGE, auto_pad="SAME_UPPER", strides=[2, 2]),
    "conv with the same shape, lower": case("Conv", normal(2, 3, 2, 2), shape=IMAGE, auto_pad="SAME_LOWER"),
    "conv of a sequence": case("Conv", normal(2, 4, 3), shape=SEQUENCE),
    "transposed conv": case("ConvTranspose", normal(3, 2, 3, 3), normal(2), shape=IMAGE, strides=[2, 2], pads=[1] * 4),
    "transposed conv, uneven": case(
        "ConvTranspose", normal(3, 2, 3, 3), shape=IMAGE, strides=[2, 2], pads=[0, 1, 1, 0], output_padding=[1, 1]
    ),
    "max-pooling": case("MaxPool", shape=IMAGE, kernel_shape=[2, 2], strides=[2, 2]),
    "max-pooling with pads": case("MaxPool", shape=IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    "max-pooling with uneven pads": case("MaxPool", shape=IMAGE, kernel_shape=[3, 3], pads=[0, 0, 1, 1]),
    "max-pooling, rounded up": case("MaxPool", shape=IMAGE, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "max-pooling of a sequence": case("MaxPool", shape=SEQUENCE, kernel_shape=[2]),
    "average pooling": case("AveragePool", shape=IMAGE, kernel_shape=[2, 2], strides=[2, 2]),
    "average pooling with pads": case("AveragePool", shape=IMAGE, kernel_shape=[3, 3], pads=[1] * 4),
    "average pooling that counts pads": case(
        "AveragePool", shape=IMAGE, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1
    ),
    "average pooling with uneven pads": case("AveragePool", shape=IMAGE, kernel_shape=[3, 3], pads=[0, 0, 1, 1]),
    "global average": case("GlobalAveragePool", shape=IMAGE),
    "global maximum": case("GlobalMaxPool", shape=IMAGE),
    "batch norm": case(
        "BatchNormalization", normal(3), normal(3), normal(3), np.abs(normal(3)), shape=IMAGE, epsilon=1e-3
    ),
    "layer norm": case("LayerNormalization", normal(6), normal(6), shape=SEQUENCE),
    "layer norm without bias": case("LayerNormalization", normal(4, 6), shape=SEQUENCE, axis=1),
    "instance norm": case("InstanceNormalization", normal(3), normal(3), shape=IMAGE),
    "group norm": case("GroupNormalization", normal(3), normal(3), shape=IMAGE, opset=21, num_groups=1),
    "reshape": case("Reshape", ints(0, -1, 2), shape=SEQUENCE),
    "flatten": case("Flatten", shape=IMAGE),
    "transpose": case("Transpose", shape=SEQUENCE, perm=[0, 2, 1]),
    "split": case("Split", ints(2, 4), shape=SEQUENCE, axis=2, outputs=2),
    "split in two": case("Split", shape=SEQUENCE, opset=18, axis=1, outputs=2, num_outputs=2),
    "split at opset 11": case("Split", shape=SEQUENCE, opset=11, axis=1, outputs=2, split=[1, 3]),
    "slice": case("Slice", ints(1, 0), ints(9223372036854775807, -1), ints(2, 1), ints(2, 1), shape=SEQUENCE),
    "slice backwards": case("Slice", ints(-1), ints(-9223372036854775807), ints(2), ints(-1), shape=SEQUENCE),
    "slice at opset 9": case("Slice", shape=SEQUENCE, opset=9, starts=[1], ends=[3], axes=[1]),
    "gather one": case("Gather", np.array(-1), shape=SEQUENCE, axis=1),
    "gather some": case("Gather", ints(2, 0, -1), shape=SEQUENCE, axis=1),
    "gather a table": case("Gather", np.array([[0, 1], [2, 3]]), shape=SEQUENCE, axis=2),
    "squeeze": case("Squeeze", ints(1), shape=(1, 5)),
    "squeeze at opset 11": case("Squeeze", shape=(1, 5), opset=11, axes=[1]),
    "unsqueeze": case("Unsqueeze", ints(1, -1)),
    "unsqueeze at opset 11": case("Unsqueeze", opset=11, axes=[2]),
    "expand": case("Expand", ints(1, 3, 5), shape=(1, 5)),
    "tile": case("Tile", ints(1, 2)),
    "pad": case("Pad", ints(0, 0, 1, 2, 0, 0, 0, 1), number(0.5), shape=IMAGE),
    "pad some axes": case("Pad", ints(1, 2), None, ints(-1), shape=IMAGE),
    "pad by reflection": case("Pad", ints(0, 0, 1, 2, 0, 0, 0, 1), shape=IMAGE, mode="reflect"),
    "pad by the edge": case("Pad", ints(0, 0, 1, 2, 0, 0, 0, 1), shape=IMAGE, mode="edge"),
    "pad at opset 10": case("Pad", shape=IMAGE, opset=10, pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.5),
    "resize to nearest": case(
        "Resize", None, DOUBLED, shape=IMAGE, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    ),
    "resize to nearest by halves": case("Resize", None, DOUBLED, shape=IMAGE, mode="nearest"),
    "resize to nearest by thirds": case("Resize", None, TRIPLED, shape=IMAGE, mode="nearest"),
    "resize at opset 10": case("Resize", DOUBLED, shape=IMAGE, opset=10, mode="nearest"),
    "upsample": case("Upsample", DOUBLED, shape=IMAGE, opset=9, mode="nearest"),
    "resize linearly": case("Resize", None, np.array([1, 1, 2, 1.5], np.float32), shape=IMAGE, mode="linear"),
    "resize to a size": case("Resize", None, None, SIZE, shape=IMAGE, mode="linear"),
    "resize with corners": case(
        "Resize", None, DOUBLED, shape=IMAGE, mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
    "reduce mean": case("ReduceMean", ints(-1, -2), shape=IMAGE, keepdims=0),
    "reduce mean at opset 13": case("ReduceMean", shape=IMAGE, opset=13, axes=[2, 3]),
    "reduce sum": case("ReduceSum", ints(1), shape=SEQUENCE),
    "reduce sum of squares": case("ReduceSumSquare", ints(1), shape=SEQUENCE),
    "reduce to the 1-norm": case("ReduceL1", ints(1), shape=SEQUENCE),
    "reduce to the 2-norm": case("ReduceL2", ints(1), shape=SEQUENCE),
    "reduce to the log of the sum": case("ReduceLogSumExp", ints(1), shape=SEQUENCE),
    "reduce to the maximum": case("ReduceMax", ints(1), shape=SEQUENCE, keepdims=0),
    "reduce to the minimum": case("ReduceMin", ints(2), shape=SEQUENCE),
    "reduce to the product": case("ReduceProd", ints(2), shape=SEQUENCE),
    "where": case("Where"),
}  # fmt: skip


def write(name: str, path: Path) -> tuple[int, ...]:
    """The graph of a case, its outputs joined and flattened; the shape of one input."""
    op, constants, shape, opset, before, outputs, facts = CASES[name]
    arrays = {}
    inputs = ["u" if before else "x"]
    nodes = [helper.make_node(before, ["x"], ["u"])] if before else []
    for k, constant in enumerate(constants):
        inputs.append("" if constant is None else f"c{k}")
        if constant is not None:
            arrays[f"c{k}"] = constant
    if op == "Where":
        arrays = {"condition": np.array([True, False, True, True, False]), "other": normal(5)}
        inputs = ["condition", "x", "other"]
    made = [f"y{k}" for k in range(outputs)]
    nodes.append(helper.make_node(op, inputs, made, **facts))
    nodes += [helper.make_node("Flatten", [y], [f"f{y}"]) for y in made]
    nodes.append(helper.make_node("Concat", [f"f{y}" for y in made], ["scores"], axis=1))
    graph = helper.make_graph(
        nodes,
        "one operator",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, key) for key, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return shape


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_onnxruntime_gives(name: str, tmp_path: Path) -> None:
    shape = write(name, tmp_path / "net.onnx")
    net = fo.OnnxNetwork(tmp_path / "net.onnx")
    assert net.why_no_derivatives == ""
    X = np.random.default_rng(1).standard_normal((4, int(np.prod(shape)))).astype(np.float32)
    expected = np.stack([net.intermediate(x, "scores").reshape(-1) for x in X])
    if net.note:
        assert net.note == "logits are the logarithms of the probabilities"
        expected = np.log(expected)
    np.testing.assert_allclose(net.logits(X), expected, rtol=1e-4, atol=1e-5)
    double = net.astype("float64")
    assert double.logits(X).dtype == np.float64
    x, d = X[0].astype(np.float64), np.random.default_rng(2).standard_normal(X.shape[1])
    np.testing.assert_allclose(double.jacobian(x) @ d, central_differences(double, x, d), rtol=1e-6, atol=1e-7)


def test_shape_arithmetic_of_older_exporters_is_followed(tmp_path: Path) -> None:
    """x.view(x.shape[0], -1) as Shape, Gather, Unsqueeze, Concat, Reshape, and x times a constant of its shape."""
    W = normal(12, 3)
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"], axis=0),
        helper.make_node("Unsqueeze", ["rows", "axis"], ["row"]),
        helper.make_node("Concat", ["row", "rest"], ["target"], axis=0),
        helper.make_node(
            "ConstantOfShape", ["shape"], ["twos"], value=numpy_helper.from_array(np.full(1, 2, np.float32))
        ),
        helper.make_node("Mul", ["x", "twos"], ["double"]),
        helper.make_node("Reshape", ["double", "target"], ["flat"]),
        helper.make_node("MatMul", ["flat", "W"], ["scores"]),
    ]
    arrays = {"zero": np.array(0), "axis": ints(0), "rest": ints(-1), "W": W}
    graph = helper.make_graph(
        nodes,
        "view",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 4])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, key) for key, array in arrays.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "net.onnx"
    )
    net = fo.load_network(tmp_path / "net.onnx").astype("float64")
    X = np.random.default_rng(0).random((7, 12))
    np.testing.assert_allclose(net.logits(X), 2 * X @ W, rtol=1e-12)
    np.testing.assert_allclose(net.jacobian(X[0]), 2 * W.T, rtol=1e-12)
