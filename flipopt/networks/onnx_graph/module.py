"""A graph as a torch module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor
from torch.nn import functional

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, FlipoptError
from flipopt.common.limits import LimitError
from flipopt.common.quoting import brief, plain, quoted
from flipopt.networks.onnx_graph import classical, elementwise, layers, reductions, shapes
from flipopt.networks.onnx_graph.model import constants_of, data_input, operator, opset_of
from flipopt.networks.onnx_graph.node import Function, Node
from flipopt.networks.onnx_graph.scores import Head, Scores

OPERATORS = {
    **elementwise.OPERATORS,
    **layers.OPERATORS,
    **shapes.OPERATORS,
    **reductions.OPERATORS,
    **{f"ai.onnx.ml.{kind}": build for kind, build in classical.OPERATORS.items()},
}
"""Operator to the function that builds its translation."""
_TAKES_INFINITY = ("Clip", "Where", "Add", "Max", "Min", "Pad", "Mul")
_MAKES_FLOATS = ("Cast", "ConstantOfShape", "Range")


@dataclass(frozen=True)
class Step:
    """One node: what it takes, what it does, what it makes, and which tensors nobody needs after it."""

    where: str
    kind: str
    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    done: tuple[str, ...] = ()

    def __call__(self, values: dict[str, Tensor], like: Tensor) -> None:
        """Add the outputs to ``values``; floats out of integers or shapes in the precision of ``like``."""
        try:
            made = self.function(*(values.get(name) for name in self.inputs))
        except LimitError as error:
            raise LimitError(f"{self.where}: {error}") from error
        except Exception as error:  # torch promises nothing for what a stranger's node asks of it
            raise FileFormatError(f"{self.where}: {brief(error)}") from error
        for name, value in zip(self.outputs, made if isinstance(made, tuple | list) else (made,), strict=False):
            if value is None:  # an output that is not made
                continue
            turn = self.kind in _MAKES_FLOATS and value.is_floating_point()
            values[name] = value.to(like.dtype) if turn else value


class GraphModule(torch.nn.Module):
    """From X (batch, ...) to logits (batch, classes). The constants of the graph are its buffers.

    With ``rows``, a graph that is fixed to a batch of that many sees the points one by one (by ``torch.vmap``).
    """

    def __init__(self, steps: Sequence[Step], constants: dict[str, Tensor], source: str, scores: Scores) -> None:
        super().__init__()
        self.steps, self.source, self.tensor, self.head = tuple(steps), source, scores.tensor, scores.head
        self.rows: int | None = None
        self._names = {name: f"constant{k}" for k, name in enumerate(constants)}
        for name, value in constants.items():
            self.register_buffer(self._names[name], value)

    def forward(self, X: Tensor) -> Tensor:
        return logits(self.head, self.evaluate(X, self.tensor))

    def evaluate(self, X: Tensor, name: str) -> Tensor:
        """The tensor ``name`` at X."""
        if self.rows is None:
            return self._run(X, name)
        rows = self.rows
        if len(X) == 1:
            return self._run(X.expand(rows, *X.shape[1:]), name)[:1]
        return torch.vmap(lambda x: self._run(x.expand(rows, *x.shape), name)[0])(X)

    def _run(self, X: Tensor, name: str) -> Tensor:
        for step, values in self.walk(X):
            if name in step.outputs and name in values:
                return values[name]
        raise FileFormatError(f"{self.steps[-1].where}: no node computes {quoted(name)}")

    def walk(self, X: Tensor) -> Iterator[tuple[Step, dict[str, Tensor]]]:
        """Every step in turn, with the tensors that are there after it."""
        values: dict[str, Tensor] = {key: self.get_buffer(buffer) for key, buffer in self._names.items()}
        values[self.source] = X
        for step in self.steps:
            step(values, X)
            yield step, values
            for done in step.done:
                values.pop(done, None)


def logits(head: Head, Y: Tensor) -> Tensor:
    """The scores Y (batch, ...) as logits (batch, classes)."""
    Y = Y.reshape(Y.shape[0], -1)
    match head:
        case "column":
            y = Y[:, -1:]
            return torch.cat([torch.zeros_like(y), y], dim=1)
        case "log":
            return torch.log(Y + torch.finfo(Y.dtype).tiny)
        case "log_sigmoid":
            return functional.logsigmoid(Y)
        case "pairwise":
            return pairwise_logits(Y)
    return Y


def pairwise_logits(D: Tensor) -> Tensor:
    """Of decisions d_ij (i < j, > 0 for i): for class i the least of d_ij and -d_ji; of two, (-d_01, d_01), (0, -d_01).

    The class with the largest is the one that wins every comparison, if there is one, and classes i and j tie where
    d_ij = 0 while both win all others: the boundaries are those of the votes, but here they are continuous.
    """
    if D.shape[1] == 2:
        return torch.cat([torch.zeros_like(D[:, :1]), D[:, :1]], dim=1)
    classes = round((1 + np.sqrt(1 + 8 * D.shape[1])) / 2)
    pairs = {pair: p for p, pair in enumerate(combinations(range(classes), 2))}
    own = [
        torch.stack([D[:, pairs[i, j]] if i < j else -D[:, pairs[j, i]] for j in range(classes) if j != i], dim=1)
        for i in range(classes)
    ]
    return -torch.amax(-torch.stack(own, dim=1), dim=2)


def translate(path: Path, scores: Scores, batch: int | None = None) -> GraphModule:
    """The module of a graph, on the CPU. ``batch`` is the fixed batch of the file that a Reshape may name.

    Errors name the file ``path``, the node and its operator.
    """
    try:
        return _Translation(path, scores, batch).module()
    except FlipoptError:
        raise
    except ValueError as error:
        raise FileFormatError(f"{path}: {error}") from error


class _Translation:
    def __init__(self, path: Path, scores: Scores, batch: int | None) -> None:
        self.path, self.scores, self.batch = path, scores, batch
        graph = scores.model.graph
        self.constants = constants_of(graph)
        source = data_input(graph, self.constants)
        self.source = source.name
        self.opset = opset_of(scores.model)
        double = source.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
        self.dtype = torch.float64 if double else _precision(scores.nodes, self.constants)

    def module(self) -> GraphModule:
        steps: list[Step] = []
        available = {self.source, *self.constants, ""}
        for proto in self.scores.nodes:
            node = Node(proto, self.constants, self.opset, self.batch)
            missing = [name for name in proto.input if name not in available]
            if missing:
                raise ValueError(f"{node.where}: nothing before it computes its input {quoted(missing[0])}")
            step = self._step(node)
            available.update(step.outputs)
            if self._folded(node, step):
                continue
            steps.append(step)
        used = {name for step in steps for name in step.inputs}
        tensors = {name: self._tensor(array) for name, array in self.constants.items() if name in used}
        if self.scores.tensor in self.constants:
            raise ValueError(f"the output {quoted(self.scores.tensor)} does not depend on the input")
        return GraphModule(_with_lifetimes(steps, {self.source, *tensors}), tensors, self.source, self.scores)

    def _step(self, node: Node) -> Step:
        build = OPERATORS.get(operator(node.proto))
        if build is None:
            raise ValueError(f"{node.where}: not an operator that flipopt can differentiate")
        self._check_finite(node)
        try:
            function = build(node)
        except LimitError as error:
            raise LimitError(f"{self.path}: {node.where}: {error}") from error
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"{node.where}: {brief(error)}") from error
        held = []
        for k, array in enumerate(node.held):
            held.append(f"{node.proto.output[0]}\0{k}")
            self.constants[held[-1]] = array
        inputs = tuple(node.proto.input) if not held else (*node.proto.input[:1], *held)
        return Step(f"{self.path}: {node.where}", node.kind, function, inputs, tuple(node.proto.output))

    def _check_finite(self, node: Node) -> None:
        for name in node.proto.input:
            array = self.constants.get(name)
            if array is None or array.dtype.kind != "f" or node.kind in _TAKES_INFINITY:
                continue
            if not np.isfinite(array).all():
                raise ValueError(f"{node.where}: {plain(name)} holds NaN or infinity")

    def _folded(self, node: Node, step: Step) -> bool:
        """Whether the node has constants alone; its outputs are then constants too."""
        if any(name and name not in self.constants for name in step.inputs) or not step.inputs:
            return False
        values = {name: torch.from_numpy(np.array(self.constants[name])) for name in step.inputs if name}
        step(values, torch.zeros((), dtype=self.dtype))
        self.constants.update({name: values[name].numpy() for name in step.outputs if name in values})
        return True

    def _tensor(self, array: Array) -> Tensor:
        if array.dtype.kind in "OSU":
            raise ValueError("text is not an input of a classifier")
        tensor = torch.from_numpy(np.array(array))
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor


def _precision(nodes: Sequence[onnx.NodeProto], constants: dict[str, Array]) -> torch.dtype:
    """float64 if any constant that takes part is, else float32."""
    used = (constants[name] for node in nodes for name in node.input if name in constants)
    return torch.float64 if any(array.dtype == np.float64 for array in used) else torch.float32


def _with_lifetimes(steps: Sequence[Step], kept: set[str]) -> list[Step]:
    """Every step with the tensors whose last use it is, so that a long graph does not hold all of them."""
    last = {name: k for k, step in enumerate(steps) for name in (*step.outputs, *step.inputs)}
    ends: dict[int, list[str]] = {}
    for name, k in last.items():
        if name not in kept:
            ends.setdefault(k, []).append(name)
    return [replace(step, done=tuple(ends.get(k, ()))) for k, step in enumerate(steps)]


def first_not_finite(module: GraphModule, X: Tensor) -> str:
    """The first node that makes NaN or infinity of finite numbers X; empty if there is none."""
    with torch.no_grad():
        for step, values in module.walk(X):
            made = [values[name] for name in step.outputs if name in values]
            if any(value.is_floating_point() and not value.isfinite().all() for value in made):
                return step.where
    return ""
