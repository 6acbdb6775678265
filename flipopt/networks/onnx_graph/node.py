"""One node of a graph as its translation sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from flipopt.common.checks import Array
from flipopt.networks.onnx_graph.model import where_is
from flipopt.networks.onnx_graph.scores import attributes

Function = Callable[..., Any]
"""Tensors (None for an input left out) to a tensor, or a tuple of them."""


@dataclass(frozen=True)
class Node:
    """What a node says, and what is known of its inputs before anything runs."""

    proto: onnx.NodeProto
    constants: Mapping[str, Array]
    opset: int
    batch: int | None = None
    """A leading side of a Reshape's shape that stands for the batch, in a file with a fixed one."""
    held: list[Array] = field(default_factory=list)
    """Arrays out of attributes, which the function gets after its inputs."""

    @property
    def where(self) -> str:
        return where_is(self.proto)

    @property
    def kind(self) -> str:
        return str(self.proto.op_type)

    @property
    def attributes(self) -> dict[str, Any]:
        return attributes(self.proto)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; text as str."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def known(self, k: int) -> Array | None:
        """Input ``k`` if it is a constant; None also if it is left out."""
        name = self.proto.input[k] if k < len(self.proto.input) else ""
        return self.constants.get(name)

    def has(self, k: int) -> bool:
        return k < len(self.proto.input) and bool(self.proto.input[k])

    def weight(self, k: int) -> Array:
        """Input ``k``, which must be a constant."""
        array = self.known(k)
        if array is None:
            raise ValueError(f"expected a constant as input {k}")
        return array

    def integers(self, name: str, k: int, default: Any = None) -> Any:
        """A list of integers that older operators have as an attribute and newer ones as input ``k``, a constant."""
        if name in self.attributes:
            value = self.attributes[name]
            return [int(entry) for entry in value] if isinstance(value, list | tuple) else [int(value)]
        return [int(entry) for entry in self.weight(k).reshape(-1)] if self.has(k) else default

    def number(self, name: str, k: int, default: float | None = None) -> float | None:
        """The same for one number."""
        if name in self.attributes:
            return float(self.attributes[name])
        return float(self.weight(k).reshape(())) if self.has(k) else default

    def hold(self, values: Any) -> None:
        """Keep an array for the function, in float64: the module rounds it to its own precision."""
        array = np.asarray(values, dtype=np.float64)
        if not np.isfinite(array).all():
            raise ValueError("an attribute holds NaN or infinity")
        self.held.append(array)
