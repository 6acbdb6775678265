"""Arithmetic and activations.

Whatever has a kink calls a function of torch that is named for it (relu, hardtanh, prelu, maximum, ...) and is known to
:mod:`flipopt.networks.torch_kinks`; none hides in a ``where``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from flipopt.networks.onnx_graph.node import Function, Node

FLOATS = ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16")


def plain(function: Function) -> Callable[[Node], Function]:
    """An operator without attributes."""
    return lambda node: function


def variadic(function: Function) -> Callable[[Node], Function]:
    """An operator of two tensors that takes any number."""
    return lambda node: lambda *inputs: reduce(function, inputs)


def divide(node: Node) -> Function:
    """Div, which rounds down (towards 0) for integers."""
    below = node.known(1)
    if below is not None and not np.all(below):
        raise ValueError("expected a division by numbers other than 0")

    def run(a: Tensor, b: Tensor) -> Tensor:
        return torch.div(a, b) if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")

    return run if below is None or below.dtype.kind in "iu" else torch.div


def power(node: Node) -> Function:
    """Pow; whole constant exponents by themselves, since a tensor exponent has a derivative that is NaN at 0."""
    exponent = node.known(1)
    if exponent is None or exponent.size != 1:
        return torch.pow
    k = float(exponent.reshape(()))
    return lambda x, _: x ** (int(k) if k == int(k) else k)


def clip(node: Node) -> Function:
    """Clip: bounds are attributes before opset 11, then inputs; without bounds it is the identity."""
    low, high = node.number("min", 1), node.number("max", 2)
    lowest, highest = -np.finfo(np.float32).max, np.finfo(np.float32).max
    low = None if low is None or low <= lowest else low
    high = None if high is None or high >= highest else high
    if low is None and high is None:
        return lambda x, *_: x
    if low is not None and high is not None:
        if low > high:
            raise ValueError(f"expected min at most max, found {low} and {high}")
        return lambda x, *_: functional.hardtanh(x, low, high)
    if low is not None:
        return lambda x, *_: functional.relu(x) if low == 0 else functional.relu(x - low) + low
    top = float(high or 0.0)
    return lambda x, *_: -functional.relu(-x + top) + top


def leaky_relu(node: Node) -> Function:
    """LeakyRelu."""
    alpha = node.get("alpha", 0.01)
    return lambda x: functional.leaky_relu(x, alpha)


def prelu(node: Node) -> Function:
    """PRelu: one slope, one a channel, or any that broadcast."""
    slope = node.weight(1)
    channels = slope.ndim and slope.shape[0] == slope.size
    if slope.size == 1:
        return lambda x, a: functional.prelu(x, a.reshape(1))

    def run(x: Tensor, a: Tensor) -> Tensor:
        if channels and a.ndim == x.ndim - 1:
            return functional.prelu(x, a.reshape(-1))
        return functional.relu(x) - a * functional.relu(-x)

    return run


def elu(node: Node) -> Function:
    """Elu."""
    alpha = node.get("alpha", 1.0)
    return lambda x: functional.elu(x, alpha)


def selu(node: Node) -> Function:
    """Selu: gamma times an elu."""
    alpha, gamma = node.get("alpha", 1.6732632423543772), node.get("gamma", 1.0507009873554805)
    return lambda x: gamma * functional.elu(x, alpha)


def celu(node: Node) -> Function:
    """Celu."""
    alpha = node.get("alpha", 1.0)
    return lambda x: functional.celu(x, alpha)


def hard_sigmoid(node: Node) -> Function:
    """HardSigmoid: alpha x + beta between 0 and 1."""
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    return lambda x: functional.hardtanh(alpha * x + beta, 0.0, 1.0)


def hard_swish(x: Tensor) -> Tensor:
    """HardSwish: x times a hard sigmoid with alpha 1/6."""
    return x * functional.hardtanh(x / 6 + 0.5, 0.0, 1.0)


def gelu(node: Node) -> Function:
    """Gelu, exact or by tanh."""
    approximate = node.get("approximate", "none")
    return lambda x: functional.gelu(x, approximate=approximate)


def softmax(function: Function) -> Callable[[Node], Function]:
    """Softmax or LogSoftmax; before opset 13 over all axes from ``axis`` on."""

    def build(node: Node) -> Function:
        axis = int(node.get("axis", -1 if node.opset >= 13 else 1))
        if node.opset >= 13:
            return lambda x: function(x, dim=axis)
        return lambda x: function(x.flatten(axis), dim=-1).reshape(x.shape)

    return build


def dropout(node: Node) -> Function:
    """Dropout, which does nothing after training."""
    training = node.known(2)
    if (training is not None and np.any(training)) or (node.has(2) and training is None):
        raise ValueError("expected a dropout that is off, found training mode")
    return lambda x, *_: x


def cast(node: Node) -> Function:
    """Cast. Floats stay in the module's precision, whatever float they are cast to."""
    names = {number: name for name, number in _DATA_TYPES.items()}
    name = names.get(int(node.get("to", 0)), "?")
    if name in FLOATS:
        return lambda x, *_: x if x.is_floating_point() else x.to(torch.float64)
    targets = {"INT64": torch.int64, "INT32": torch.int32, "BOOL": torch.bool}
    if name not in targets:
        raise ValueError(f"a cast to {name} is not translated")
    return lambda x, *_: x.to(targets[name])


def _data_types() -> dict[str, int]:
    from onnx import TensorProto

    return dict(TensorProto.DataType.items())


_DATA_TYPES = _data_types()

OPERATORS: dict[str, Callable[[Node], Any]] = {
    "Add": plain(torch.add),
    "Sub": plain(torch.sub),
    "Mul": plain(torch.mul),
    "Div": divide,
    "Pow": power,
    "Sum": variadic(torch.add),
    "Max": variadic(torch.maximum),
    "Min": variadic(torch.minimum),
    "Sqrt": plain(torch.sqrt),
    "Exp": plain(torch.exp),
    "Log": plain(torch.log),
    "Neg": plain(torch.neg),
    "Abs": plain(torch.abs),
    "Reciprocal": plain(torch.reciprocal),
    "Sin": plain(torch.sin),
    "Cos": plain(torch.cos),
    "Erf": plain(torch.erf),
    "Relu": plain(functional.relu),
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "Elu": elu,
    "Selu": selu,
    "Celu": celu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": plain(hard_swish),
    "Clip": clip,
    "Sigmoid": plain(torch.sigmoid),
    "Tanh": plain(torch.tanh),
    "Gelu": gelu,
    "Softplus": plain(lambda x: functional.softplus(x, threshold=40.0)),  # the default jumps by 2e-9 at 20
    "Softsign": plain(functional.softsign),
    "Mish": plain(functional.mish),
    "Softmax": softmax(torch.softmax),
    "LogSoftmax": softmax(torch.log_softmax),
    "Identity": plain(lambda x: x),
    "Dropout": dropout,
    "Cast": cast,
    "Where": plain(torch.where),
    "Equal": plain(torch.eq),
    "Less": plain(torch.lt),
    "Greater": plain(torch.gt),
    "LessOrEqual": plain(torch.le),
    "GreaterOrEqual": plain(torch.ge),
    "Not": plain(torch.logical_not),
    "And": plain(torch.logical_and),
    "Or": plain(torch.logical_or),
}
