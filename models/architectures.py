"""The fully connected erf networks of the papers, as torch modules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from flipopt.activations import Erf
from flipopt.networks.dense import DenseNetwork


class ErfLayer(nn.Module):
    """erf((x W + b) / sigma) with one trained sigma, equation (8)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = _xavier(n_in, n_out)
        self.sigma = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return torch.erf(self.linear(x) / self.sigma)


class ErfNetwork(nn.Module):
    """Standardised inputs, erf layers with dropout, a linear output layer; forward gives logits.

    Inputs are standardised by a fixed shift and scale, which :func:`to_dense` folds into the first layer.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, widths: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(ErfLayer(*pair) for pair in pairwise(widths[:-1]))
        self.output = _xavier(widths[-2], widths[-1])
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("shift", torch.zeros(widths[0]))
        self.register_buffer("scale", torch.ones(widths[0]))

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.shift) / self.scale
        for layer in self.hidden:
            x = self.dropout(layer(x))
        out: Tensor = self.output(x)
        return out


def to_dense(model: ErfNetwork) -> DenseNetwork:
    """The trained network as float32 arrays; the fold of the standardisation is done in float64."""
    layers = [layer.linear for layer in model.hidden if isinstance(layer, ErfLayer)] + [model.output]
    W = [layer.weight.detach().cpu().double().numpy().T for layer in layers]
    b = [layer.bias.detach().cpu().double().numpy() for layer in layers]
    shift, scale = model.shift.cpu().double().numpy(), model.scale.cpu().double().numpy()
    W[0] = W[0] / scale[:, None]
    b[0] = b[0] - shift @ W[0]
    # Only |sigma| matters up to the sign of the layer's output, and training keeps it positive.
    sigmas = [float(layer.sigma.detach()) for layer in model.hidden if isinstance(layer, ErfLayer)]
    return DenseNetwork([w.astype(np.float32) for w in W], [v.astype(np.float32) for v in b], [Erf(s) for s in sigmas])


def _xavier(n_in: int, n_out: int) -> nn.Linear:
    linear = nn.Linear(n_in, n_out)
    nn.init.xavier_normal_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear
