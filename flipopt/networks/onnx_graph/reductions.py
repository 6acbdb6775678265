"""Sums, means, norms and maxima over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from flipopt.networks.onnx_graph.node import Function, Node


def reduction(function: Callable[[Tensor, list[int], bool], Any]) -> Callable[[Node], Function]:
    """A reduction over ``axes`` (an attribute, later an input); without any over all axes."""

    def build(node: Node) -> Function:
        axes, keep = node.integers("axes", 1), bool(node.get("keepdims", 1))
        if not axes and node.get("noop_with_empty_axes", 0):
            return lambda x, *_: x
        return lambda x, *_: function(x, axes or list(range(x.ndim)), keep)

    return build


def product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The product over ``axes``."""
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = x.prod(dim=axis, keepdim=keep)
    return x


OPERATORS: dict[str, Callable[[Node], Any]] = {
    "ReduceMean": reduction(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "ReduceSum": reduction(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "ReduceSumSquare": reduction(lambda x, axes, keep: x.square().sum(axes, keepdim=keep)),
    "ReduceL1": reduction(lambda x, axes, keep: torch.abs(x).sum(axes, keepdim=keep)),
    "ReduceL2": reduction(lambda x, axes, keep: x.square().sum(axes, keepdim=keep).sqrt()),
    "ReduceLogSumExp": reduction(lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep)),
    "ReduceMax": reduction(lambda x, axes, keep: torch.amax(x, axes, keepdim=keep)),
    "ReduceMin": reduction(lambda x, axes, keep: -torch.amax(-x, axes, keepdim=keep)),
    "ReduceProd": reduction(product),
}
