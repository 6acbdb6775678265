"""An ONNX file of a generator or discriminator: read, tried, its layers found, and its parts run by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.limits import LimitError
from flipopt.generative.layers import Layer, activations, cut
from flipopt.networks.onnx_graph.model import constants_of, data_input, input_sides, read_model
from flipopt.networks.onnx_graph.runtime import Runtime
from flipopt.runs.threads import in_order

ROWS = 512
"""Rows that go to a session together."""
PROBES = 3
"""Rows that a file is tried on."""
AGREEMENT = 1e-4
"""Largest difference of a row among others and by itself, relative to the largest number: far above rounding."""


class Graph:
    """What generators and discriminators have in common. ``what`` names it in messages.

    Rows are computed by onnxruntime in the file's precision, on one core for each block of rows, and do not depend on
    the others that they are computed with, beyond rounding.
    """

    what = "a graph"

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.model = read_model(self.path)
        try:
            constants = constants_of(self.model.graph)
            batch, self.input_shape = input_sides(data_input(self.model.graph, constants))
            self.input_name = data_input(self.model.graph, constants).name
            if len(self.model.graph.output) != 1:
                raise ValueError(f"expected one output, found {len(self.model.graph.output)}")
            self.output_name = self.model.graph.output[0].name
            found = activations(self.model, self.output_name)
        except LimitError as error:
            raise LimitError(f"{self.path}: {error}") from error
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            raise FileFormatError(f"{self.path}: expected {self.what} in ONNX: {error}") from error
        for name, array in constants.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise self.refusal(f"expected finite weights, found NaN or infinity in {name!r}")
        if batch is not None:
            raise self.refusal(f"expected an input of any batch, found a fixed batch of {batch}: export a dynamic one")
        if not found:
            raise self.refusal("expected layers with activations (ReLU, LeakyReLU, tanh, ...), found none")
        self._check_input()
        values = self._tried([*(one.before for one in found), self.output_name])
        self.output_shape: tuple[int, ...] = values[-1].shape[1:]
        shapes = [array.shape[1:] for array in values[:-1]]
        self.layers: tuple[Layer, ...] = tuple(
            Layer(k, one.before, shape, int(np.prod(shape)), one.operator, one.after)
            for k, (one, shape) in enumerate(zip(found, shapes, strict=True), 1)
        )
        """Every tensor that goes into an activation, in the order of the graph."""
        self._parts: dict[tuple[str, str], Runtime] = {}

    def refusal(self, why: str) -> FileFormatError:
        """An error that names the file."""
        return FileFormatError(f"{self.path}: {why}")

    @property
    def n_inputs(self) -> int:
        """Numbers that go in for a row."""
        return int(np.prod(self.input_shape))

    def layer(self, number: Any, name: str = "layer") -> Layer:
        """The layer of a number; an error that names the argument if there is none."""
        if as_whole(number, name, least=1) > len(self.layers):
            raise InputError(f"{name}: expected a layer from 1 to {len(self.layers)}, found {number}")
        return self.layers[int(number) - 1]

    def part(self, source: str, shape: tuple[int, ...], target: str) -> onnx.ModelProto:
        """The graph from one tensor, (rows, *shape), to another one."""
        try:
            return cut(self.model, source, shape, target)
        except ValueError as error:
            raise InputError(f"{self.path}: expected a layer that all of the output goes through: {error}") from error

    def run(self, X: Array, source: str, shape: tuple[int, ...], target: str) -> Array:
        """The tensor ``target`` (rows, ...) from the values X (rows, ...) of ``source``."""
        if (source, target) not in self._parts:
            model = self.part(source, shape, target)
            self._parts[source, target] = Runtime(self.path, model, [target], None, threads=1)
        runtime = self._parts[source, target]
        points = X.reshape(-1, *shape)
        return in_blocks(partial(_only, runtime), points)

    def _tried(self, names: list[str]) -> list[Array]:
        """The tensors for a few rows: tried with limited memory and time, and looked at."""
        rows = np.random.default_rng(0).standard_normal((PROBES, *self.input_shape))
        _, values = Runtime.tried(self.path, self.model, names, None, rows, threads=1)
        runtime = Runtime(self.path, self.model, names, None, threads=1)
        runtime(rows)
        for name, array, alone in zip(names, values, runtime(rows[:1]), strict=True):  # chance has other numbers by now
            if array.ndim < 2 or len(array) != PROBES:
                raise self.refusal(f"expected a row of {name!r} for every row of the input, found shape {array.shape}")
            if not np.isfinite(array).all():
                raise self.refusal(f"expected finite numbers, found NaN or infinity in {name!r}")
            if np.abs(array[:1] - alone).max(initial=0.0) > AGREEMENT * np.abs(array).max(initial=0.0):
                self._depends(name)
        return values

    def _check_input(self) -> None:
        """Hears of the shape of the input."""

    def _depends(self, name: str) -> None:
        """Hears of a tensor whose rows depend on each other, or on chance."""
        raise self.refusal(
            f"expected rows that do not depend on each other or on chance, found some that do in {name!r}: export it "
            "in evaluation mode"
        )


def _only(runtime: Runtime, X: Array) -> Array:
    return runtime(X)[0]


def in_blocks(task: Callable[[Array], Array], X: Array, size: int = ROWS) -> Array:
    """``task`` on blocks of rows of X, over the cores; also of no rows."""
    if 0 < len(X) <= size:
        return task(X)
    parts = [X[first : first + size] for first in range(0, len(X), size)]
    return np.concatenate(list(in_order(task, parts))) if parts else task(np.zeros((1, *X.shape[1:]), X.dtype))[:0]
