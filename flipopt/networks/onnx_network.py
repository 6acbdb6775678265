"""Any ONNX classifier: its graph in torch, with derivatives; without torch, forward passes by onnxruntime."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import DerivativeError, FileFormatError, InputError
from flipopt.common.limits import LimitError
from flipopt.common.quoting import listed
from flipopt.networks.onnx_graph.model import constants_of, data_input, input_sides, read_model
from flipopt.networks.onnx_graph.runtime import Runtime, logits
from flipopt.networks.onnx_graph.scores import Scores, choose_scores, producers
from flipopt.networks.pytorch import TorchNetwork

if TYPE_CHECKING:
    import torch

    from flipopt.networks.onnx_graph.module import GraphModule


class OnnxNetwork(TorchNetwork):
    """An ONNX classifier of one input.

    The graph is translated into a torch module (``module``), which gives logits and derivatives in the file's
    precision or, after ``astype("float64")``, in float64. Where torch is not installed, or an operator has no
    translation, forward passes are onnxruntime's, and asking for derivatives raises an error that says why. Labels,
    ZipMap and a last softmax, sigmoid or logistic function are taken off; ``note`` says what the logits are where that
    is not plain.

    Any tensor of the graph can be had by its name with :meth:`intermediate`, from onnxruntime.

    Parameters
    ----------
    path
        The model. External data are read from the same folder only.
    output
        Name of the tensor that holds the logits; by default the graph's first output that is not labels.
    embedding
        Name of the tensor that is the embedding; by default what goes into the last MatMul or Gemm.
    derivatives
        Refuse a graph that torch is there for and that has no translation, instead of only evaluating it.
    control_flow
        Read a graph with If, Loop or Scan, which may run for ever: for a file of your own.
    """

    def __init__(
        self,
        path: str | Path,
        output: str | None = None,
        embedding: str | None = None,
        derivatives: bool = False,
        control_flow: bool = False,
    ) -> None:
        self.path = Path(path)
        self._original = read_model(self.path, control_flow)
        self._source = producers(self._original.graph)
        for name, value in (("output", output), ("embedding", embedding)):
            if value is not None and value not in self._source:
                raise InputError(f"{name}: expected a tensor of the graph, found {value!r}")
        try:
            scores = choose_scores(self._original, output)
            declared = data_input(scores.model.graph, constants_of(scores.model.graph))
            self._fixed_batch, self.input_shape = input_sides(declared)
        except LimitError as error:
            raise LimitError(f"{self.path}: {error}") from error
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            raise FileFormatError(f"{self.path}: {error}") from error
        self._embedding_name = embedding or _last_features(scores)
        if embedding is not None and not any(embedding in node.output for node in scores.nodes):
            raise InputError(f"embedding: expected a tensor that the logits depend on, found {embedding!r}")
        self.refusal: FileFormatError | None = None
        """Why the graph could not be translated, if torch is there and it could not."""
        module: GraphModule | None = None
        if has_torch():
            from flipopt.networks.onnx_graph.batching import batched

            try:
                module, scores = batched(self.path, scores, self._fixed_batch, self.input_shape)
            except FileFormatError as error:
                if derivatives or isinstance(error, LimitError):
                    raise
                self.refusal = error
        if module is None:
            scores = self._forward_only(scores)
        else:
            super().__init__(module, self.input_shape)
        self._scores = scores

    @property
    def note(self) -> str:
        """What the logits are, where the file does not end in them; empty where it does."""
        return self._scores.note

    @property
    def why_no_derivatives(self) -> str:
        """Why there are none; empty where there are."""
        if "module" in vars(self):
            return ""
        needs = "derivatives and other precisions need torch: pip install 'flipopt[torch]'"
        return str(self.refusal or f"{self.path}: {needs}")

    @property
    def operators(self) -> Counter[str]:
        """How many nodes of every operator the logits depend on."""
        return Counter(node.op_type for node in self._scores.nodes)

    @property
    def n_parameters(self) -> int:
        """Numbers in the graph's constant tensors of floats."""
        arrays = constants_of(self._original.graph).values()
        return sum(array.size for array in arrays if array.dtype.kind == "f")

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of every tensor that a node computes, in order."""
        return tuple(self._source)

    def intermediate(self, X: ArrayLike, names: str | list[str]) -> Any:
        """The named tensors at X, by onnxruntime: one array for one name, a list for a list."""
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self._source:
                raise InputError(f"names: expected tensors among {listed(self.tensors, 20)}, found {name!r}")
        batch, single = self._batch(X)
        runtime = Runtime(self.path, self._original, wanted, self._fixed_batch)
        arrays = runtime(batch.reshape(-1, *self.input_shape))
        arrays = [array[0] for array in arrays] if single else arrays
        return arrays[0] if isinstance(names, str) else arrays

    def __getattr__(self, name: str) -> Any:
        """A network that can only be evaluated has no ``module``: whatever asks for it is told why."""
        if name == "module" and "refusal" in vars(self):
            raise DerivativeError(self.why_no_derivatives)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _forward_only(self, scores: Scores) -> Scores:
        """Forward passes by onnxruntime; the scores with the head that its values ask for."""
        names = [scores.tensor, self._embedding_name]
        try:
            rows = np.random.default_rng(0).random((3, *self.input_shape))
            self._runtime, (values, _) = Runtime.tried(self.path, scores.model, names, self._fixed_batch, rows)
            scores = scores.fitted(values)
        except FileFormatError as error:
            raise self.refusal or error from error
        except ValueError as error:
            raise self.refusal or FileFormatError(f"{self.path}: {error}") from error
        self._n_classes = logits(scores.head, values).shape[1]
        return scores

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._runtime.dtype if self.why_no_derivatives else super().dtype

    def astype(self, dtype: Any) -> OnnxNetwork:
        """The same network in float32 or float64; without derivatives only the file's own precision is there."""
        if not self.why_no_derivatives:
            return cast(OnnxNetwork, super().astype(dtype))
        if np.dtype(dtype) != self.dtype:
            raise DerivativeError(self.why_no_derivatives)
        return self

    @cached_property
    def forward_only(self) -> OnnxNetwork:
        """The same network without derivatives, by onnxruntime on one core: convolutions are several times as fast.

        Itself where onnxruntime does not take the graph or gives other values, where the file is fixed to a batch, and
        in another precision than the file's.
        """
        if self.why_no_derivatives or self._fixed_batch is not None:
            return self
        rows, names = np.random.default_rng(0).random((3, self.n_inputs)), [self._scores.tensor, self._embedding_name]
        points = rows.reshape(3, *self.input_shape)
        try:
            runtime, (values, _) = Runtime.tried(self.path, self._scores.model, names, None, points, threads=1)
        except FileFormatError:
            return self
        Y = self.logits(rows)
        same = np.allclose(logits(self._scores.head, values), Y, rtol=0, atol=1e-4 * np.abs(Y).max())
        if runtime.dtype != self.dtype or not same:
            return self
        other = cast(OnnxNetwork, self._copy())
        for name in ("module", "forward_only"):
            other.__dict__.pop(name, None)
        other._runtime = runtime
        return other

    @property
    def _graph(self) -> GraphModule:
        return cast("GraphModule", self.module)

    def _forward(self, X: torch.Tensor) -> torch.Tensor:
        if not len(X):
            return self._forward(self._torch.cat([X, X.new_zeros((1, self.n_inputs))]))[:0]  # a -1 needs some rows
        if len(X) > 1 or self._positive is None or self._graph.rows is None:
            return super()._forward(X)
        positive, other = self._positive, self._copy()
        other._positive = lambda c: positive(c.reshape(1, -1)).reshape(c.shape)  # a graph may move the batch's axis
        Y = TorchNetwork._forward(other, X)
        self._only_pooled, self._pooled = other._only_pooled, other._pooled
        return Y

    def rounded_off(self, X: Array, V: Array) -> Array:
        if self._graph.rows is None:
            return super().rounded_off(X, V)
        each = [super(OnnxNetwork, self).rounded_off(x[None], v[None]) for x, v in zip(X, V, strict=True)]
        return np.concatenate([np.zeros(0), *each])

    def _pre_activations(self, X: Array) -> list[torch.Tensor]:
        if self._graph.rows is None:
            return super()._pre_activations(X)
        rows = [super(OnnxNetwork, self)._pre_activations(x[None]) for x in X]  # tensors must not be kept out of a vmap
        return [self._torch.cat(same) for same in zip(*rows, strict=True)]

    def _logits(self, X: Array) -> Array:
        if self.why_no_derivatives:
            return logits(self._scores.head, self._runtime(X.reshape(-1, *self.input_shape))[0])
        return super()._logits(X)

    def _embedding(self, X: Array) -> Array:
        if self.why_no_derivatives:
            return self._runtime(X.reshape(-1, *self.input_shape))[1].reshape(len(X), -1)
        with self._torch.no_grad():
            points = self._tensor(X).reshape(-1, *self.input_shape)
            values = self._graph.evaluate(points, self._embedding_name)
        return np.asarray(values.reshape(len(X), -1).cpu().numpy())


def has_torch() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


def _last_features(scores: Scores) -> str:
    """What goes into the last product; the scores themselves if that is the input."""
    products = [node for node in scores.nodes if node.op_type in ("MatMul", "Gemm")]
    made = {name for node in scores.nodes for name in node.output}
    return str(products[-1].input[0]) if products and products[-1].input[0] in made else scores.tensor
