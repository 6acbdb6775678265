"""torch modules that are chains of dense layers, as dense networks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from flipopt.common.checks import Array
from flipopt.networks.activations import ELU, Activation, Identity, PReLU, ReLU, Tanh
from flipopt.networks.dense import DenseNetwork

FUNCTIONS: dict[Any, nn.Module] = {
    **dict.fromkeys((functional.relu, torch.relu, "relu"), nn.ReLU()),
    **dict.fromkeys((functional.tanh, torch.tanh, "tanh"), nn.Tanh()),
    **dict.fromkeys((torch.flatten, "flatten", "view", "reshape"), nn.Flatten()),
}
"""Functions and methods as the layers that they are; what is flattened is compared with the module in the end."""


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
