"""Centred differences, and the torch twin of a dense network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

import flipopt as fo

STEP = np.finfo(np.float64).eps ** (1 / 3)


def centred(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """(f(x + h d) - f(x - h d)) / 2h with h about eps^(1/3): truncation and rounding both near 1e-10."""
    return (f(x + STEP * direction) - f(x - STEP * direction)) / (2 * STEP)


def torch_twin(net: fo.DenseNetwork) -> torch.nn.Module:
    """The same function, written with torch's own operations."""
    return Twin(net)


class Twin(torch.nn.Module):
    def __init__(self, net: fo.DenseNetwork) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(*W.shape, dtype=torch.float64) for W in net.weights)
        for layer, W, b in zip(self.layers, net.weights, net.biases):
            layer.weight.data = torch.tensor(W.T.copy())
            layer.bias.data = torch.tensor(b)
        self.activations = net.activations

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, activation in zip(self.layers[:-1], self.activations):
            x = torch_activation(activation, layer(x))
        return self.layers[-1](x)


def torch_activation(activation: fo.Activation, c: torch.Tensor, parameter: torch.Tensor | None = None) -> torch.Tensor:
    p = torch.tensor(activation.parameter_value, dtype=c.dtype) if parameter is None else parameter
    match activation:
        case fo.Erf():
            return torch.erf(c / p)
        case fo.PReLU():
            return torch.where(c >= 0, c, p * c)
        case fo.ELU():
            return torch.where(c >= 0, c, p * torch.expm1(torch.clamp(c, max=0)))
        case fo.Tanh():
            return torch.tanh(c)
    return c * 1
