"""Forward passes of a graph by onnxruntime."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import onnx

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.networks.onnx_graph.scores import Head

_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}


class Runtime:
    """A session that gives the named tensors of a model; a fixed batch is filled up with copies of the last row."""

    def __init__(self, path: Path, model: onnx.ModelProto, names: list[str], batch: int | None) -> None:
        import onnxruntime

        self.path, self.names, self.batch = path, names, batch
        shown = onnx.ModelProto()
        shown.CopyFrom(model)
        known = {value.name for value in shown.graph.output}
        wanted = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in known]
        shown.graph.output.extend(wanted)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            data = shown.SerializeToString()
            self.session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no common base
            raise FileFormatError(f"{path}: onnxruntime does not accept it: {error}") from error
        (declared,) = self.session.get_inputs()
        if declared.type not in _DTYPES:
            raise FileFormatError(f"{path}: expected an input of float32 or float64, found {declared.type}")
        self.input, self.dtype = declared.name, np.dtype(_DTYPES[declared.type])

    def __call__(self, X: Array) -> list[Array]:
        """The tensors at X (rows, ...)."""
        points = np.ascontiguousarray(X, dtype=self.dtype)
        if self.batch is None:
            return self._run(points)
        parts = [self._filled(points[k : k + self.batch]) for k in range(0, len(points), self.batch)]
        return [np.concatenate(rows) for rows in zip(*parts, strict=True)]

    def _filled(self, points: Array) -> list[Array]:
        missing = (self.batch or 0) - len(points)
        whole = np.concatenate([points, np.repeat(points[-1:], missing, axis=0)])
        return [array[: len(points)] for array in self._run(whole)]

    def _run(self, points: Array) -> list[Array]:
        try:
            return [np.asarray(array) for array in self.session.run(self.names, {self.input: points})]
        except Exception as error:  # onnxruntime's errors have no common base
            raise FileFormatError(f"{self.path}: onnxruntime could not evaluate it: {error}") from error


def logits(head: Head, Y: Array) -> Array:
    """The scores Y (batch, ...) as logits (batch, classes), as :func:`flipopt.networks.onnx_graph.module.logits`."""
    Y = Y.reshape(len(Y), -1)
    match head:
        case "column":
            return np.column_stack([np.zeros(len(Y), Y.dtype), Y[:, -1]])
        case "log":
            return np.asarray(np.log(Y + np.finfo(Y.dtype).tiny))
        case "log_sigmoid":
            return np.asarray(-np.logaddexp(0, -Y))
        case "pairwise" if Y.shape[1] == 2:
            return np.column_stack([np.zeros(len(Y), Y.dtype), Y[:, 0]])
        case "pairwise":
            classes = round((1 + np.sqrt(1 + 8 * Y.shape[1])) / 2)
            own = np.full((len(Y), classes, classes), np.inf, dtype=Y.dtype)
            for p, (i, j) in enumerate(combinations(range(classes), 2)):
                own[:, i, j], own[:, j, i] = Y[:, p], -Y[:, p]
            return np.asarray(own.min(axis=2))
    return Y
