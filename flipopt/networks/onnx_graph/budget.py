"""What a graph from a stranger may take while it is tried: memory and multiplications, counted beforehand."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from flipopt.common.limits import limits, require_within

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution", "matmul", "linear", "mv", "dot")


class Budget(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is in force, an operation that would make tensors beyond the limits is refused instead of run.

    Every operation runs on tensors without data first (the "meta" device), which gives the shapes that it will make.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.elements, self.work = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = _shapes(function, args, kwargs)
        new = sum(math.prod(shape) for shape in made)
        require_within(self.elements + new, limits().elements, "elements of the tensors at once")
        self.work += _work(function, [value.shape for value in _tensors((args, kwargs))], made)
        require_within(self.work, limits().work, "multiplications to try it")
        result = function(*args, **kwargs)
        for value in _tensors(result):
            self._count(value)
        return result

    def _count(self, value: Tensor) -> None:
        """Count a tensor as long as it lives; a view counts as if it were none, which errs on the safe side."""
        self.elements += value.numel()
        weakref.finalize(value, self._forget, value.numel())

    def _forget(self, elements: int) -> None:
        self.elements -= elements


def _tensors(tree: Any) -> list[Tensor]:
    """The tensors among arguments or results, in lists too."""
    if isinstance(tree, Tensor):
        return [tree]
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [tensor for value in inner for tensor in _tensors(value)]


def _shapes(function: Any, args: Any, kwargs: Any) -> list[Sequence[int]]:
    """The shapes of what an operation makes; none if it cannot be told without data (of single numbers, mostly)."""
    try:
        if torch.Tag.pointwise in function.tags:
            return [np.broadcast_shapes(*(tuple(value.shape) for value in _tensors((args, kwargs))))]
        empty = tree_map(lambda value: _empty(value) if isinstance(value, Tensor) else value, (args, kwargs))
        if "device" in kwargs:
            empty[1]["device"] = torch.device("meta")
        return [tuple(value.shape) for value in _tensors(function(*empty[0], **empty[1]))]
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return []


def _empty(value: Tensor) -> Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _work(function: Any, inputs: Sequence[Sequence[int]], made: Sequence[Sequence[int]]) -> int:
    """Multiplications of a product: of (m, k) and (k, n) into (m, n) the root of mk kn mn; else what is made."""
    sizes = [max(1, math.prod(shape)) for shape in (*inputs, *made)]
    if function.overloadpacket.__name__ in PRODUCTS and len(sizes) >= 3:
        return math.isqrt(math.prod(sorted(sizes)[-3:]))
    return sizes[-1] if made else 1
