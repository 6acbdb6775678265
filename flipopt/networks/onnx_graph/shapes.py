"""Operators that move, cut, join or count entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from flipopt.networks.onnx_graph.model import limited
from flipopt.networks.onnx_graph.node import Function, Node

FAR = 2**40
"""Beyond any index; files write the largest integer there is for "to the end", which torch does not take."""


def reshape(node: Node) -> Function:
    """Reshape. A 0 copies a side; in a file with a fixed batch the leading side is the batch that comes in."""
    known, copies = node.integers("shape", 1) if node.known(1) is not None else None, not node.get("allowzero", 0)
    fixed = known is not None and node.batch is not None and len(known) > 0 and known[0] == node.batch

    def run(x: Tensor, shape: Tensor) -> Tensor:
        sides: list[Any] = list(shape.tolist() if known is None else known)
        if copies:
            sides = [x.shape[axis] if side == 0 else side for axis, side in enumerate(sides)]
        if fixed:
            sides[0] = x.shape[0]
        return x.reshape(sides)

    return run


def flatten(node: Node) -> Function:
    """Flatten to a matrix, split before ``axis``."""
    axis = int(node.get("axis", 1))
    if axis == 1:
        return lambda x: x.flatten(1)
    return lambda x: x.reshape(int(np.prod(x.shape[:axis])), -1)


def transpose(node: Node) -> Function:
    """Transpose."""
    order = node.get("perm")
    return lambda x: x.permute(order if order else list(range(x.ndim))[::-1])


def concat(node: Node) -> Function:
    """Concat."""
    axis = int(node.get("axis", 0))
    return lambda *tensors: torch.cat(tensors, dim=axis)


def split(node: Node) -> Function:
    """Split into given sizes, or into equal parts."""
    axis, sizes, parts = int(node.get("axis", 0)), node.integers("split", 1), len(node.proto.output)

    def run(x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        equal = -(-x.shape[axis] // parts)
        return torch.split(x, equal if sizes is None else sizes, dim=axis)

    return run


def cut(node: Node) -> Function:
    """Slice; constant bounds may be attributes (before opset 10) or inputs, others only inputs."""
    if node.opset < 10:
        starts, ends = node.get("starts"), node.get("ends")
        axes = node.get("axes") or list(range(len(starts)))
        return lambda x: _cut(x, starts, ends, axes, [1] * len(axes))

    def run(x: Tensor, *bounds: Tensor | None) -> Tensor:
        known = [_list(node, k + 1, bound) for k, bound in enumerate(bounds)]
        starts, ends = known[:2]
        axes = known[2] if len(known) > 2 and known[2] is not None else list(range(len(starts)))
        steps = known[3] if len(known) > 3 and known[3] is not None else [1] * len(starts)
        return _cut(x, starts, ends, axes, steps)

    return run


def _list(node: Node, k: int, tensor: Tensor | None) -> Any:
    array = node.known(k)
    if array is not None:
        return array.reshape(-1).tolist()
    return None if tensor is None else tensor.reshape(-1).tolist()


def _cut(x: Tensor, starts: Any, ends: Any, axes: Any, steps: Any) -> Tensor:
    for first, last, axis, step in zip(starts, ends, axes, steps, strict=True):
        start, end = (max(-FAR, min(FAR, bound)) for bound in (first, last))
        if step > 0:
            index: list[Any] = [slice(None)] * x.ndim
            index[axis] = slice(start, end, step)
            x = x[tuple(index)]
        else:  # torch has no negative steps
            chosen = range(x.shape[axis])[start:end:step]
            x = x.index_select(axis, torch.tensor(list(chosen), dtype=torch.int64, device=x.device))
    return x


def gather(node: Node) -> Function:
    """Gather: one index drops its axis."""
    axis, index = int(node.get("axis", 0)), node.known(1)
    if index is not None and index.ndim == 0:
        at = int(index)
        return lambda x, _: x.select(axis, at)

    def run(x: Tensor, at: Tensor) -> Tensor:
        side = x.shape[axis]
        flat = torch.where(at < 0, at + side, at).reshape(-1)
        taken = x.index_select(axis, flat)
        where = axis % x.ndim
        return taken.reshape(*x.shape[:where], *at.shape, *x.shape[where + 1 :])

    return run


def squeeze(node: Node) -> Function:
    """Squeeze; without axes all sides of 1 but the batch's."""
    axes = node.integers("axes", 1)

    def run(x: Tensor, *_: Tensor) -> Tensor:
        chosen = axes if axes is not None else [axis for axis in range(1, x.ndim) if x.shape[axis] == 1]
        return x.squeeze(tuple(chosen))

    return run


def unsqueeze(node: Node) -> Function:
    """Unsqueeze; the axes count in the result."""
    axes = node.integers("axes", 1)

    def run(x: Tensor, *_: Tensor) -> Tensor:
        rank = x.ndim + len(axes)
        for axis in sorted(axis % rank for axis in axes):
            x = x.unsqueeze(axis)
        return x

    return run


def expand(node: Node) -> Function:
    """Expand to a shape that the tensor's own broadcasts with."""

    def run(x: Tensor, shape: Tensor) -> Tensor:
        return x.expand(limited(np.broadcast_shapes(tuple(x.shape), tuple(_list(node, 1, shape)))))

    return run


