"""torch modules that are chains of dense layers, as dense networks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor, nn

from flipopt.common.checks import Array
from flipopt.networks.activations import ELU, Activation, Identity, PReLU, ReLU, Tanh
from flipopt.networks.dense import DenseNetwork


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
    return DenseNetwork(weights, biases, activations)


def _chain(module: nn.Module) -> Iterator[nn.Module]:
    """The layers of nested ``nn.Sequential`` in order; a module of another kind is one layer."""
    if type(module) is nn.Sequential:
        for layer in module:
            yield from _chain(layer)
    else:
        yield module


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
