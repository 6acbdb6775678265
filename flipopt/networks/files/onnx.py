"""Dense networks as ONNX: MatMul, Add, Div and an activation node for every layer.

Read are chains of MatMul or Gemm with Add, Sub, Mul, Div, Erf, Relu, PRelu, LeakyRelu, Elu, Tanh, Flatten, Reshape to
rows, Dropout, Cast, Identity, Scaler, LinearClassifier and a final Softmax or Sigmoid. Any other graph is an
:class:`flipopt.OnnxNetwork`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.limits import limits, require_within
from flipopt.common.quoting import plain, quoted
from flipopt.common.writing import atomic_path
from flipopt.networks.activations import ELU, Activation, Erf, Identity, PReLU, ReLU, Tanh
from flipopt.networks.layers import Layers
from flipopt.networks.onnx_graph.model import (
    constants_of,
    data_input,
    input_sides,
    limited,
    operator,
    opset_of,
    read_model,
    where_is,
)
from flipopt.networks.onnx_graph.scores import Scores, attributes, choose_scores

OPSET, IR_VERSION = 17, 8
EXACT = "flipopt.exact."
"""Prefix of metadata that keep in full an attribute which ONNX can only hold in float32."""


def write(net: Layers, path: Path) -> None:
    """Write ``net`` to an ONNX file with input ``x`` (batch, n_inputs) and output ``logits``."""
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Array] = {}
    exact: dict[str, str] = {}
    current = "x"
    for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True), 1):
        constants[f"W{k}"], constants[f"b{k}"] = W, b
        last = k == net.n_layers
        nodes.append(helper.make_node("MatMul", [current, f"W{k}"], [f"product{k}"]))
        nodes.append(helper.make_node("Add", [f"product{k}", f"b{k}"], ["logits" if last else f"c{k}"]))
        if not last:
            nodes += _activation_nodes(net.activations[k - 1], k, net.dtype, constants, exact)
        current = f"y{k}"
    element = helper.np_dtype_to_tensor_dtype(net.dtype)
    graph = helper.make_graph(
        nodes,
        "flipopt dense network",
        [helper.make_tensor_value_info("x", element, ["batch", net.n_inputs])],
        [helper.make_tensor_value_info("logits", element, ["batch", net.n_classes])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="flipopt", opset_imports=opset, ir_version=IR_VERSION)
    helper.set_model_props(model, exact)
    with atomic_path(path) as temporary:
        temporary.write_bytes(model.SerializeToString())


def _activation_nodes(
    activation: Activation, k: int, dtype: np.dtype[Any], constants: dict[str, Array], exact: dict[str, str]
) -> list[onnx.NodeProto]:
    """The nodes from c<k> to y<k>; constants and exact attributes are added to."""
    c, y = f"c{k}", f"y{k}"
    parameter = np.asarray(activation.parameter_value, dtype=dtype)
    match activation:
        case Erf():
            constants[f"sigma{k}"] = parameter
            scaled = helper.make_node("Div", [c, f"sigma{k}"], [f"u{k}"])
            return [scaled, helper.make_node("Erf", [f"u{k}"], [y])]
        case ReLU():
            return [helper.make_node("Relu", [c], [y])]
        case PReLU():
            constants[f"alpha{k}"] = parameter.reshape(-1)
            return [helper.make_node("PRelu", [c, f"alpha{k}"], [y])]
        case ELU():
            if parameter.ndim:
                raise InputError(f"net: ONNX has no ELU with one alpha per neuron (layer {k}); use .npz")
            exact[EXACT + y] = float(activation.parameter_value).hex()
            return [helper.make_node("Elu", [c], [y], alpha=float(parameter))]
        case Tanh() | Identity():
            return [helper.make_node(type(activation).__name__, [c], [y])]
    raise InputError(f"net: {type(activation).__name__} (layer {k}) cannot be written to ONNX")


class NotDenseError(FileFormatError):
    """An ONNX file that is not a chain of dense layers; it may be another network."""


def read(path: Path) -> Layers:
    """The dense network of an ONNX file."""
    model = read_model(path)
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):  # hostile constants overflow when folded
            return _Chain(model, choose_scores(model)).network()
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError) as error:
        raise NotDenseError(f"{path}: {error}") from error


@dataclass(frozen=True)
class _Affine:
    """(prev A + b) / divisor; A None is the identity. The divisor is kept apart so that an erf's sigma stays exact."""

    A: Array | None = None
    b: Array = field(default_factory=lambda: np.zeros(1, dtype=np.float32))
    divisor: Array = field(default_factory=lambda: np.ones(1, dtype=np.float32))

    def times(self, W: Array) -> _Affine:
        """Followed by a product with W."""
        if W.ndim != 2:
            raise ValueError(f"expected a weight matrix, found shape {W.shape}")
        A = _over(W, self.divisor[:, None]) if self.A is None else _over(self.A, self.divisor) @ W
        return _Affine(A, np.broadcast_to(self.b / self.divisor, W.shape[0]) @ W)

    def plus(self, constant: Array) -> _Affine:
        return _Affine(self.A, self.b + constant * self.divisor, self.divisor)

    def over(self, divisor: Array) -> _Affine:
        return _Affine(self.A, self.b, self.divisor * divisor)


