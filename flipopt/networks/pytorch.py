"""Any torch module as a network, differentiated by autograd."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import FLOATS, Array, optional_package
from flipopt.common.errors import InputError
from flipopt.networks.base import BaseNetwork
from flipopt.networks.modules import as_shape, examined, logits_of, prepared
from flipopt.networks.protocol import Network, Outputs, Pullback, RowPullback

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from flipopt.networks.torch_kinks import Positive


class TorchNetwork(BaseNetwork):
    """A torch module that maps a batch of inputs to logits, on whatever device it is.

    It computes in the module's precision, and of a module in half precision in float32. For verified flip points use
    float64: ``net.astype("float64")``. A module with one output y has two classes, with logits (0, y). Of one that
    returns probabilities the logarithms are taken, with a warning.

    Parameters
    ----------
    module
        The classifier. It is put in evaluation mode, and its parameters are left alone.
    input_shape
        Shape of one input as the module takes it, such as (1, 28, 28); points are its flattened rows. By default the
        module takes rows, of the length that its first linear layer asks for.
    embedding
        Name of the submodule whose output is the embedding; by default what goes into the last linear layer.
    device
        Where to compute, such as "cuda"; a copy of the module is put there. By default where the module is.
    """

    _positive: Positive | None = None
    _width = 0.0
    _pooled: frozenset[int] = frozenset()
    _only_pooled: frozenset[int] = frozenset()

    def __init__(
        self,
        module: torch.nn.Module,
        input_shape: Sequence[int] | None = None,
        embedding: str | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        if not isinstance(module, self._torch.nn.Module):
            raise InputError(f"module: expected a torch.nn.Module, found {type(module).__name__}")
        module = prepared(module, device)
        linear = [layer for layer in module.modules() if isinstance(layer, self._torch.nn.Linear)]
        if input_shape is None and not linear:
            raise InputError("input_shape: expected the shape of one input, since the module has no linear layer")
        self.input_shape = (linear[0].in_features,) if input_shape is None else as_shape(input_shape)
        self.module = module
        self._embedded_by, self._takes_input = self._embedding_layer(embedding, linear)
        self._n_classes, self._probabilities = examined(module, self.input_shape, self._parameter)

    @property
    def _torch(self) -> Any:
        return optional_package("torch", "torch", "TorchNetwork")

    @property
    def n_inputs(self) -> int:
        return int(np.prod(self.input_shape))

    @property
    def n_classes(self) -> int:
        return self._n_classes

    @property
    def _parameter(self) -> torch.Tensor:
        """A tensor that tells the module's device and precision."""
        tensors: list[torch.Tensor] = [*self.module.parameters(), *self.module.buffers()]
        default: torch.Tensor = self._torch.zeros((), dtype=self._torch.float64)
        return next((tensor for tensor in tensors if tensor.is_floating_point()), default)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(str(self._parameter.dtype).removeprefix("torch."))

    def astype(self, dtype: Any) -> TorchNetwork:
        """A copy of the module in float32 or float64; this network itself if it is in that precision already."""
        dtype = np.dtype(dtype)
        if dtype not in FLOATS:
            raise InputError(f"dtype: expected float32 or float64, found {dtype}")
        if dtype == self.dtype:
            return self
        other = self._copy()
        other.module = copy.deepcopy(self.module).to(getattr(self._torch, dtype.name))
        return other

    def _tensor(self, array: Array) -> torch.Tensor:
        like = self._parameter
        return self._torch.as_tensor(np.array(array), dtype=like.dtype, device=like.device)  # type: ignore[no-any-return]

    @cached_property
    def kinked(self) -> bool:
        """Whether the module has kinks that are seen while it runs."""
        return bool(self._pre_activations(np.zeros((1, self.n_inputs))))

    @cached_property
    def in_float64(self) -> Network:
        """The same in float64: as a dense network if it is one, whose derivatives are analytic and its pieces known."""
        exact = self.astype(np.float64)
        if exact._positive is not None or exact._parameter.device.type != "cpu":
            return exact
        from flipopt.networks.torch_dense import as_dense

        dense, X = as_dense(exact.module, exact.n_inputs), np.random.default_rng(0).standard_normal((4, exact.n_inputs))
        same = dense is not None and np.allclose(dense.logits(X), exact.logits(X), rtol=1e-10, atol=1e-10)
        return dense if dense is not None and same else exact

    @cached_property
    def in_float32(self) -> TorchNetwork:
        """The same in float32, for where six digits do."""
        return self.astype(np.float32)

    def softened(self, share: float, size: float) -> TorchNetwork:
        """The network with its kinks rounded off over a width of ``share`` times ``size``; itself if it has none."""
        if not self.kinked:
            return self
        other, other._width = self._copy(), share * size
        other._pooled = self._only_pooled  # known from the look for kinks
        other._positive = partial(self._torch.nn.functional.softplus, beta=1 / other._width)
        return other

    def rounded_off(self, X: Array, V: Array) -> Array:
        """How many kinks that v . y depends on are rounded off at each row of X, (rows,): slopes of 1 to 99 percent."""
        heard, positive = [], self._positive
        assert positive is not None

        def listen(c: torch.Tensor) -> torch.Tensor:
            heard.append(c)
            return positive(c)

        other = self._copy()
        other._positive = listen
        with self._torch.enable_grad():
            Y = other._forward(self._tensor(X).requires_grad_())
        slopes = self._torch.autograd.grad(Y, heard, self._tensor(V), allow_unused=True)
        count, near = self._torch.zeros(len(X)), np.log(99) * self._width
        for c, slope in zip(heard, slopes, strict=True):
            if slope is not None and c.numel() % len(X) == 0:  # else nothing depends on it, or it is of no row
                count += ((c.abs() < near) & (slope != 0)).reshape(len(X), -1).sum(dim=1).cpu()
        return _array(count)

    def sizes(self, X: Array) -> Array:
        """Root mean square of what goes into the kinks at every row of X, (rows,)."""
        squares = [c.double().square() for c in self._pre_activations(X)]
        rows = [square.reshape(len(X), -1) for square in squares if square.numel() % len(X) == 0]
        return _array(self._torch.cat(rows, dim=1).mean(dim=1).sqrt()) if rows else np.ones(len(X))

    def _pre_activations(self, X: Array) -> list[torch.Tensor]:
        heard: list[torch.Tensor] = []

        def positive(c: torch.Tensor) -> torch.Tensor:
            heard.append(c)
            return c.clamp(min=0)

        other = self._copy()
        other._positive = positive
        with self._torch.no_grad():
            other._forward(self._tensor(X))
        self._only_pooled = other._only_pooled
        return heard

    def _copy(self) -> TorchNetwork:
        """Shares the module; what was computed once for this network is not taken over."""
        other = copy.copy(self)
        for name in ("kinked", "in_float32", "in_float64"):
            other.__dict__.pop(name, None)
        return other

    def _forward(self, X: torch.Tensor) -> torch.Tensor:
        from flipopt.networks.torch_kinks import Rewriting

        points = X.reshape(-1, *self.input_shape)
        if self._positive is None:
            output = self.module(points)
        else:
            with Rewriting(self._positive, self._pooled) as mode:
                output = self.module(points)
            if self._pooled & mode.taken_otherwise:  # what a module does may depend on its input
                self._pooled = frozenset()
                return self._forward(X)
            self._only_pooled = mode.only_pooled
        return logits_of(output, len(X), X.dtype, self._probabilities)

    def _logits(self, X: Array) -> Array:
        with self._torch.no_grad():
            return _array(self._forward(self._tensor(X)))

    def _embedding_layer(self, name: str | None, linear: list[Any]) -> tuple[str, bool]:
        """Name of the submodule to listen at, and whether to take its input instead of its output."""
        named = {layer: layer_name for layer_name, layer in self.module.named_modules()}
        if name is None:
            return (named[linear[-1]], True) if linear else ("", True)
        if name not in named.values():
            raise InputError(f"embedding: expected a submodule such as {list(named.values())[-1]!r}, found {name!r}")
        return name, False

    @contextmanager
    def _heard(self) -> Iterator[list[torch.Tensor]]:
        """What passes the embedding layer while the block runs."""
        heard: list[torch.Tensor] = []
        take = self._takes_input

        def listen(_: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
            heard.append(inputs[0] if take else output)

        handle = self.module.get_submodule(self._embedded_by).register_forward_hook(listen)
        try:
            yield heard
        finally:
            handle.remove()

    def _embedding(self, X: Array) -> Array:
        with self._torch.no_grad(), self._heard() as heard:
            self._forward(self._tensor(X))
        return _array(heard[-1].reshape(len(X), -1))

    def linearize_rows(self, X: Array) -> tuple[Array, RowPullback]:
        """The logits at X (batch, n_inputs), and V J for any number of V at any of the points, in float64."""
        if not len(X):
            return super().linearize_rows(X)
        points = self._tensor(X).requires_grad_()
        with self._torch.enable_grad():
            Y = self._forward(points)

        def pullback(V: Array, at: Array) -> Array:
            G, turn = np.empty((len(V), X.shape[1])), _turns(at)
            for k in range(int(turn.max(initial=-1)) + 1):
                rows = np.flatnonzero(turn == k)
                weights = np.zeros(Y.shape)
                weights[at[rows]] = V[rows]
                (gradient,) = self._torch.autograd.grad(Y, points, self._tensor(weights), retain_graph=True)
                G[rows] = _array(gradient)[at[rows]]
            return G

        return _array(Y).astype(np.float64), pullback

    def _linearize(self, X: Array) -> tuple[Array, Pullback]:
        points = self._tensor(X).requires_grad_()
        with self._torch.enable_grad():
            Y = self._forward(points)

        def pullback(V: Array) -> Array:
            (gradient,) = self._torch.autograd.grad(Y, points, self._tensor(V), retain_graph=True)
            return _array(gradient)

        return _array(Y), pullback

    def _hessian_product(self, X: Array, V: Array, D: Array, outputs: Outputs) -> Array:
        points = self._tensor(X).requires_grad_()
        with self._torch.enable_grad():
            Y = self._forward(points)
            if outputs == "probabilities":
                Y = Y.softmax(dim=1)
            (gradient,) = self._torch.autograd.grad((Y * self._tensor(V)).sum(), points, create_graph=True)
            if not gradient.requires_grad:  # piecewise linear: the gradient does not depend on the point
                return np.zeros(X.shape, dtype=self.dtype)
            (product,) = self._torch.autograd.grad((gradient * self._tensor(D)).sum(), points, allow_unused=True)
        return np.zeros(X.shape, dtype=self.dtype) if product is None else _array(product)


def _array(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy()


def _turns(points: Array) -> Array:
    """How often each entry of ``points`` (k,) has come before, (k,)."""
    order = np.argsort(points, kind="stable")
    first = np.r_[True, points[order][1:] != points[order][:-1]]
    turn = np.empty(len(points), dtype=np.int64)
    place = np.arange(len(points))
    turn[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return turn
