"""The kinks of any torch module, found while it runs: no tracing, no list of layers.

Every piecewise linear function that classifiers use is made of one, c+ = max(c, 0):

    leaky ReLU      alpha c + (1 - alpha) c+
    hard tanh       low + (c - low)+ - (c - high)+
    max(a, b)       b + (a - b)+, and of more numbers the maximum of maxima

While :class:`Rewriting` is active, torch hands over the calls of such functions, and every c+ in them becomes a call of
a function of ours: rounded off, or one whose slope at the kink is to be chosen. Rounding off (a - b)+ as a softplus
turns max(a, b) into log-sum-exp, whatever the order in which maxima are taken.

A ReLU before a max-pooling changes places with it, which is the same function: max(a+, b+) = max(a, b)+. There are
fewer kinks then, and no ties between neurons that are switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

Positive = Callable[[Tensor], Tensor]
"""Takes the place of c -> c+, elementwise."""


class Rewriting(TorchFunctionMode):
    """Within this context every c+ is computed by ``positive``.

    ``pooled`` are the ReLUs, numbered in the order of their calls, that nothing but max-pooling takes: their c+ is not
    computed. Those of a run that has ended are its ``only_pooled``.
    """

    def __init__(self, positive: Positive, pooled: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.positive, self.pooled = positive, pooled
        self.before: dict[int, tuple[Tensor, Tensor, int]] = {}
        self.relus, self.taken, self.taken_otherwise = 0, set[int](), set[int]()

    @property
    def only_pooled(self) -> frozenset[int]:
        return frozenset(self.taken - self.taken_otherwise)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule, kwargs = RULES.get(func), kwargs or {}
        if args and isinstance(args[0], Tensor) and not args[0].is_floating_point():
            rule = None  # an index has no kinks
        result = func(*args, **kwargs) if rule is None else rule(self, func, *args, **kwargs)
        if rule not in POOLS.values() and not isinstance(result, torch.Size | int | torch.dtype | torch.device):
            self.taken_otherwise |= {
                self.before[id(value)][2] for value in _flat(args, kwargs) if id(value) in self.before
            }
        return result

    def relu(self, c: Tensor, inplace: bool = False) -> Tensor:
        """c+, of which a max-pooling that follows can take c."""
        target, c = c, c.clone() if inplace else c
        y = c.view_as(c) if self.relus in self.pooled else self.positive(c)
        y = target.copy_(y) if inplace else y
        self.before[id(y)] = (y, c, self.relus)  # y is kept, so that no other tensor takes its id
        self.relus += 1
        return y

    def maximum(self, parts: Sequence[Tensor]) -> Tensor:
        """The elementwise maximum, in rounds."""
        parts = list(parts)
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [b + self.positive(a - b) for a, b in pairs] + parts[len(parts) // 2 * 2 :]
        return parts[0]


def _flat(args: Any, kwargs: Any) -> Iterator[Any]:
    """What a function is given, lists of tensors taken apart."""
    for value in (*args, *kwargs.values()):
        yield from value if isinstance(value, list | tuple) else (value,)


def _relu(mode: Rewriting, func: Any, c: Tensor, inplace: bool = False) -> Tensor:
    return mode.relu(c, inplace)


def _relu_in_place(mode: Rewriting, func: Any, c: Tensor) -> Tensor:
    return mode.relu(c, inplace=True)


def _leaky(mode: Rewriting, func: Any, c: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    before = c.clone() if inplace else c
    y = negative_slope * before + (1 - negative_slope) * mode.positive(before)
    return c.copy_(y) if inplace else y


def _prelu(mode: Rewriting, func: Any, c: Tensor, weight: Tensor) -> Tensor:
    alpha = weight.reshape(1, -1, *[1] * (c.ndim - 2)) if weight.numel() > 1 else weight
    return alpha * c + (1 - alpha) * mode.positive(c)


def _hard_tanh(
    mode: Rewriting, func: Any, c: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    y = min_val + mode.positive(c - min_val) - mode.positive(c - max_val)
    return c.copy_(y) if inplace else y


def _relu6(mode: Rewriting, func: Any, c: Tensor, inplace: bool = False) -> Tensor:
    return _hard_tanh(mode, func, c, 0.0, 6.0, inplace)


def _hard_sigmoid(mode: Rewriting, func: Any, c: Tensor, inplace: bool = False) -> Tensor:
    return _relu6(mode, func, c + 3) / 6


def _hard_swish(mode: Rewriting, func: Any, c: Tensor, inplace: bool = False) -> Tensor:
    return c * _relu6(mode, func, c + 3) / 6


def _clamp(mode: Rewriting, func: Any, c: Tensor, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    y = c if min is None else min + mode.positive(c - min)
    return y if max is None else y - mode.positive(c - max)


def _abs(mode: Rewriting, func: Any, c: Tensor) -> Tensor:
    return mode.positive(c) + mode.positive(-c)


def _maximum(mode: Rewriting, func: Any, c: Tensor, other: Tensor) -> Tensor:
    return mode.maximum([c, other])


def _minimum(mode: Rewriting, func: Any, c: Tensor, other: Tensor) -> Tensor:
    return -mode.maximum([-c, -other])


def _amax(mode: Rewriting, func: Any, c: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    dims = sorted(d % c.ndim for d in ([dim] if isinstance(dim, int) else dim)) or list(range(c.ndim))
    kept = [d for d in range(c.ndim) if d not in dims]
    y = mode.maximum(c.permute(*dims, *kept).flatten(0, len(dims) - 1).unbind(0))
    return y.reshape([1 if d in dims else c.shape[d] for d in range(c.ndim)]) if keepdim else y


def _max(mode: Rewriting, func: Any, c: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    if isinstance(dim, Tensor) or "other" in options:
        return _maximum(mode, func, c, options.get("other", dim))
    if dim is None:
        return _amax(mode, func, c)
    index = func(c, dim, keepdim).indices
    return torch.return_types.max((_amax(mode, func, c, dim, keepdim), index))


def _max_pool(dimensions: int) -> Callable[..., Tensor]:
    """Of so many dimensions."""

    def pool(
        mode: Rewriting,
        func: Any,
        c: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        size, gap, edge, spread = (
            _sides(value, dimensions)
            for value in (kernel_size, kernel_size if stride in (None, ()) else stride, padding, dilation)
        )
        if return_indices or (set(spread) != {1} and (ceil_mode or any(edge))):
            return func(c, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        before = mode.before.get(id(c))
        if before is not None:
            c = before[1]
            mode.taken.add(before[2])
        shape, ends = func(c, kernel_size, stride, padding, dilation, ceil_mode).shape[-dimensions:], []
        for axis, k in enumerate(shape):  # of a window that sticks out, the number at the edge is a part
            reach = (k - 1) * gap[axis] + spread[axis] * (size[axis] - 1) + 1
            ends += [max(0, reach - edge[axis] - c.shape[axis - dimensions]), edge[axis]]
        c = functional.pad(c, ends[::-1], mode="replicate") if any(ends) else c
        for axis, k in enumerate(shape):
            starts = [spread[axis] * first for first in range(size[axis])]
            c = mode.maximum([_every(c, axis - dimensions, start, gap[axis], k) for start in starts])
        return c if before is None else mode.relu(c)

    return pool


def _every(c: Tensor, axis: int, first: int, step: int, count: int) -> Tensor:
    index = [slice(None)] * c.ndim
    index[axis] = slice(first, first + step * (count - 1) + 1, step)
    return c[tuple(index)]


def _adaptive_max_pool(dimensions: int) -> Callable[..., Tensor]:
    def pool(mode: Rewriting, func: Any, c: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        if return_indices or set(_sides(output_size, dimensions)) != {1}:
            return func(c, output_size, return_indices)
        return _amax(mode, func, c, tuple(range(-dimensions, 0)), True)

    return pool


def _sides(value: Any, dimensions: int) -> list[int]:
    sides = [value] if isinstance(value, int) else list(value)
    return sides * dimensions if len(sides) == 1 else sides


POOLS = {dimensions: _max_pool(dimensions) for dimensions in (1, 2, 3)}
RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((functional.relu, torch.relu, Tensor.relu), _relu),
    **dict.fromkeys((torch.relu_, Tensor.relu_), _relu_in_place),
    functional.leaky_relu: _leaky,
    functional.prelu: _prelu,
    torch.prelu: _prelu,
    functional.hardtanh: _hard_tanh,
    functional.relu6: _relu6,
    functional.hardsigmoid: _hard_sigmoid,
    functional.hardswish: _hard_swish,
    **dict.fromkeys((torch.clamp, Tensor.clamp, torch.clip, Tensor.clip), _clamp),
    **dict.fromkeys((torch.abs, Tensor.abs), _abs),
    **dict.fromkeys((torch.maximum, Tensor.maximum), _maximum),
    **dict.fromkeys((torch.minimum, Tensor.minimum), _minimum),
    **dict.fromkeys((torch.amax, Tensor.amax), _amax),
    **dict.fromkeys((torch.max, Tensor.max), _max),
    **dict.fromkeys((functional.max_pool1d, torch.max_pool1d), POOLS[1]),
    **dict.fromkeys((functional.max_pool2d, torch.max_pool2d), POOLS[2]),
    **dict.fromkeys((functional.max_pool3d, torch.max_pool3d), POOLS[3]),
    functional.adaptive_max_pool1d: _adaptive_max_pool(1),
    functional.adaptive_max_pool2d: _adaptive_max_pool(2),
}
