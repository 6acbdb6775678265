"""Small networks that tell two spirals apart: their boundary winds, and lines cross it many times."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Activation, Erf, ReLU

WIDTH, TURNS = 24, 1.5
SPREAD = 0.5
"""Of the widths sigma of the erf layers."""


def points(count: int, seed: int = 0) -> tuple[Array, Array]:
    """Points (count, 2) on the two spirals, in about [-1, 1]^2, with some noise, and their classes (count,)."""
    rng = np.random.default_rng(seed)
    classes, t = rng.integers(0, 2, size=count), np.sqrt(rng.uniform(0.02, 1, size=count))
    angle = 2 * np.pi * TURNS * t + np.pi * classes
    X = t[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.02 * rng.standard_normal((count, 2)), classes


@cache
def spirals(kind: str, steps: int = 600) -> DenseNetwork:
    """A network 2-24-24-2 with "erf" or "relu" layers, trained from a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, WIDTH), (WIDTH, WIDTH), (WIDTH, 2)]
    W = [torch.randn(shape, generator=generator, dtype=torch.float64) * (2 / shape[0]) ** 0.5 for shape in shapes]
    b = [torch.randn(shape[1], generator=generator, dtype=torch.float64) * 0.3 for shape in shapes]
    parameters = [part.requires_grad_() for part in (*W, *b)]
    phi = (lambda c: torch.erf(c / SPREAD)) if kind == "erf" else torch.relu
    X, classes = (torch.as_tensor(array) for array in points(800))
    optimiser = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(steps):
        hidden = phi(phi(X @ W[0] + b[0]) @ W[1] + b[1])
        loss = torch.nn.functional.cross_entropy(hidden @ W[2] + b[2], classes)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    activation: Activation = Erf(SPREAD) if kind == "erf" else ReLU()
    return DenseNetwork([w.detach().numpy() for w in W], [v.detach().numpy() for v in b], activation)
