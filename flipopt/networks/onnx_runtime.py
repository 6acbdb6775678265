"""Any ONNX classifier, evaluated by onnxruntime. It has no derivatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import DerivativeError, FileFormatError, InputError
from flipopt.networks.base import BaseNetwork
from flipopt.networks.protocol import Outputs, Pullback


class OnnxNetwork(BaseNetwork):
    """An ONNX model with one input and logits as its first output.

    Any tensor of the graph can be had by its name with :meth:`intermediate`.

    Parameters
    ----------
    path
        The model.
    output
        Name of the tensor that holds the logits; by default the graph's first output. If that comes out of a softmax,
        what goes into the softmax is taken.
    embedding
        Name of the tensor that is the embedding; by default what goes into the last MatMul or Gemm.
    """

    def __init__(self, path: str | Path, output: str | None = None, embedding: str | None = None) -> None:
        from flipopt.networks.files.onnx import read_model

        self.path = Path(path)
        self._model = read_model(self.path)
        self._source = {name: node for node in self._model.graph.node for name in node.output}
        self._output = self._logit_tensor(output)
        self._embedding_name = embedding or self._last_features()
        self._session = self._start((self._output, self._embedding_name))
        (declared,) = self._session.get_inputs()
        self._input, self._dtype = declared.name, np.dtype(_DTYPES.get(declared.type, "float32"))
        if declared.type not in _DTYPES:
            raise FileFormatError(f"{self.path}: expected an input of float32 or float64, found {declared.type}")
        self.input_shape = self._one_input(declared.shape)
        self._n_classes = self._run([self._output], np.zeros((1, self.n_inputs)))[0].shape[1]

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of every tensor that a node computes, in order."""
        return tuple(self._source)

    @property
    def n_inputs(self) -> int:
        return int(np.prod(self.input_shape))

    @property
    def n_classes(self) -> int:
        return int(self._n_classes)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    def astype(self, dtype: Any) -> OnnxNetwork:
        if np.dtype(dtype) != self._dtype:
            raise InputError(f"dtype: an ONNX model keeps the precision it was exported in, {self._dtype}")
        return self

    def intermediate(self, X: ArrayLike, names: str | list[str]) -> Any:
        """The named tensors at X: one array for one name, a list for a list."""
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self._source:
                raise InputError(f"names: expected tensors among {', '.join(self.tensors[:20])}, found {name!r}")
        batch, single = self._batch(X)
        session = self._start(tuple(wanted))
        arrays = self._run(wanted, batch, session)
        arrays = [array[0] for array in arrays] if single else arrays
        return arrays[0] if isinstance(names, str) else arrays

    def _logits(self, X: Array) -> Array:
        return self._run([self._output], X)[0]

    def _embedding(self, X: Array) -> Array:
        return self._run([self._embedding_name], X)[0].reshape(len(X), -1)

    def _linearize(self, X: Array) -> tuple[Array, Pullback]:
        self._no_derivatives()

    def _hessian_product(self, X: Array, V: Array, D: Array, outputs: Outputs) -> Array:
        self._no_derivatives()

    def _no_derivatives(self) -> NoReturn:
        raise DerivativeError(
            f"{self.path}: onnxruntime gives no derivatives. If the model is a chain of dense layers, read it with "
            "flipopt.load_network; otherwise load the original in torch and wrap it in flipopt.TorchNetwork."
        )

    def _run(self, names: list[str], X: Array, session: Any = None) -> list[Array]:
        points = np.ascontiguousarray(X.reshape(-1, *self.input_shape), dtype=self._dtype)
        try:
            outputs = (session or self._session).run(names, {self._input: points})
        except Exception as error:  # onnxruntime's errors have no common base
            raise FileFormatError(f"{self.path}: onnxruntime could not evaluate it: {error}") from error
        return [np.asarray(output) for output in outputs]

    def _start(self, names: tuple[str, ...]) -> Any:
        """A session that also gives the named tensors."""
        import onnx
        import onnxruntime

        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        known = {value.name for value in model.graph.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in known)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        try:
            return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no common base
            raise FileFormatError(f"{self.path}: onnxruntime does not accept it: {error}") from error

    def _one_input(self, shape: list[Any]) -> tuple[int, ...]:
        sides = tuple(shape[1:])
        if not sides or not all(isinstance(side, int) and side > 0 for side in sides):
            raise FileFormatError(f"{self.path}: expected an input of shape (batch, ...), found {shape}")
        return sides

    def _logit_tensor(self, name: str | None) -> str:
        graph = self._model.graph
        if name is None:
            if not graph.output:
                raise FileFormatError(f"{self.path}: the graph has no output")
            name = graph.output[0].name
        if name not in self._source:
            raise InputError(f"output: expected a tensor of the graph, found {name!r}")
        node = self._source[name]
        return str(node.input[0]) if node.op_type == "Softmax" else name

    def _last_features(self) -> str:
        products = [node for node in self._model.graph.node if node.op_type in ("MatMul", "Gemm")]
        inputs = {value.name for value in self._model.graph.input}
        if products and products[-1].input[0] not in inputs:
            return str(products[-1].input[0])
        return self._output


_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}