class _Chain:
    """Walks a graph from its input to its output, collecting layers."""

    def __init__(self, model: onnx.ModelProto, scores: Scores) -> None:
        self.exact = {entry.key: entry.value for entry in model.metadata_props}
        self.constants = constants_of(model.graph)
        self.scores = scores
        opset_of(model)
        source = data_input(model.graph, self.constants)
        _, sides = input_sides(source)
        self.current, self.width = source.name, int(np.prod(sides))
        self.flat = len(sides) == 1
        self.affine = _Affine()
        self.layers: list[tuple[Array, Array, Activation]] = []
        self.work = 0

    def network(self) -> Layers:
        for node in self.scores.nodes:
            self._follow(node)
        if self.current != self.scores.tensor or not self.flat or self.scores.head not in ("logits", "column"):
            raise ValueError(
                f"tensor {quoted(self.current)}: expected it to hold the rows of scores that the file gives"
            )
        self._end_layer(Identity())
        W, b, activations = zip(*self.layers, strict=True)
        last = _two_classes if self.scores.head == "column" or W[-1].shape[1] == 1 else _as_they_are
        return Layers((*W[:-1], last(W[-1])), (*b[:-1], last(b[-1])), activations[:-1])

    def _follow(self, node: onnx.NodeProto) -> None:
        where = where_is(node)
        others = [name for name in node.input if name and name != self.current]
        if self.current not in node.input or any(name not in self.constants for name in others):
            raise ValueError(f"{where}: the graph is not a chain of layers")
        if operator(node) not in _OPERATORS:
            raise ValueError(f"{where}: not an operator of a dense network")
        try:
            _OPERATORS[operator(node)](self, node, [_finite(name, self.constants[name]) for name in others])
        except (ValueError, TypeError, IndexError, KeyError, ArithmeticError) as error:
            raise ValueError(f"{where}: {error}") from error
        self.current = node.output[1 if node.op_type == "LinearClassifier" else 0]

    def _end_layer(self, activation: Activation) -> None:
        affine = self.affine
        if affine.A is None:
            limited((self.width, self.width), "an identity")
            affine = affine.times(np.eye(self.width, dtype=np.result_type(affine.b, affine.divisor)))
        A, b = _over(affine.A, affine.divisor), affine.b / affine.divisor
        self.layers.append((A, np.broadcast_to(b, A.shape[1]), activation))
        self.width, self.affine = A.shape[1], _Affine()

    def _matmul(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        if node.input[0] != self.current:
            raise ValueError("expected rows times a weight matrix, found a matrix times columns")
        self._times(constants[0])

    def _times(self, W: Array) -> None:
        if W.ndim != 2 or not self.flat or (self.affine.A is None and W.shape[0] != self.width):
            raise ValueError(f"expected a weight matrix for rows of {self.width}, found shape {W.shape}")
        if self.affine.A is not None:  # which is multiplied out here
            rows = limited((len(self.affine.A), W.shape[-1]), "a product")[0]
            self.work += rows * W.size
            require_within(self.work, limits().work, "multiplications")
        self.affine = self.affine.times(W)

    def _row(self, constant: Array) -> Array:
        """A constant that broadcasts over rows, as (n,) or (1,)."""
        if constant.size != (constant.shape[-1] if constant.ndim else 1) or (constant.size > 1 and not self.flat):
            raise ValueError(f"expected one number or one per column, found shape {constant.shape}")
        return constant.reshape(-1)

    def _gemm(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        if options.get("transA") or node.input[0] != self.current:
            raise ValueError("transA and a weight matrix on the left are not read")
        W = constants[0].T if options.get("transB") else constants[0]
        alpha, beta = options.get("alpha", 1.0), options.get("beta", 1.0)
        self._times(W if alpha == 1 else W * W.dtype.type(alpha))
        if len(constants) > 1:
            self.affine = self.affine.plus(self._row(constants[1]) * constants[1].dtype.type(beta))

    def _add(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        self.affine = self.affine.plus(self._row(constants[0]))

    def _sub(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        if node.input[0] != self.current:
            raise ValueError("a constant minus the data is not read")
        self.affine = self.affine.plus(-self._row(constants[0]))

    def _mul(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        self.affine = self.affine.over(1 / self._row(constants[0]))

    def _div(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        if node.input[0] != self.current or not np.all(constants[0]):
            raise ValueError("expected the data divided by numbers other than 0")
        self.affine = self.affine.over(self._row(constants[0]))

    def _erf(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        sigma = self.affine.divisor
        sign = np.sign(sigma)  # erf is odd: a negative sigma turns the sign of what comes in
        self.affine = replace(self.affine, divisor=sign)
        self._end_layer(Erf(abs(sigma[0]) if sigma.size == 1 else np.abs(sigma)))

    def _prelu(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        alpha = self._row(constants[0])
        self._end_layer(PReLU(alpha[0] if alpha.size == 1 else alpha))

    def _leaky(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        self._end_layer(PReLU(_attribute(node, "alpha", 0.01)))

    def _elu(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        alpha = _attribute(node, "alpha", 1.0)
        if EXACT + node.output[0] in self.exact:
            exact = float.fromhex(self.exact[EXACT + node.output[0]])
            alpha = exact if np.float32(exact) == np.float32(alpha) else alpha
        self._end_layer(ELU(alpha))

    def _relu(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        self._end_layer(ReLU())

    def _tanh(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        self._end_layer(Tanh())

    def _reshape(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        width = self.width if self.affine.A is None else self.affine.A.shape[1]
        if len(constants[0]) != 2 or int(constants[0][1]) not in (-1, width):
            raise ValueError(f"expected rows, found shape {constants[0].tolist()}")
        self.flat = True

    def _flatten(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        if _attribute(node, "axis", 1) != 1:
            raise ValueError("expected axis 1")
        self.flat = True

    def _scaler(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        facts = attributes(node)
        offset, scale = (np.asarray(facts[name], dtype=np.float32) for name in ("offset", "scale"))
        self.affine = self.affine.plus(-self._row(offset)).over(1 / self._row(scale))

    def _linear(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        facts = attributes(node)
        if facts.get("post_transform", b"NONE") != b"NONE":
            raise ValueError("expected scores without a transform")
        b = np.asarray(facts["intercepts"], dtype=np.float32)
        self._times(np.asarray(facts["coefficients"], dtype=np.float32).reshape(len(b), -1).T)
        self.affine = self.affine.plus(b)

    def _columns(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        width = self.width if self.affine.A is None else self.affine.A.shape[1]
        chosen = constants[0].reshape(-1)
        W = np.zeros(limited((width, len(chosen)), "a choice of columns"), dtype=np.float32)
        W[chosen, np.arange(len(chosen))] = 1
        self._times(W)

    def _cast(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        if _attribute(node, "to", 0) not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
            raise ValueError("expected a cast to floats")

    def _dropout(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        if len(node.input) > 2:
            raise ValueError("expected a dropout that is off")

    def _pass(self, node: onnx.NodeProto, constants: list[Array]) -> None:
        pass


_OPERATORS: dict[str, Callable[[_Chain, onnx.NodeProto, list[Array]], None]] = {
    "MatMul": _Chain._matmul,
    "Gemm": _Chain._gemm,
    "Add": _Chain._add,
    "Sub": _Chain._sub,
    "Mul": _Chain._mul,
    "Div": _Chain._div,
    "Erf": _Chain._erf,
    "PRelu": _Chain._prelu,
    "LeakyRelu": _Chain._leaky,
    "Elu": _Chain._elu,
    "Relu": _Chain._relu,
    "Tanh": _Chain._tanh,
    "Flatten": _Chain._flatten,
    "Reshape": _Chain._reshape,
    "ai.onnx.ml.Scaler": _Chain._scaler,
    "ai.onnx.ml.LinearClassifier": _Chain._linear,
    "ai.onnx.ml.ArrayFeatureExtractor": _Chain._columns,
    "Cast": _Chain._cast,
    "Dropout": _Chain._dropout,
    "Identity": _Chain._pass,
}


def _finite(name: str, array: Array) -> Array:
    if not np.isfinite(array).all():
        raise ValueError(f"{plain(name)} holds NaN or infinity")
    return array


def _over(A: Any, divisor: Array) -> Array:
    """A / divisor; no copy where that changes nothing, since A may be large."""
    same = np.result_type(A, divisor) == A.dtype and bool((divisor == 1).all())
    return np.asarray(A if same else A / divisor)


def _two_classes(last: Array) -> Array:
    """The logits (0, y) of the last column y of weights or biases."""
    y = last[..., -1:]
    return np.concatenate([np.zeros_like(y), y], axis=-1)


def _as_they_are(last: Array) -> Array:
    return last


def _attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    for attribute in node.attribute:
        if attribute.name == name:
            return float(helper.get_attribute_value(attribute))
    return default
