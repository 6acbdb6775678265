"""The protobuf of an ONNX file from anyone, with the data that lie beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import require_file

MAX_MODEL_BYTES = 2**31 - 1
"""A model whose tensors take more than this is refused: protobuf cannot hold it."""

MAX_ELEMENTS = 2**28
"""An input, or a tensor that an operator makes, may not be larger: a file could ask for any amount of memory."""

OLDEST_OPSET = 7
"""Older operators broadcast by rules of their own."""


def read_model(path: Path) -> onnx.ModelProto:
    """The model in ``path``, whole; data in other files are read only from plain files in the same folder."""
    require_file(path)
    if path.stat().st_size > MAX_MODEL_BYTES:
        raise FileFormatError(f"{path}: expected at most {MAX_MODEL_BYTES} bytes, found {path.stat().st_size}")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError, OSError, RuntimeError) as error:
        raise FileFormatError(f"{path}: not an ONNX file: {error}") from error
    if not model.graph.node:
        raise FileFormatError(f"{path}: not an ONNX model: it has no nodes")
    if not all(isinstance(name, str) for name in _names(model.graph)):
        raise FileFormatError(f"{path}: not an ONNX model: a name in it is not text")
    if model.graph.sparse_initializer:
        raise FileFormatError(f"{path}: sparse tensors are not read")
    total = 0
    for tensor in _tensors(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            total += _read_external(tensor, path)
            if total > MAX_MODEL_BYTES:
                raise FileFormatError(f"{path}: its data take more than {MAX_MODEL_BYTES} bytes")
    return model


def _names(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    """Every name in a graph; protobuf hands out those that are not UTF-8 as bytes."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    yield from (value.name for value in (*graph.input, *graph.output))
    for tensor in _tensors(graph):
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor in a graph and in the graphs within it, such as the branches of an If."""
    yield from graph.initializer
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        yield from (*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors)
        for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from _tensors(inner)


def _read_external(tensor: onnx.TensorProto, path: Path) -> int:
    """Put the data of ``tensor`` into it; their length in bytes."""
    facts = {entry.key: entry.value for entry in tensor.external_data}
    where = f"{path}: the data of tensor {tensor.name!r}"
    name = facts.get("location", "")
    beside = path.parent / name
    # A file name and nothing more, and no link: what a stranger's model names must not lead out of its folder.
    if not name or name in (".", "..") or any(mark in name for mark in "/\\:\0"):
        raise FileFormatError(
            f"{where} are in {name!r}; data in another file are read only if it is in the same folder"
        )
    if beside.is_symlink() or not beside.is_file():
        raise FileFormatError(f"{where}: expected the file {name!r} beside the model, found none")
    offset, length = _integer(facts.get("offset", "0"), where), _size(tensor, where)
    claimed = _integer(facts["length"], where) if "length" in facts else length
    if claimed != length:
        raise FileFormatError(f"{where}: expected {length} bytes for shape {tuple(tensor.dims)}, found {claimed}")
    if offset + length > beside.stat().st_size:
        raise FileFormatError(f"{where}: expected {offset + length} bytes in {name}, found {beside.stat().st_size}")
    with beside.open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]
    return length


def _size(tensor: onnx.TensorProto, where: str) -> int:
    """Bytes of a tensor, by its shape and type."""
    try:
        itemsize = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{where}: unknown type {tensor.data_type}") from error
    if any(side < 0 for side in tensor.dims):
        raise FileFormatError(f"{where}: negative shape {tuple(tensor.dims)}")
    size = int(itemsize * np.prod([int(side) for side in tensor.dims], dtype=object))
    if size > MAX_MODEL_BYTES:
        raise FileFormatError(f"{where} would take {size} bytes, more than {MAX_MODEL_BYTES}")
    return size


def _integer(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise FileFormatError(f"{where}: expected a whole number for offset and length, found {text[:20]!r}")
    return int(text)


def operator(node: onnx.NodeProto) -> str:
    """The operator of a node, with its domain unless that is ONNX's own: ``Conv``, ``ai.onnx.ml.Scaler``."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    return f"{domain}{node.op_type}"


def where_is(node: onnx.NodeProto) -> str:
    """How messages name a node: its name (or what it computes) and its operator."""
    return f"node {node.name or (node.output[0] if node.output else '')!r} ({operator(node)})"


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
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"tensor {name!r}: {error}") from error
    if array.dtype.kind not in "fiub":  # float16's relatives and text
        if array.dtype.kind in "OSU":
            return array
        array = array.astype(np.float32)
    if array.dtype.kind == "f":
        array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
        if np.isnan(array).any():
            raise ValueError(f"{name} holds NaN")  # infinities are in masks of attention
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
        raise ValueError(f"expected one input, found {[value.name for value in inputs]}")
    return inputs[0]


def input_sides(value: onnx.ValueInfoProto) -> tuple[int | None, tuple[int, ...]]:
    """The batch that the input is declared for (None: any) and the shape of one input."""
    tensor = value.type.tensor_type
    if tensor.elem_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16):
        known = {number: name for name, number in onnx.TensorProto.DataType.items()}
        raise ValueError(f"input {value.name!r}: expected floats, found {known.get(tensor.elem_type, '?')}")
    sides = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if len(sides) < 2 or any(side is None or side < 1 for side in sides[1:]):
        shown = ", ".join(str(dim.dim_value or dim.dim_param or "?") for dim in tensor.shape.dim)
        raise ValueError(f"input {value.name!r}: expected shape (batch, ...) with known sides, found ({shown})")
    batch = sides[0] if sides[0] and sides[0] > 0 else None
    shape = tuple(int(side) for side in sides[1:] if side is not None)
    limited((batch or 1, *shape), f"input {value.name!r}")
    return batch, shape


def limited(shape: Any, what: str = "a tensor") -> list[int]:
    """A shape to be made, not larger than is sensible."""
    sides = [int(side) for side in shape]
    if any(side < 0 for side in sides) or np.prod(sides, dtype=object) > MAX_ELEMENTS:
        raise ValueError(f"expected {what} of at most {MAX_ELEMENTS} elements, found shape {sides}")
    return sides
