"""The protobuf of an ONNX file from anyone, with the data that lie beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from onnx import helper, numpy_helper

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import reading, require_file
from flipopt.common.limits import limits, require_within
from flipopt.common.quoting import brief, listed, plain, quoted
from flipopt.networks.onnx_graph.wire import require_small

OLDEST_OPSET = 7
"""Older operators broadcast by rules of their own."""

CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
"""Operators with graphs within them, which may run for ever."""


def read_model(path: Path, control_flow: bool = False) -> onnx.ModelProto:
    """The model in ``path``, whole; data in other files are read only from plain files in the same folder.

    What it takes is limited before it is parsed. Graphs within it are refused unless ``control_flow``.
    """
    require_file(path)
    with reading(path, "an ONNX file"):
        data = path.read_bytes()
        require_small(data, onnx.ModelProto.DESCRIPTOR, limits().model, str(path))
        model = onnx.ModelProto()
        model.ParseFromString(data)
    room = limits().model - len(data)
    del data
    if not model.graph.node:
        raise FileFormatError(f"{path}: not an ONNX model: it has no nodes")
    nodes = 0
    for message in _messages(model):
        _require_text(message, path)
        nodes += isinstance(message, onnx.NodeProto)
        match message:
            case onnx.SparseTensorProto():
                raise FileFormatError(f"{path}: sparse tensors are not read")
            case onnx.NodeProto() if message.op_type in CONTROL_FLOW and not control_flow:
                kind = message.op_type
                advice = f"found {kind}, which is read only with control_flow=True"
                raise ControlFlowError(f"{path}: {where_is(message)}: expected a graph without control flow, {advice}")
            case onnx.TensorProto() if _is_external(message):
                room -= _read_external(message, path, room)
    require_within(nodes, limits().nodes, f"{path}: nodes")
    return model


class ControlFlowError(FileFormatError):
    """A graph with graphs within it, which are read only if asked for."""


@cache
def _fields(kind: Descriptor) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a message that are messages, and those that are text."""
    texts = tuple(field.name for field in kind.fields if field.type == FieldDescriptor.TYPE_STRING)
    return tuple(field.name for field in kind.fields if field.message_type), texts


def _messages(model: onnx.ModelProto) -> Iterator[Any]:
    """Every message in a model: graphs, functions, nodes, attributes and tensors, however deep."""
    left: list[Any] = [model]
    while left:
        message = left.pop()
        yield message
        for name in _fields(message.DESCRIPTOR)[0]:
            value = getattr(message, name)
            if hasattr(value, "__len__"):
                left.extend(value)
            elif message.HasField(name):
                left.append(value)


def _require_text(message: Any, path: Path) -> None:
    """Raise if a name is not UTF-8, which protobuf hands out as bytes."""
    for field in _fields(message.DESCRIPTOR)[1]:
        value = getattr(message, field)
        for text in [value] if isinstance(value, str | bytes) else value:
            if not isinstance(text, str):
                raise FileFormatError(f"{path}: not an ONNX model: a name in it is not text, {quoted(text)}")


def _is_external(tensor: onnx.TensorProto) -> bool:
    """Whether any part of onnx or onnxruntime would take the data from elsewhere."""
    return bool(tensor.data_location != onnx.TensorProto.DEFAULT or tensor.external_data)


def _read_external(tensor: onnx.TensorProto, path: Path, room: int) -> int:
    """Put the data of ``tensor`` into it; their length in bytes, at most ``room``."""
    for entry in tensor.external_data:
        _require_text(entry, path)
    facts = {entry.key: entry.value for entry in tensor.external_data}
    where = f"{path}: the data of tensor {quoted(tensor.name)}"
    name = facts.get("location", "")
    # A file name and nothing more, and no link: what a stranger's model names must not lead out of its folder.
    if not name or name in (".", "..") or any(mark in name for mark in "/\\:\0"):
        raise FileFormatError(
            f"{where} are in {quoted(name)}; data in another file are read only if it is in the same folder"
        )
    beside = path.parent / name
    if os.path.islink(beside) or not os.path.isfile(beside):
        raise FileFormatError(f"{where}: expected the file {quoted(name)} beside the model, found none")
    offset, length = _integer(facts.get("offset", "0"), where), _size(tensor, where)
    claimed = _integer(facts["length"], where) if "length" in facts else length
    if claimed != length:
        raise FileFormatError(f"{where}: expected {length} bytes for shape {_shape(tensor)}, found {claimed}")
    require_within(length, max(1, room), f"{where}: bytes")
    size = beside.stat().st_size
    if offset + length > size:
        raise FileFormatError(f"{where}: expected {offset + length} bytes in {plain(name)}, found {size}")
    with reading(beside, "a readable file"), beside.open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]
    return length


