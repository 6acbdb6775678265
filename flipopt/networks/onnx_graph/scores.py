"""Which tensor of a graph holds the scores of the classes, and how they become logits.

flipopt works with logits. What a file ends in is taken off as far as it can be read: labels, ZipMap, Softmax, Sigmoid,
the transforms of LinearClassifier and the votes of SVMClassifier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper

from flipopt.common.checks import Array
from flipopt.common.quoting import quoted
from flipopt.networks.onnx_graph.model import where_is

Head = Literal["logits", "column", "log", "log_sigmoid", "pairwise"]
"""From a tensor Y to logits: Y; (0, y) with y its last column; log Y; log sigmoid(Y); of decisions between pairs."""

_PASS = ("Identity", "Cast", "Dropout", "Squeeze", "Unsqueeze", "Flatten", "Reshape")
_VOTES = {
    "Identity",
    "Cast",
    "Less",
    "Neg",
    "ArrayFeatureExtractor",
    "Sum",
    "Add",
    "Concat",
    "Abs",
    "Mul",
    "Div",
    "ZipMap",
}
"""Operators that skl2onnx makes votes and the scores of one class against the rest from."""
_LABELS = tuple(
    getattr(onnx.TensorProto, name)
    for name in ("INT8", "INT32", "INT64", "UINT8", "UINT32", "UINT64", "STRING", "BOOL")
)

_TWO = "the logits are (0, d) with d the decision function"
_MANY = (
    "a class's logit is the least of its decision functions against the other classes: the classes are those of the "
    "votes, except where the votes go round in a circle"
)


@dataclass(frozen=True)
class Scores:
    """A model, changed where its end was taken off, the tensor to take from it, and what to do with that."""

    model: onnx.ModelProto
    tensor: str
    head: Head = "logits"
    note: str = ""

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        """Those that the tensor depends on, in order."""
        return needed(self.model.graph, self.tensor)

    def fitted(self, Y: Array) -> Scores:
        """The head that values Y (rows, ...) of the tensor ask for, where the graph alone does not tell."""
        if self.head != "logits":
            return self
        if Y.ndim < 1 or Y.size == 0 or (Y.ndim > 1 and Y.size != len(Y) * Y.shape[1]):
            raise ValueError(
                f"tensor {quoted(self.tensor)}: expected scores of shape (batch, classes), found {Y.shape}"
            )
        if Y.size == len(Y):
            return replace(self, head="column", note=_note(self.note, "one output y is taken as the logits (0, y)"))
        if np.all(Y >= 0) and np.allclose(Y.reshape(len(Y), -1).sum(axis=1), 1, rtol=0, atol=1e-5):
            return replace(self, head="log", note=_note(self.note, "logits are the logarithms of the probabilities"))
        return self


def producers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """The node that computes every tensor."""
    return {name: node for node in graph.node for name in node.output if name}


def needed(graph: onnx.GraphProto, tensor: str) -> list[onnx.NodeProto]:
    """The nodes that ``tensor`` depends on, in the order of the graph; Constant nodes left out."""
    wanted = {tensor}
    nodes = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output) and node.op_type != "Constant":
            nodes.append(node)
            wanted.update(name for name in node.input if name)
    return nodes[::-1]


def choose_scores(model: onnx.ModelProto, output: str | None = None) -> Scores:
    """The logits of ``model``, from the tensor ``output`` or else from its first output that is not labels."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    return _Tail(changed, output).scores()


