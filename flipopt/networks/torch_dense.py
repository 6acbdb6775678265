"""torch modules that are chains of dense layers, as dense networks; with convolutions, written out as matrices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.activations import ELU, Activation, Identity, PReLU, ReLU, Tanh
from flipopt.networks.dense import DenseNetwork

FUNCTIONS: dict[Any, nn.Module] = {
    **dict.fromkeys((functional.relu, torch.relu, "relu"), nn.ReLU()),
    **dict.fromkeys((functional.tanh, torch.tanh, "tanh"), nn.Tanh()),
    **dict.fromkeys((torch.flatten, "flatten", "view", "reshape"), nn.Flatten()),
}
"""Functions and methods as the layers that they are; what is flattened is compared with the module in the end."""
AFFINE = (
    *(nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d),
    *(nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.ZeroPad2d),
    *(nn.Flatten, nn.Unflatten, nn.Identity, nn.Dropout, nn.Dropout2d),
)
"""Layers that are affine in evaluation mode."""
ENTRIES = 2**26
"""Of a matrix that a convolution is written out as: half a gigabyte."""
CHUNK = 256
"""Rows of such a matrix at a time."""


def as_dense(module: nn.Module, n_inputs: int) -> DenseNetwork | None:
    """The dense network that a chain of flattening, linear layers and their activations is; None for others."""
    layers = [layer for layer in _chain(module) if not isinstance(layer, nn.Flatten | nn.Identity | nn.Dropout)]
    weights: list[Array] = []
    biases: list[Array] = []
    activations: list[Activation] = []
    for k, layer in enumerate(layers):
        before = layers[k - 1] if k else None
        if isinstance(layer, nn.Linear):
            if isinstance(before, nn.Linear):
                activations.append(Identity())
            weights.append(_array(layer.weight).T)
            biases.append(np.zeros(layer.out_features) if layer.bias is None else _array(layer.bias))
            continue
        activation = _activation(layer)
        if activation is None or not isinstance(before, nn.Linear) or k == len(layers) - 1:
            return None
        activations.append(activation)
    if not weights or weights[0].shape[0] != n_inputs:
        return None
    if weights[-1].shape[1] == 1:  # one output y is two classes, (0, y)
        weights[-1], biases[-1] = np.pad(weights[-1], ((0, 0), (1, 0))), np.pad(biases[-1], (1, 0))
    return DenseNetwork(weights, biases, activations)


def unrolled(module: nn.Module, input_shape: tuple[int, ...]) -> DenseNetwork:
    """The dense network that a chain of affine layers (AFFINE) and activations is, for a module in float64.

    What is affine between two activations becomes one matrix, however sparse.
    """
    weights: list[Array] = []
    biases: list[Array] = []
    activations: list[Activation] = []
    shape: tuple[int, ...] = input_shape
    affine: list[nn.Module] = []
    for layer in _chain(module):
        if isinstance(layer, AFFINE):
            affine.append(layer)
            continue
        activation = _activation(layer)
        if activation is None:
            raise InputError(
                f"network: expected a chain of linear layers, convolutions, batch normalisations, average pooling and "
                f"activations, found {type(layer).__name__}"
            )
        W, b, shape = _written_out(affine, shape)
        weights.append(W)
        biases.append(b)
        activations.append(_for_all(activation, shape))
        affine = []
    W, b, shape = _written_out(affine, shape)
    if W.shape[1] == 1:  # one output y is two classes, (0, y)
        W, b = np.pad(W, ((0, 0), (1, 0))), np.pad(b, (1, 0))
    return DenseNetwork([*weights, W], [*biases, b], activations)


def _written_out(layers: list[nn.Module], shape: tuple[int, ...]) -> tuple[Array, Array, tuple[int, ...]]:
    """W (inputs, outputs), b and the outputs' shape."""
    function, n = nn.Sequential(*layers), int(np.prod(shape))
    with torch.no_grad():
        at_zero = function(torch.zeros((1, *shape), dtype=torch.float64))
        if n * at_zero.numel() > ENTRIES:
            raise InputError(
                f"network: expected layers of at most {ENTRIES} weights when written out, found {n} x {at_zero.numel()}"
            )
        rows = [
            function(torch.eye(n, dtype=torch.float64)[first : first + CHUNK].reshape(-1, *shape)) - at_zero
            for first in range(0, n, CHUNK)
        ]
    W = torch.cat(rows).reshape(n, -1)
    return _array(W), _array(at_zero.reshape(-1)), tuple(at_zero.shape[1:])


def _for_all(activation: Activation, shape: tuple[int, ...]) -> Activation:
    """With a parameter for each neuron where there is one for each channel."""
    if isinstance(activation, PReLU) and activation.shape:
        channels = np.asarray(activation.alpha).reshape(-1, *[1] * (len(shape) - 1))
        return PReLU(np.broadcast_to(channels, shape).ravel())
    return activation


def _chain(module: nn.Module) -> list[nn.Module]:
    """The layers that the input passes through one after the other; the module itself if it is not made like that."""
    try:
        graph = fx.symbolic_trace(module).graph
    except Exception:  # whatever a module does that cannot be traced
        return [module]
    layers: list[nn.Module] = []
    nodes = list(graph.nodes)
    for before, node in pairwise(nodes[:-1]):
        layer = module.get_submodule(str(node.target)) if node.op == "call_module" else FUNCTIONS.get(node.target)
        if layer is None or node.all_input_nodes != [before]:
            return [module]
        layers.append(layer)
    return layers


def _activation(layer: nn.Module) -> Activation | None:
    match layer:
        case nn.ReLU():
            return ReLU()
        case nn.LeakyReLU():
            return PReLU(layer.negative_slope)
        case nn.PReLU():
            alpha = _array(layer.weight)
            return PReLU(alpha[0] if alpha.size == 1 else alpha)
        case nn.ELU():
            return ELU(layer.alpha)
        case nn.Tanh():
            return Tanh()
    return None


def _array(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().double().numpy())
