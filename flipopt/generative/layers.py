"""The layers of a graph: tensors that go into an activation, and models that are cut at them.

A generative boundary is where a unit *before* its activation is zero (Jeon, Jeong and Choi, 003, Definition 1): after a
ReLU the set where it is zero would have volume. Batch normalisation comes before the activation, so it is included.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from flipopt.networks.onnx_graph.model import constants_of, data_input, operator
from flipopt.networks.onnx_graph.scores import attributes, producers

ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "PRelu", "ThresholdedRelu", "Elu", "Selu", "Celu", "Gelu", "Softplus", "Softsign", "Mish"}
    | {"HardSwish", "HardSigmoid", "Sigmoid", "Tanh"}
)
"""Operators that are activations, of their first input."""
GATES = ("Sigmoid", "Erf")
"""Operators that are parts of activations: x sigmoid(x), and x (1 + erf(x / sqrt 2)) / 2."""
ENTRYWISE = ("Mul", "Add", "Div", "Sub", *GATES)
"""What the other parts are made of."""
LONGEST = 16
"""Tensors that an activation of several nodes is made of, and nodes that read one of them, at most."""


@dataclass(frozen=True)
class Layer:
    """A layer of a generator or a discriminator.

    Attributes
    ----------
    number
        From 1, in the order of the graph.
    name
        Of the tensor that goes into the activation, as the file has it.
    shape
        Of that tensor for one row.
    units
        How many numbers that is.
    activation
        The operator of the activation.
    activated
        Name of the tensor that comes out of it.
    """

    number: int
    name: str
    shape: tuple[int, ...]
    units: int
    activation: str
    activated: str


@dataclass(frozen=True)
class Found:
    """An activation in a graph: its operator, what goes in and what comes out."""

    operator: str
    before: str
    after: str


def activations(model: onnx.ModelProto, target: str) -> list[Found]:
    """The activations that the tensor ``target`` depends on, in the order of the graph, each input once."""
    constants = constants_of(model.graph)
    source = data_input(model.graph, constants).name
    nodes = [node for node in backwards(model.graph, target, ()) if node.op_type != "Constant"]
    surroundings = Surroundings(constants, {name: node for node in nodes for name in node.output}, readers_of(nodes))
    found: dict[str, Found] = {}
    for node in nodes:
        one = surroundings.activation(node)
        if one is not None and one.before in surroundings.made and one.before != source:
            found.setdefault(one.before, one)
    return list(found.values())


@dataclass(frozen=True)
class Surroundings:
    """What is around the nodes of a graph: constants, which node makes a tensor, and which nodes read it."""

    constants: Collection[str]
    made: Mapping[str, onnx.NodeProto]
    readers: Mapping[str, list[onnx.NodeProto]]

    def activation(self, node: onnx.NodeProto) -> Found | None:
        """The activation that a node is, or is the gate of."""
        kind = operator(node)
        if kind in GATES:
            before = self.unscaled(node.input[0]) if kind == "Erf" else node.input[0]
            after = self.gated(before)
            if after is not None:
                return Found("Swish" if kind == "Sigmoid" else "Gelu", before, after)
        return Found(kind, node.input[0], node.output[0]) if kind in ACTIVATIONS else None

    def unscaled(self, name: str) -> str:
        """x where ``name`` is x times or divided by a constant."""
        node = self.made.get(name)
        if node is None or node.op_type not in ("Mul", "Div"):
            return name
        free = [entry for entry in node.input if entry not in self.constants]
        return str(free[0]) if len(free) == 1 else name

    def gated(self, before: str) -> str | None:
        """What comes out of x * gate(x): the one tensor, computed entry by entry from x alone, that others read.

        None unless x has several readers, and that takes few nodes.
        """
        if len(self.readers.get(before, ())) < 2:
            return None
        inside, left = {before}, [before]
        while left:
            readers = self.readers.get(left.pop(), ())
            if max(len(readers), len(inside)) > LONGEST:
                return None
            for node in readers:
                known = all(name in inside or name in self.constants for name in node.input)
                if operator(node) in ENTRYWISE and known and node.output[0] not in inside:
                    inside.add(node.output[0])
                    left.append(node.output[0])
        ends = [name for name in inside if self._leaves(name, inside)]
        return ends[0] if len(ends) == 1 and ends[0] != before else None

    def _leaves(self, name: str, inside: set[str]) -> bool:
        """Whether a tensor is an output, or is read by nodes that make none of ``inside``."""
        readers = self.readers.get(name, ())
        return not readers or any(node.output[0] not in inside for node in readers)


def readers_of(nodes: Sequence[onnx.NodeProto]) -> dict[str, list[onnx.NodeProto]]:
    """The nodes that read every tensor."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for name in dict.fromkeys(node.input):
            readers.setdefault(name, []).append(node)
    return readers


def backwards(graph: onnx.GraphProto, target: str, stop: Collection[str]) -> list[onnx.NodeProto]:
    """The nodes that ``target`` depends on, in the order of the graph, without what the tensors ``stop`` depend on."""
    wanted, nodes = {target}, []
    for node in reversed(graph.node):
        if any(name in wanted and name not in stop for name in node.output):
            nodes.append(node)
            wanted.update(name for name in node.input if name)
    return nodes[::-1]


def cut(model: onnx.ModelProto, source: str, shape: Sequence[int], target: str) -> onnx.ModelProto:
    """The part of a model from the tensor ``source``, (batch, *shape), to the tensor ``target``.

    ValueError if there is another way from the model's input to ``target``. The size of the batch may be read from
    any tensor before the cut: exporters write it so.
    """
    graph = model.graph
    start = data_input(graph, constants_of(graph))
    nodes = []
    for node in backwards(graph, target, (source,)):
        nodes.append(onnx.NodeProto())
        nodes[-1].CopyFrom(node)
    _read_batch_from(source, nodes, producers(graph))
    kept = onnx.GraphProto(name=graph.name, node=nodes)
    kept = onnx.GraphProto(name=graph.name, node=backwards(kept, target, (source,)))
    used = {name for node in kept.node for name in node.input}
    if source != start.name and start.name in used:
        raise ValueError(f"the tensor {target!r} also depends on what is before {source!r} in other ways")
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    kind = start.type.tensor_type.elem_type
    kept.initializer.extend(tensors)
    kept.input.append(helper.make_tensor_value_info(source, kind, ["batch", *shape]))
    kept.output.append(onnx.ValueInfoProto(name=target))
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    whole.graph.CopyFrom(kept)
    return whole


def _read_batch_from(source: str, nodes: Sequence[onnx.NodeProto], made: Mapping[str, onnx.NodeProto]) -> None:
    """Have every node that reads the batch alone, the first side of a tensor, read that of ``source``; in place."""
    readers = readers_of(nodes)
    for node in nodes:
        if node.op_type != "Shape":
            continue
        facts, taken = attributes(node), readers.get(node.output[0], ())
        first = facts.get("start", 0) == 0 and facts.get("end") == 1
        if first or (taken and all(_takes_first(other, made) for other in taken)):
            node.input[0] = source


def _takes_first(node: onnx.NodeProto, made: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether a node is Gather of the constant index 0."""
    if node.op_type != "Gather" or node.input[1] not in made:
        return False
    index = made[node.input[1]]
    values = attributes(index)
    if index.op_type != "Constant" or "value" not in values:
        return False
    return bool((onnx.numpy_helper.to_array(values["value"]) == 0).all())
