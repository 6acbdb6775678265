"""The autoencoders of Table 2 of Karimi, Derr and Tang (000): their layers, their ONNX files, and what they make of
inputs, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import helper, numpy_helper

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import FileFormatError
from flipopt.common.limits import LimitError
from flipopt.common.writing import write_synced
from flipopt.networks.onnx_graph.model import constants_of, data_input, input_sides, read_model
from flipopt.networks.onnx_graph.runtime import Runtime
from flipopt.networks.protocol import Network
from flipopt.runs.threads import in_order

Kind = Literal["linear", "convolution", "transposed"]
HIDDEN = (100, 50)
"""Widths between the inputs and the outputs of a dense autoencoder (Table 2)."""
CHANNELS = (3, 12, 24, 48, 24, 12, 3)
"""Of a convolutional one: three convolutions and three transposed ones (Table 2)."""
KERNEL, PADDING = 4, 1
"""Sides of every kernel, and what an image is padded with; the stride is 1."""
SMALLEST = 4
"""Sides of the smallest image that three such convolutions leave a pixel of."""
OPSET, IR_VERSION = 17, 8
ROWS = 512
"""Inputs that are mapped together."""


@dataclass(frozen=True)
class Layer:
    """A layer with a bias, between so many inputs and outputs: numbers, or channels."""

    kind: Kind
    inputs: int
    outputs: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weights: (inputs, outputs); or as ONNX has them, with outputs first except in a transposed one."""
        if self.kind == "linear":
            return self.inputs, self.outputs
        ends = (self.outputs, self.inputs) if self.kind == "convolution" else (self.inputs, self.outputs)
        return *ends, KERNEL, KERNEL

    @property
    def reach(self) -> float:
        """Initial weights and biases are uniform in (-reach, reach), as torch has it by default."""
        fan = self.inputs if self.kind == "linear" else self.shape[1] * KERNEL**2
        return float(fan**-0.5)


@dataclass(frozen=True)
class Architecture:
    """What an autoencoder is made of: for inputs of the shape ``sides``; a ReLU after every layer but the last, and a
    sigmoid after that."""

    sides: tuple[int, ...]
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, network: Network) -> Architecture:
        """For colour images (3, height, width) convolutions, for all other inputs dense layers."""
        sides, n = tuple(getattr(network, "input_shape", ())), network.n_inputs
        if len(sides) == 3 and sides[0] == CHANNELS[0] and min(sides[1:]) >= SMALLEST:
            half = len(CHANNELS) // 2
            ends = list(pairwise(CHANNELS))
            inwards = [Layer("convolution", a, b) for a, b in ends[:half]]
            return cls(sides, (*inwards, *(Layer("transposed", a, b) for a, b in ends[half:])))
        return cls((n,), tuple(Layer("linear", a, b) for a, b in pairwise((n, *HIDDEN, n))))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the weights and the bias of every layer in turn."""
        return [shape for layer in self.layers for shape in (layer.shape, (layer.outputs,))]

    @property
    def n_parameters(self) -> int:
        """Weights and biases."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def parts(self, content: bytes) -> list[Array]:
        """Weights and biases out of the bytes of all of them, float32."""
        numbers, ends = np.frombuffer(content, dtype="<f4"), np.cumsum([np.prod(shape) for shape in self.shapes])
        if len(numbers) != ends[-1]:
            raise FileFormatError(f"expected {ends[-1]} weights of an autoencoder, found {len(numbers)}")
        return [part.reshape(shape) for part, shape in zip(np.split(numbers, ends[:-1]), self.shapes, strict=True)]

    def graph(self, parts: Sequence[Array]) -> onnx.ModelProto:
        """The ONNX model with input ``x`` and output ``y``, both (batch, *sides), of weights and biases in turn."""
        nodes: list[onnx.NodeProto] = []
        current, last = "x", len(self.layers)
        for k, layer in enumerate(self.layers, 1):
            nodes += _product(layer, k, current)
            current = "y" if k == last else f"y{k}"
            nodes.append(helper.make_node("Sigmoid" if k == last else "Relu", [f"c{k}"], [current]))
        names = [f"{letter}{k}" for k in range(1, last + 1) for letter in "Wb"]
        constants = [
            numpy_helper.from_array(np.asarray(part, np.float32), name) for part, name in zip(parts, names, strict=True)
        ]
        x, y = (
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", *self.sides]) for name in ("x", "y")
        )
        graph = helper.make_graph(nodes, "flipopt autoencoder", [x], [y], constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, producer_name="flipopt", opset_imports=opset, ir_version=IR_VERSION)


def _product(layer: Layer, k: int, current: str) -> list[onnx.NodeProto]:
    """The nodes that compute c<k>."""
    if layer.kind == "linear":
        return [
            helper.make_node("MatMul", [current, f"W{k}"], [f"product{k}"]),
            helper.make_node("Add", [f"product{k}", f"b{k}"], [f"c{k}"]),
        ]
    operator = "Conv" if layer.kind == "convolution" else "ConvTranspose"
    sides: dict[str, Any] = {"kernel_shape": [KERNEL] * 2, "pads": [PADDING] * 4, "strides": [1, 1]}
    return [helper.make_node(operator, [current, f"W{k}", f"b{k}"], [f"c{k}"], **sides)]


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A map from inputs to inputs, as onnxruntime computes it on one core in float32.

    Attributes
    ----------
    model
        Its graph.
    sides
        The shape of one input, as the graph takes it.
    path
        The file that it is from, for messages.
    """

    model: onnx.ModelProto
    sides: tuple[int, ...]
    path: Path = Path("autoencoder.onnx")

    @classmethod
    def of(cls, architecture: Architecture, parts: Sequence[Array]) -> Autoencoder:
        """From weights and biases in turn."""
        return cls(architecture.graph(parts), architecture.sides)

    @classmethod
    def read(cls, path: str | Path, n_inputs: int | None = None) -> Autoencoder:
        """From an ONNX file of anyone, which must have one input and one output of the same shape.

        It is tried on a few inputs with limited memory and time. ``n_inputs`` is what it must take.
        """
        path = Path(path)
        model = read_model(path)
        try:
            batch, sides = input_sides(data_input(model.graph, constants_of(model.graph)))
        except LimitError as error:
            raise LimitError(f"{path}: {error}") from error
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            raise FileFormatError(f"{path}: {error}") from error
        n = int(np.prod(sides))
        if batch is not None or len(model.graph.output) != 1 or n != (n_inputs or n):
            wanted = f"one of {n_inputs} numbers" if n_inputs else "one"
            raise FileFormatError(
                f"{path}: expected an autoencoder: an input, {wanted} with any batch, and one output; found an input "
                f"of shape {(batch or 'any', *sides)} and {len(model.graph.output)} outputs"
            )
        rows = np.random.default_rng(0).random((3, *sides))
        _, (values,) = Runtime.tried(path, model, [model.graph.output[0].name], None, rows, threads=1)
        if values.reshape(len(values), -1).shape != (3, n) or not np.isfinite(values).all():
            raise FileFormatError(
                f"{path}: expected an autoencoder: {n} finite numbers of {n} inputs each, found shape {values.shape}"
            )
        return cls(model, sides, path)

    @property
    def n_inputs(self) -> int:
        """Numbers of an input."""
        return int(np.prod(self.sides))

    def apply(self, X: ArrayLike) -> Array:
        """What it makes of X (rows, n_inputs), float32 of that shape."""
        points = np.atleast_2d(as_rows(X, self.n_inputs, "X"))
        parts = [points[first : first + ROWS] for first in range(0, len(points), ROWS)]
        made = [part.reshape(len(part), -1) for part in in_order(self._mapped, parts)]
        return np.concatenate(made).astype(np.float32) if made else np.empty(points.shape, dtype=np.float32)

    def save(self, path: str | Path) -> None:
        """Write an ONNX file, whole or not at all."""
        write_synced(Path(path), self.model.SerializeToString())

    def _mapped(self, points: Array) -> Array:
        return self._runtime(points.reshape(len(points), *self.sides))[0]

    @cached_property
    def _runtime(self) -> Runtime:
        return Runtime(self.path, self.model, [self.model.graph.output[0].name], None, threads=1)
