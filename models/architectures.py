"""The fully connected networks of the papers, as torch modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from flipopt.networks.activations import Activation, Erf, ReLU
from flipopt.networks.dense import DenseNetwork


class TrainedErf(nn.Module):
    """erf(c / sigma) with one trained sigma for the layer, equation (8)."""

    def __init__(self) -> None:
        super().__init__()
        self.sigma = nn.Parameter(torch.ones(()))

    def forward(self, c: Tensor) -> Tensor:
        return torch.erf(c / self.sigma)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"erf": TrainedErf, "relu": nn.ReLU}


class DenseModule(nn.Module):
    """Standardised inputs, hidden layers with dropout, a linear output layer; forward gives logits.

    Inputs are standardised by a fixed shift and scale, which :func:`to_dense` folds into the first layer.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, widths: Sequence[int], activation: str = "erf", dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_xavier(*pair) for pair in pairwise(widths))
        self.activations = nn.ModuleList(ACTIVATIONS[activation]() for _ in widths[1:-1])
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("shift", torch.zeros(widths[0]))
        self.register_buffer("scale", torch.ones(widths[0]))

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.shift) / self.scale
        for layer, activation in zip(self.layers, self.activations, strict=False):
            x = self.dropout(activation(layer(x)))
        out: Tensor = self.layers[-1](x)
        return out


def to_dense(model: DenseModule) -> DenseNetwork:
    """The trained network as float32 arrays; the fold of the standardisation is done in float64."""
    layers = [layer for layer in model.layers if isinstance(layer, nn.Linear)]
    W = [layer.weight.detach().cpu().double().numpy().T for layer in layers]
    b = [layer.bias.detach().cpu().double().numpy() for layer in layers]
    shift, scale = model.shift.cpu().double().numpy(), model.scale.cpu().double().numpy()
    W[0] = W[0] / scale[:, None]
    b[0] = b[0] - shift @ W[0]
    activations = [_exported(activation) for activation in model.activations]
    return DenseNetwork([w.astype(np.float32) for w in W], [v.astype(np.float32) for v in b], activations)


def _exported(activation: nn.Module) -> Activation:
    # Only |sigma| matters up to the sign of the layer's output, and training keeps it positive.
    return Erf(float(activation.sigma.detach())) if isinstance(activation, TrainedErf) else ReLU()


def _xavier(n_in: int, n_out: int) -> nn.Linear:
    linear = nn.Linear(n_in, n_out)
    nn.init.xavier_normal_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear
