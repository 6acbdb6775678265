"""What a torch module must be to stand for a classifier, found out by a few evaluations."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import Array, as_sequence, as_whole
from flipopt.common.errors import InputError

if TYPE_CHECKING:
    import torch

SIZES = np.array([1.0, 1.0, 10.0, 1e2])
"""Of the points of the first evaluations: several, since dropout may spare one, and large ones too."""
FAR = np.logspace(-1, 4, 60)
"""Of further points, where the one output of a module may be a probability."""
LARGEST_INPUT = 10**8
"""Numbers of one input: flip points of more would not fit in memory."""
SAME = 1e-3
"""Difference of two evaluations, relative to the largest output, that rounding and the order of sums may cause."""


def prepared(module: torch.nn.Module, device: str | torch.device | None) -> torch.nn.Module:
    """The module in evaluation mode, on the device, in float32 at least; a copy of it where that changes parameters."""
    import torch

    module.eval()
    tensors = [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.is_floating_point()]
    if any(tensor.dtype.itemsize < 4 for tensor in tensors):  # the values are kept exactly
        module = copy.deepcopy(module).float()
    if device is None:
        return module
    try:
        place = torch.device(device)
        torch.zeros(1, device=place)
        return module if all(tensor.device == place for tensor in tensors) else copy.deepcopy(module).to(place)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise InputError(
            f"device: expected one that torch can use here, such as 'cpu', found {device!r}: {why}"
        ) from None


def as_shape(input_shape: Any) -> tuple[int, ...]:
    """The sides of one input, positive whole numbers."""
    sides = as_sequence(input_shape, "input_shape", "whole numbers")
    shape = tuple(as_whole(side, f"input_shape[{k}]", least=1) for k, side in enumerate(sides))
    if np.prod(shape, dtype=float) > LARGEST_INPUT:
        raise InputError(f"input_shape: expected at most {LARGEST_INPUT:,} inputs, found {shape}")
    return shape


def evaluating(module: torch.nn.Module) -> torch.nn.Module:
    """The module if it is in evaluation mode, else a copy that is and that has the same parameters, not copies."""
    if not any(part.training for part in module.modules()):
        return module
    shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    try:
        return copy.deepcopy(module, shared).eval()
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"module: expected one in evaluation mode, or one that can be copied; call module.eval(): {error}"
        ) from error


def logits_of(output: Any, rows: int, dtype: torch.dtype, probabilities: bool = False) -> torch.Tensor:
    """Logits (rows, classes) from what a module has returned.

    One output y is made two classes, (0, y), so that class 1 is where y > 0. Of ``probabilities`` the logarithm is
    taken: it differs from logits by a constant a row, so that ties and classes are the same.
    """
    import torch

    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        found = f"a tensor of {output.dtype}" if isinstance(output, torch.Tensor) else type(output).__name__
        raise InputError(f"module: expected a tensor of logits, found {found}")
    Y = output.to(dtype)
    if Y.numel() == rows and (Y.ndim == 0 or len(Y) == rows):
        y = Y.reshape(rows, 1)
        Y = torch.cat([1 - y if probabilities else torch.zeros_like(y), y], dim=1)
    if Y.ndim != 2 or len(Y) != rows:
        raise InputError(f"module: expected logits of shape ({rows}, classes), found {tuple(Y.shape)}")
    return Y.clamp_min(torch.finfo(dtype).tiny).log() if probabilities else Y


def examined(module: torch.nn.Module, input_shape: Sequence[int], like: torch.Tensor) -> tuple[int, bool]:
    """The number of classes, and whether the outputs are probabilities, which is warned of.

    Raises where the module does not take inputs of that shape, returns no logits, or where its outputs change from one
    evaluation to the next or with the rest of a batch. ``like`` has the module's device and precision.
    """
    import torch

    rng = np.random.default_rng(0)

    def outputs(points: Array) -> Array:
        X = torch.as_tensor(points.reshape(-1, *input_shape), dtype=like.dtype, device=like.device)
        try:
            with torch.no_grad():
                output = module(X)
        except Exception as error:  # whatever the module's own code raises
            raise InputError(
                f"input_shape: the module does not take a batch of shape {tuple(X.shape)}, as input_shape="
                f"{tuple(input_shape)} says: {type(error).__name__}: {error}"
            ) from error
        logits_of(output, len(points), like.dtype)
        return output.reshape(len(points), -1).double().cpu().numpy()  # type: ignore[no-any-return]

    points = SIZES[:, None] * rng.random((len(SIZES), int(np.prod(input_shape))))
    Y = outputs(points)
    if not _alike(Y, outputs(points)):
        raise InputError(
            "module: expected the same outputs for the same inputs, found others at the second evaluation; is dropout "
            "or another random layer left on?"
        )
    if not _alike(Y[:1], outputs(points[:1])):
        raise InputError(
            "module: expected the outputs of an input not to depend on the rest of its batch, found that they do; is "
            "batch normalisation left in training mode?"
        )
    one = Y.shape[1] == 1
    if one and _within_0_and_1(Y):
        Y = outputs(FAR[:, None] * rng.standard_normal((len(FAR), points.shape[1])))
    probabilities = _within_0_and_1(Y) and (one or bool(np.allclose(Y.sum(axis=1), 1, atol=SAME)))
    if probabilities:
        what = "its one output lies between 0 and 1" if one else "its outputs are positive and sum to one"
        warnings.warn(
            f"module: {what}, so they are taken as probabilities and their logarithms as logits. Better return "
            f"the logits, without the {'sigmoid' if one else 'softmax'}: probabilities near 0 and 1 have lost digits.",
            stacklevel=3,
        )
    return max(2, Y.shape[1]), probabilities


def _alike(Y: Array, again: Array) -> bool:
    """Up to rounding, relative to the row's largest output."""
    if Y.shape != again.shape:
        return False
    size = np.abs(np.nan_to_num(Y)).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # of infinite outputs
        same = (np.abs(Y - again) <= SAME * size) | (again == Y) | (np.isnan(Y) & np.isnan(again))
    return bool(same.all())


def _within_0_and_1(Y: Array) -> bool:
    return bool(((Y >= 0) & (Y <= 1)).all())
