"""Parts of a graph in float64, apart from the forward passes: by torch, or without it by onnx's own reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.generative.graphs import Graph, in_blocks
from flipopt.networks.onnx_graph.model import data_input, input_sides
from flipopt.networks.onnx_graph.scores import Scores
from flipopt.networks.onnx_network import has_torch

if TYPE_CHECKING:
    from flipopt.networks.onnx_graph.module import GraphModule

BLOCK = 64
"""Rows that are computed together."""
PROBES, LINEAR = 8, 1e-10
"""Points at which a layer is compared with an affine map, and the largest difference, relative to the values."""


def in_float64(graph: Graph, number: int) -> Callable[[Array], Array]:
    """The pre-activations (rows, units) of a layer as a function of points (rows, n_inputs), in float64."""
    layer = graph.layer(number)
    model = graph.part(graph.input_name, graph.input_shape, layer.name)
    shape = graph.input_shape
    compute = _by_torch(graph.path, model, layer.name) if has_torch() else _by_reference(model, layer.name)

    def values(points: Array) -> Array:
        rows = in_blocks(compute, np.asarray(points, dtype=np.float64).reshape(-1, *shape), BLOCK)
        return rows.reshape(len(rows), layer.units)

    return values


def affine(graph: Graph, number: int) -> tuple[Array, Array] | None:
    """A (units, n_inputs) and b (units,) with pre-activations A z + b of a layer, in float64; None if it is not affine.

    Read off at 0 and at the unit vectors, and compared at random points.
    """
    exact, n = in_float64(graph, number), graph.n_inputs
    Z = 3 * np.random.default_rng(0).standard_normal((PROBES, n))
    values = exact(np.concatenate([np.zeros((1, n)), Z, Z[:1] + Z[1:2]]))
    b, values, both, size = values[0], values[1:-1], values[-1], LINEAR * np.abs(values).max()
    if np.abs(values[0] + values[1] - b - both).max() > size:
        return None
    A = np.ascontiguousarray((exact(np.eye(n)) - b).T)
    return (A, b) if np.abs(Z @ A.T + b - values).max() <= size else None


def torch_part(path: Path, model: onnx.ModelProto, tensor: str) -> tuple[GraphModule, float]:
    """A part of a graph as a torch module, in the file's precision, and the multiplications that a row takes.

    It is tried with limited memory and work.
    """
    import torch

    from flipopt.networks.onnx_graph.budget import Budget
    from flipopt.networks.onnx_graph.module import translate

    module = translate(path, Scores(model, tensor))
    _, shape = input_sides(data_input(model.graph, {}))
    kind = next((value.dtype for value in module.buffers() if value.is_floating_point()), torch.float32)
    with torch.no_grad(), Budget() as budget:
        module.evaluate(torch.zeros((2, *shape), dtype=kind), tensor)
    return module, budget.work / 2


def _by_torch(path: Path, model: onnx.ModelProto, tensor: str) -> Callable[[Array], Array]:
    import torch

    try:
        module = torch_part(path, model, tensor)[0].double()
    except FileFormatError:  # an operator that has no translation
        return _by_reference(model, tensor)

    def compute(points: Array) -> Array:
        with torch.no_grad():
            return np.asarray(module.evaluate(torch.from_numpy(np.array(points)), tensor))

    return compute


def _by_reference(model: onnx.ModelProto, tensor: str) -> Callable[[Array], Array]:
    """By onnx's reference in numpy, which is slow, with all constants as float64."""
    from onnx.reference import ReferenceEvaluator

    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    (source,) = wide.graph.input
    source.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for held in wide.graph.initializer:
        held.CopyFrom(_widened(held))
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and node.op_type == "Constant":
                attribute.t.CopyFrom(_widened(attribute.t))
    evaluator = ReferenceEvaluator(wide)

    def compute(points: Array) -> Array:
        (values,) = evaluator.run([tensor], {source.name: points})
        return np.asarray(values)

    return compute


def _widened(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """A tensor of floats in float64; others as they are."""
    array = numpy_helper.to_array(tensor)
    return numpy_helper.from_array(array.astype(np.float64) if array.dtype.kind == "f" else array, tensor.name)
