"""Sums, means, norms and maxima over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from flipopt.networks.onnx_graph.node import Function, Node


def reduction(function: Callable[[Tensor, list[int], bool], Any]) -> Callable[[Node], Function]:
    """A reduction over ``axes`` (an attribute, later an input); without any over all axes."""

    def build(node: Node) -> Function:
        axes, keep = node.integers("axes", 1), bool(node.get("keepdims", 1))
        if not axes and node.get("noop_with_empty_axes", 0):
            return lambda x, *_: x
        return lambda x, *_: function(x, axes or list(range(x.ndim)), keep)

    return build


def largest(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The maximum over ``axes`` as max-pooling, so that its kinks are seen."""
    chosen = sorted(axis % x.ndim for axis in axes)
    rest = [axis for axis in range(x.ndim) if axis not in chosen]
    flat = x.permute(*rest, *chosen).reshape(*(x.shape[axis] for axis in rest), -1)
    lines = flat.reshape(1, -1, flat.shape[-1])
    top = functional.max_pool1d(lines, flat.shape[-1]).reshape(flat.shape[:-1])
    for axis in chosen if keep else ():
        top = top.unsqueeze(axis)
    return top


def smallest(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The minimum over ``axes``."""
    return -largest(-x, axes, keep)


def product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The product over ``axes``."""
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = x.prod(dim=axis, keepdim=keep)
    return x


def absolute_sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The 1-norm."""
    return (functional.relu(x) + functional.relu(-x)).sum(axes, keepdim=keep)


OPERATORS: dict[str, Callable[[Node], Any]] = {
    "ReduceMean": reduction(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "ReduceSum": reduction(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "ReduceSumSquare": reduction(lambda x, axes, keep: x.square().sum(axes, keepdim=keep)),
    "ReduceL1": reduction(absolute_sum),
    "ReduceL2": reduction(lambda x, axes, keep: x.square().sum(axes, keepdim=keep).sqrt()),
    "ReduceLogSumExp": reduction(lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep)),
    "ReduceMax": reduction(largest),
    "ReduceMin": reduction(smallest),
    "ReduceProd": reduction(product),
}
