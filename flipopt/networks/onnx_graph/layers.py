"""Layers: products, convolutions, pooling, normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from flipopt.networks.onnx_graph.model import limited
from flipopt.networks.onnx_graph.node import Function, Node

CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
TRANSPOSED = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}
MAXIMA = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}
MEANS: dict[int, Any] = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}


def gemm(node: Node) -> Function:
    """Gemm: alpha A' B' + beta C."""
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    left, right = node.get("transA", 0), node.get("transB", 0)

    def run(A: Tensor, B: Tensor, C: Tensor | None = None) -> Tensor:
        product = (A.T if left else A) @ (B.T if right else B)
        product = product if alpha == 1 else alpha * product
        if C is None:
            return product
        return product + (C if beta == 1 else beta * C)

    return run


def _rank(node: Node, functions: dict[int, Any], rank: int) -> Any:
    if rank not in functions:
        raise ValueError(f"expected 1 to 3 spatial axes, found {rank}")
    return functions[rank]


def _window(node: Node, rank: int) -> tuple[list[int], list[int]]:
    """Strides and dilations."""
    strides, dilations = node.get("strides") or [1] * rank, node.get("dilations") or [1] * rank
    if len(strides) != rank or len(dilations) != rank or min(*strides, *dilations) < 1:
        raise ValueError(f"expected {rank} positive strides and dilations, found {strides} and {dilations}")
    return list(strides), list(dilations)


def padding(node: Node, kernel: list[int], strides: list[int], dilations: list[int]) -> Callable[[Tensor], list[int]]:
    """The pads (begin of every axis, then end of every axis) that a tensor gets."""
    auto, rank = node.get("auto_pad", "NOTSET"), len(kernel)
    if auto in ("NOTSET", "VALID"):
        pads = list(node.get("pads") or [0] * 2 * rank) if auto == "NOTSET" else [0] * 2 * rank
        if len(pads) != 2 * rank or min(pads) < 0:
            raise ValueError(f"expected {2 * rank} pads of 0 or more, found {pads}")
        return lambda x: pads
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad {auto} is not translated")

    def same(x: Tensor) -> list[int]:
        """As many outputs as inputs over stride; an odd pad goes to the end (UPPER) or the beginning (LOWER)."""
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
        total = [
            max(0, (-(-side // s) - 1) * s + r - side) for side, s, r in zip(x.shape[2:], strides, reach, strict=True)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        return less + more if auto == "SAME_UPPER" else more + less

    return same


def _padded(
    x: Tensor, pads: list[int], value: float, kernel: list[int] | None = None, replicate: bool = False
) -> tuple[Tensor, list[int]]:
    """Pads that torch's layer takes (symmetric, at most half a pooling kernel) are left to it; others are added.

    To a maximum the number at the edge is as good as minus infinity (``replicate``): a window that sticks out holds it.
    """
    rank = len(pads) // 2
    if isinstance(x, Tensor):  # not while torch.fx traces
        limited([x.shape[1], *_wider(x, pads)])
    if pads[:rank] == pads[rank:] and all(2 * pad <= k for pad, k in zip(pads, kernel or (), strict=False)):
        return x, pads[:rank]
    flat = [side for axis in reversed(range(rank)) for side in (pads[axis], pads[axis + rank])]
    if replicate and all(pad < k for pad, k in zip(pads, 2 * (kernel or []), strict=True)):
        return functional.pad(x, flat, mode="replicate"), [0] * rank
    return functional.pad(x, flat, value=value), [0] * rank


def _wider(x: Tensor, pads: list[int]) -> list[int]:
    """The spatial sides of x with its pads."""
    rank = len(pads) // 2
    return [side + a + b for side, a, b in zip(x.shape[2:], pads[:rank], pads[rank:], strict=True)]


def conv(node: Node) -> Function:
    """Conv."""
    shape = node.weight(1).shape
    rank = len(shape) - 2
    function, kernel = _rank(node, CONVOLUTIONS, rank), list(shape[2:])
    (strides, dilations), groups = _window(node, rank), int(node.get("group", 1))
    if list(node.get("kernel_shape") or kernel) != kernel:
        raise ValueError(f"expected a kernel of shape {kernel}, as its weights have, found {node.get('kernel_shape')}")
    pads = padding(node, kernel, strides, dilations)

    def run(x: Tensor, W: Tensor, b: Tensor | None = None) -> Any:
        if isinstance(x, Tensor):  # not while torch.fx traces
            room = [side - d * (k - 1) - 1 for side, k, d in zip(_wider(x, pads(x)), kernel, dilations, strict=True)]
            limited([len(W), *(max(0, r // s + 1) for r, s in zip(room, strides, strict=True))])
        x, sides = _padded(x, pads(x), 0.0)
        return function(x, W, b, stride=strides, padding=sides, dilation=dilations, groups=groups)

    return run


def conv_transpose(node: Node) -> Function:
    """ConvTranspose: computed without pads, which are then cut off."""
    shape = node.weight(1).shape
    rank = len(shape) - 2
    function, groups = _rank(node, TRANSPOSED, rank), int(node.get("group", 1))
    strides, dilations = _window(node, rank)
    extra = list(node.get("output_padding") or [0] * rank)
    if node.get("output_shape") or node.get("auto_pad", "NOTSET") != "NOTSET":
        raise ValueError("output_shape and auto_pad are not translated; give pads")
    pads = list(node.get("pads") or [0] * 2 * rank)
    begin, end = pads[:rank], pads[rank:]

    def run(x: Tensor, W: Tensor, b: Tensor | None = None) -> Any:
        if isinstance(x, Tensor):
            facts = zip(x.shape[2:], shape[2:], strides, dilations, extra, strict=True)
            limited([groups * shape[1], *((side - 1) * s + d * (k - 1) + 1 + e for side, k, s, d, e in facts)])
        if begin == end:
            return function(x, W, b, strides, begin, extra, groups, dilations)
        y = function(x, W, b, strides, 0, extra, groups, dilations)
        for axis in range(rank):
            y = y.narrow(axis + 2, begin[axis], y.shape[axis + 2] - begin[axis] - end[axis])
        return y

    return run


def max_pool(node: Node) -> Function:
    """MaxPool; its second output, the indices, is not made."""
    kernel = list(node.get("kernel_shape") or [])
    function = _rank(node, MAXIMA, len(kernel))
    strides, dilations = _window(node, len(kernel))
    pads, ceil = padding(node, kernel, strides, dilations), bool(node.get("ceil_mode", 0))

    def run(x: Tensor) -> Any:
        x, sides = _padded(x, pads(x), -torch.inf, kernel, replicate=max(dilations) == 1)
        return function(x, kernel, strides, sides, dilations, ceil_mode=ceil)

    return run


def average_pool(node: Node) -> Function:
    """AveragePool."""
    kernel = list(node.get("kernel_shape") or [])
    function = _rank(node, MEANS, len(kernel))
    strides, dilations = _window(node, len(kernel))
    count = bool(node.get("count_include_pad", 0))
    pads, ceil = padding(node, kernel, strides, dilations), bool(node.get("ceil_mode", 0))
    if max(dilations) > 1:
        raise ValueError("dilations are not translated")

    def run(x: Tensor) -> Any:
        padded, sides = _padded(x, pads(x), 0.0, kernel)
        mean = function(padded, kernel, strides, sides, ceil_mode=ceil, count_include_pad=count)
        if padded is x or count:
            return mean
        share, _ = _padded(torch.ones_like(x), pads(x), 0.0, kernel)  # of every window that is not padding
        return mean / function(share, kernel, strides, sides, ceil_mode=ceil)

    return run


def global_average(x: Tensor) -> Tensor:
    """GlobalAveragePool."""
    return x.mean(dim=list(range(2, x.ndim)), keepdim=True)


def global_max(x: Tensor) -> Any:
    """GlobalMaxPool."""
    return MAXIMA[x.ndim - 2](x, x.shape[2:])


def batch_norm(node: Node) -> Function:
    """BatchNormalization with the statistics of the training."""
    if node.get("training_mode", 0):
        raise ValueError("expected the statistics of the training, found training_mode = 1; export after .eval()")
    epsilon = node.get("epsilon", 1e-5)
    return lambda x, w, b, mean, var: functional.batch_norm(x, mean, var, w, b, eps=epsilon)


def layer_norm(node: Node) -> Function:
    """LayerNormalization over all axes from ``axis`` on."""
    axis, epsilon = int(node.get("axis", -1)), node.get("epsilon", 1e-5)

    def run(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        sides = x.shape[axis:]
        return functional.layer_norm(x, sides, w.expand(sides), None if b is None else b.expand(sides), eps=epsilon)

    return run


def instance_norm(node: Node) -> Function:
    """InstanceNormalization."""
    epsilon = node.get("epsilon", 1e-5)
    return lambda x, w, b: functional.instance_norm(x, weight=w, bias=b, eps=epsilon)


def group_norm(node: Node) -> Function:
    """GroupNormalization; before opset 21 its weights were one a group."""
    groups, epsilon = int(node.get("num_groups", 1)), node.get("epsilon", 1e-5)

    def run(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        repeat = x.shape[1] // len(w)
        w, b = (w, b) if repeat == 1 else (w.repeat_interleave(repeat), b.repeat_interleave(repeat))
        return functional.group_norm(x, groups, w, b, eps=epsilon)

    return run


def einsum(node: Node) -> Function:
    """Einsum."""
    equation = node.get("equation")
    return lambda *tensors: torch.einsum(equation, *tensors)


OPERATORS: dict[str, Callable[[Node], Any]] = {
    "Gemm": gemm,
    "MatMul": lambda node: torch.matmul,
    "Einsum": einsum,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": lambda node: global_average,
    "GlobalMaxPool": lambda node: global_max,
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
}