def tile(node: Node) -> Function:
    """Tile."""

    def run(x: Tensor, repeats: Tensor) -> Tensor:
        times = _list(node, 1, repeats)
        limited(side * count for side, count in zip(x.shape, times, strict=True))
        return x.repeat(times)

    return run


def shape_of(node: Node) -> Function:
    """Shape."""
    start, end = node.get("start", 0), node.get("end", None)
    return lambda x: torch.tensor(list(x.shape)[start:end], dtype=torch.int64, device=x.device)


def constant_of_shape(node: Node) -> Function:
    """ConstantOfShape."""
    from flipopt.networks.onnx_graph.model import constant

    tensor = node.get("value")
    value = np.zeros(1, dtype=np.float32) if tensor is None else constant("value", tensor)
    dtype = torch.float64 if value.dtype.kind == "f" else torch.from_numpy(value.copy()).dtype
    return lambda shape: torch.full(limited(_list(node, 0, shape)), value.item(), dtype=dtype, device=shape.device)


def arange(node: Node) -> Function:
    """Range."""

    def run(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
        limited([max(0, int((limit - start) / delta))])
        return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype, device=start.device)

    return run


def pad(node: Node) -> Function:
    """Pad."""
    mode, pads = node.get("mode", "constant"), node.integers("pads", 1)
    value = node.number("value", 2, 0.0)
    axes = [int(axis) for axis in node.weight(3)] if node.has(3) else None
    modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}
    if mode not in modes or pads is None:
        raise ValueError(f"mode {mode} is not translated")

    def run(x: Tensor, *_: Tensor) -> Tensor:
        chosen = range(x.ndim) if axes is None else [axis % x.ndim for axis in axes]
        begin, end = dict(zip(chosen, pads, strict=False)), dict(zip(chosen, pads[len(pads) // 2 :], strict=True))
        limited(side + begin.get(axis, 0) + end.get(axis, 0) for axis, side in enumerate(x.shape))
        flat = [side.get(axis, 0) for axis in reversed(range(x.ndim)) for side in (begin, end)]
        if mode == "constant":
            return functional.pad(x, flat, value=value)
        while len(flat) > 2 and flat[-2:] == [0, 0]:  # torch reflects the last axes alone
            flat = flat[:-2]
        return functional.pad(x, flat, mode=modes[mode])

    return run


def resize(node: Node) -> Function:
    """Resize and Upsample of images by constant scales or to constant sizes."""
    mode = node.get("mode", "nearest")
    old = node.kind == "Upsample" or node.opset < 11
    coordinates = node.get("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    rounding = node.get("nearest_mode", "floor" if old else "round_prefer_floor")
    scales, sizes = _resized(node)
    if mode == "nearest" and not _nearest_as_torch(coordinates, rounding, scales):
        raise ValueError(f"nearest neighbours by {coordinates} and {rounding} are not translated")
    if mode != "nearest" and coordinates not in ("half_pixel", "pytorch_half_pixel", "align_corners"):
        raise ValueError(f"{mode} by {coordinates} is not translated")
    if mode not in ("nearest", "linear"):
        raise ValueError(f"mode {mode} is not translated")
    names = {3: "linear", 4: "bilinear", 5: "trilinear"}
    align = None if mode == "nearest" else coordinates == "align_corners"

    def run(x: Tensor, *_: Tensor | None) -> Tensor:
        target = (
            sizes[2:] if sizes else [int(side * scale) for side, scale in zip(x.shape[2:], scales[2:], strict=True)]
        )
        limited([*x.shape[:2], *target])
        kind = "nearest" if mode == "nearest" else names[x.ndim]
        return functional.interpolate(x, size=target, mode=kind, align_corners=align)

    return run


def _nearest_as_torch(coordinates: str, rounding: str, scales: Any) -> bool:
    """Whether the neighbour is that of floor(i / scale), as torch has it: also the rounded centre for whole scales."""
    if coordinates == "asymmetric":
        return rounding == "floor"
    whole = scales is not None and all(scale == int(scale) for scale in scales)
    return whole and coordinates in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round")


def _resized(node: Node) -> tuple[Any, Any]:
    """Constant scales or sizes of all axes, batch and channels left as they are."""
    at = 1 if node.kind == "Upsample" or node.opset < 11 else 2
    scales = node.get("scales") or (node.weight(at).tolist() if node.has(at) and node.weight(at).size else None)
    sizes = [int(side) for side in node.weight(3)] if node.has(3) else None
    if (scales is None) == (sizes is None):
        raise ValueError("expected constant scales or constant sizes")
    if scales is not None and (list(scales[:2]) != [1, 1] or min(scales) <= 0):
        raise ValueError(f"expected scales (1, 1, ...), found {scales}")
    return scales, sizes


OPERATORS: dict[str, Callable[[Node], Any]] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": cut,
    "Gather": gather,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Tile": tile,
    "Shape": shape_of,
    "ConstantOfShape": constant_of_shape,
    "Range": arange,
    "Pad": pad,
    "Resize": resize,
    "Upsample": resize,
}