class _Tail:
    """Walks from the output back to the logits."""

    def __init__(self, model: onnx.ModelProto, output: str | None) -> None:
        self.model = model
        self.source = producers(model.graph)
        self.tensor = output or _first_scores(model.graph)
        self.reader = "the output"
        if self.tensor not in self.source:
            raise ValueError(f"no node computes the output {quoted(self.tensor)}")

    def scores(self) -> Scores:
        votes = self._support_vectors()
        if votes is not None:
            return votes
        look, normalised, seen = self.tensor, False, set[str]()
        while look in self.source:
            if look in seen:
                raise ValueError(f"tensor {quoted(look)}: expected a graph without circles")
            seen.add(look)
            node = self.source[look]
            self.reader = where_is(node)
            match node.op_type:
                case "ZipMap":
                    self.tensor = look = node.input[0]
                case "Normalizer" if self._comes_from(node.input[0], "LinearClassifier"):
                    self.tensor = look = node.input[0]
                    normalised = True
                case kind if kind in _PASS:
                    look = node.input[0]
                case "Softmax" | "LogSoftmax":
                    if attributes(node).get("axis", 1) not in (-1, 1):
                        raise ValueError(f"{where_is(node)}: expected a softmax over the classes (axis 1)")
                    note = "" if node.op_type == "Softmax" else "the logits are what goes into the last LogSoftmax"
                    _erase(node)
                    return self._as("logits", note)
                case "Sigmoid":
                    _erase(node)
                    return self._as("logits", "the logits are what goes into the last Sigmoid")
                case "LinearClassifier" if look in node.output[1:]:
                    return self._linear(node, normalised)
                case "Concat" if (inner := self._two_sigmoids(node)) is not None:
                    self.tensor = inner
                    return self._as("column", "the logits are (0, y) with y what goes into the last Sigmoid")
                case _:
                    break
        return self._as("logits")

    def _as(self, head: Head, note: str = "") -> Scores:
        if self.tensor not in self.source:
            raise ValueError(f"{self.reader}: nothing before it computes its input {quoted(self.tensor)}")
        return Scores(self.model, self.tensor, head, note)

    def _comes_from(self, tensor: str, kind: str) -> bool:
        return tensor in self.source and self.source[tensor].op_type == kind

    def _linear(self, node: onnx.NodeProto, normalised: bool) -> Scores:
        """The scores of a LinearClassifier before its transform."""
        facts = attributes(node)
        transform = facts.get("post_transform", b"NONE")
        if transform not in (b"SOFTMAX", b"LOGISTIC"):
            return self._as("logits")
        set_attribute(node, "post_transform", "NONE")
        if transform == b"SOFTMAX":
            return self._as("logits")
        b = np.asarray(facts.get("intercepts", ()))
        W = np.asarray(facts.get("coefficients", ())).reshape(max(len(b), 1), -1)
        if len(W) == 2 and np.array_equal(W[0], -W[1]) and b[0] == -b[1]:
            return self._as("column", "the logits are (0, y) with y what goes into the logistic function")
        if normalised:
            return self._as("log_sigmoid", "the logits are the logarithms of the probabilities")
        return self._as("logits", "the logits are what goes into the logistic functions")

    def _two_sigmoids(self, node: onnx.NodeProto) -> str | None:
        """y of Concat(1 - sigmoid(y), sigmoid(y)), whose logits are (0, y)."""
        if len(node.input) != 2 or not self._comes_from(node.input[1], "Sigmoid"):
            return None
        if not self._comes_from(node.input[0], "Sub") or self.source[node.input[0]].input[1] != node.input[1]:
            return None
        return str(self.source[node.input[1]].input[0])

    def _support_vectors(self) -> Scores | None:
        """The decisions of an SVMClassifier, if nothing but votes and labels are made from them."""
        nodes = needed(self.model.graph, self.tensor)
        machines = [node for node in nodes if node.op_type == "SVMClassifier"]
        if len(machines) != 1 or len(machines[0].output) != 2:
            return None
        node = machines[0]
        before = {other.output[0] for other in needed(self.model.graph, node.output[0])}
        after = {other.op_type for other in nodes if other.output[0] not in before}
        if not after <= _VOTES or attributes(node).get("post_transform", b"NONE") != b"NONE":
            return None
        for name in ("prob_a", "prob_b"):
            set_attribute(node, name, None)
        self.tensor = node.output[1]
        return self._as("pairwise", _TWO if class_count(node) == 2 else _MANY)


def class_count(node: onnx.NodeProto) -> int:
    """Of a LinearClassifier or SVMClassifier."""
    facts = attributes(node)
    labels: Iterable[Any] = facts.get("classlabels_ints") or facts.get("classlabels_strings") or ()
    return len(list(labels))


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def set_attribute(node: onnx.NodeProto, name: str, value: str | None) -> None:
    """Replace an attribute, or remove it (None)."""
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept if value is None else [*kept, helper.make_attribute(name, value)])


def _erase(node: onnx.NodeProto) -> None:
    """Make a node of one input the identity."""
    node.op_type = "Identity"
    del node.attribute[:]


def _first_scores(graph: onnx.GraphProto) -> str:
    if not graph.output:
        raise ValueError("the graph has no output")
    for value in graph.output:
        if value.type.tensor_type.elem_type not in _LABELS:
            return str(value.name)
    last = producers(graph).get(graph.output[-1].name)
    raise ValueError(
        f"{where_is(last) if last else 'the graph'}: expected scores among the outputs, found labels alone"
    )


def _note(*parts: str) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))