def _shape(tensor: onnx.TensorProto) -> str:
    return str(tuple(tensor.dims[:8]))


def _size(tensor: onnx.TensorProto, where: str) -> int:
    """Bytes of a tensor, by its shape and type."""
    try:
        itemsize = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{where}: unknown type {tensor.data_type}") from error
    if any(side < 0 for side in tensor.dims):
        raise FileFormatError(f"{where}: negative shape {_shape(tensor)}")
    return int(itemsize * np.prod([int(side) for side in tensor.dims], dtype=object))


def _integer(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise FileFormatError(f"{where}: expected a whole number for offset and length, found {quoted(text, 20)}")
    return int(text)


def operator(node: onnx.NodeProto) -> str:
    """The operator of a node, with its domain unless that is ONNX's own: ``Conv``, ``ai.onnx.ml.Scaler``."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    return f"{domain}{node.op_type}"


def where_is(node: onnx.NodeProto) -> str:
    """How messages name a node: its name (or what it computes) and its operator."""
    return f"node {quoted(node.name or (node.output[0] if node.output else ''))} ({plain(operator(node))})"


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators."""
    opset = next((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), OLDEST_OPSET)
    if opset < OLDEST_OPSET:
        raise ValueError(f"expected operators of opset {OLDEST_OPSET} or later, found {opset}")
    return opset


def constant(name: str, tensor: onnx.TensorProto) -> Array:
    """The values of a tensor; floats in float32 or float64 and never NaN."""
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, onnx.checker.ValidationError) as error:
        raise ValueError(f"tensor {quoted(name)}: {brief(error)}") from error
    if array.dtype.kind not in "fiub":  # float16's relatives and text
        if array.dtype.kind in "OSU":
            return array
        array = array.astype(np.float32)
    if array.dtype.kind == "f":
        array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
        if np.isnan(array).any():
            raise ValueError(f"{plain(name)} holds NaN")  # infinities are in masks of attention
    return array


def constants_of(graph: onnx.GraphProto) -> dict[str, Array]:
    """Initializers and Constant nodes by name."""
    found = {tensor.name: constant(tensor.name, tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            try:
                found[node.output[0]] = _constant_node(node)
            except ValueError as error:
                raise ValueError(f"{where_is(node)}: {error}") from error
    return found


def _constant_node(node: onnx.NodeProto) -> Array:
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        match attribute.name:
            case "value":
                return constant(node.output[0], value)
            case "value_float" | "value_floats":
                return np.asarray(value, dtype=np.float32)
            case "value_int" | "value_ints":
                return np.asarray(value, dtype=np.int64)
    raise ValueError("expected a constant of numbers")


def data_input(graph: onnx.GraphProto, constants: dict[str, Array]) -> onnx.ValueInfoProto:
    """The one input of a graph that is not a constant."""
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1:
        raise ValueError(f"expected one input, found {listed(value.name for value in inputs) or 'none'}")
    return inputs[0]


def input_sides(value: onnx.ValueInfoProto) -> tuple[int | None, tuple[int, ...]]:
    """The batch that the input is declared for (None: any) and the shape of one input."""
    tensor = value.type.tensor_type
    if tensor.elem_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16):
        known = {number: name for name, number in onnx.TensorProto.DataType.items()}
        raise ValueError(f"input {quoted(value.name)}: expected floats, found {known.get(tensor.elem_type, '?')}")
    sides = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if len(sides) < 2 or any(side is None or side < 1 for side in sides[1:]):
        shown = listed(dim.dim_value or dim.dim_param or "?" for dim in tensor.shape.dim)
        raise ValueError(f"input {quoted(value.name)}: expected shape (batch, ...) with known sides, found ({shown})")
    batch = sides[0] if sides[0] and sides[0] > 0 else None
    shape = tuple(int(side) for side in sides[1:] if side is not None)
    limited((batch or 1, *shape), f"input {quoted(value.name)}")
    return batch, shape


def limited(shape: Any, what: str = "a tensor") -> list[int]:
    """A shape to be made, not larger than is allowed."""
    sides = [int(side) for side in shape]
    if any(side < 0 for side in sides):
        raise ValueError(f"expected {what} of sides of 0 or more, found shape {sides[:8]}")
    require_within(int(np.prod(sides, dtype=object)), limits().elements, f"elements of {what} of shape {sides[:8]}")
    return sides
