"""A graph as a module that takes a batch of any size, whatever size it was exported for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from flipopt.common.errors import FileFormatError
from flipopt.common.limits import LimitError
from flipopt.networks.onnx_graph.budget import Budget
from flipopt.networks.onnx_graph.module import GraphModule, first_not_finite, translate
from flipopt.networks.onnx_graph.scores import Scores

PROBES = 3
"""Random inputs at which a batch is compared with its rows."""
AGREEMENT = 1e-4
"""Largest difference between them, relative to the largest score: rounding of float32 is far below it."""


def batched(path: Path, scores: Scores, batch: int | None, input_shape: tuple[int, ...]) -> tuple[GraphModule, Scores]:
    """The module of a graph, and the scores with the head that its values ask for.

    A file may be fixed to a ``batch``, often 1. The batch is then put in place of the leading sides that its Reshapes
    name. Where that does not give what the rows give one by one, every row runs through the graph by itself (vmap).
    All of that is limited in memory and work (:class:`Budget`).
    """
    try:
        with Budget():
            return _batched(path, scores, batch, input_shape)
    except LimitError as error:
        said = str(error)  # which names the file if it was in a node
        raise LimitError(said if said.startswith(f"{path}: ") else f"{path}: {said}") from error


def _batched(path: Path, scores: Scores, batch: int | None, input_shape: tuple[int, ...]) -> tuple[GraphModule, Scores]:
    alone = translate(path, scores)
    single = torch.float64 if _is_double(alone) else torch.float32
    X = torch.rand((PROBES, *input_shape), generator=torch.Generator().manual_seed(0), dtype=single)
    expected = _one_by_one(alone, X, batch or 1)
    module = _fitting(path, scores, batch, alone, X, expected)
    if not expected.reshape(PROBES, -1).isfinite().all(dim=1).any():
        raise FileFormatError(
            f"{first_not_finite(alone, X[:1].expand(batch or 1, *input_shape))}: makes NaN or infinity"
        )
    try:
        fitted = scores.fitted(expected.numpy())
    except ValueError as error:
        raise FileFormatError(f"{path}: {error}") from error
    module.head = fitted.head
    return module, replace(fitted, model=scores.model)


def _fitting(
    path: Path, scores: Scores, batch: int | None, alone: GraphModule, X: Tensor, expected: Tensor
) -> GraphModule:
    """The module that gives for all rows at once what they give one by one."""
    together = alone if batch is None else translate(path, scores, batch)
    try:
        with torch.no_grad():
            if _agree(together.evaluate(X, scores.tensor), expected):
                return together
    except FileFormatError:
        if batch is None:
            raise
    if batch is None:
        raise FileFormatError(
            f"{path}: expected rows that do not depend on the others in their batch, found some that do"
        )
    alone.rows = batch
    try:
        with torch.no_grad():
            values = alone.evaluate(X, scores.tensor)
    except RuntimeError as error:
        raise FileFormatError(f"{path}: it is fixed to batches of {batch}; export it with a dynamic batch") from error
    if not _agree(values, expected):
        raise FileFormatError(
            f"{path}: expected rows that do not depend on the others in their batch, found some that do"
        )
    return alone


def _one_by_one(module: GraphModule, X: Tensor, batch: int) -> Tensor:
    """The scores of every row, in a batch of copies of itself."""
    with torch.no_grad():
        rows = [module.evaluate(x.expand(batch, *x.shape), module.tensor) for x in X]
    found = {tuple(row.shape) for row in rows}
    if any(not shape or shape[0] != batch for shape in found):
        raise FileFormatError(
            f"{module.steps[-1].where}: expected scores of shape ({batch}, classes), found {found.pop()}"
        )
    return torch.stack([row[0] for row in rows])


def _agree(values: Tensor, expected: Tensor) -> bool:
    if values.shape != expected.shape:
        return False
    size = float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max())
    return bool(torch.allclose(values, expected, rtol=0, atol=AGREEMENT * size, equal_nan=True))


def _is_double(module: GraphModule) -> bool:
    return any(buffer.dtype == torch.float64 for buffer in module.buffers())
