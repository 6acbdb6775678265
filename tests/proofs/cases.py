"""What the tests of proofs compare with."""

from __future__ import annotations

import torch

import flipopt as fo
from benchmarks.proofs_oracle import Bounds, distance_by_pieces, network, rescaled

__all__ = ["Bounds", "distance_by_pieces", "network", "rescaled", "slab"]


class _Slab(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.width = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.width**2 - X[:, 0] ** 2, torch.zeros(len(X), dtype=X.dtype)], dim=1)


def slab(n: int = 3) -> fo.TorchNetwork:
    """Logits (1 - x_0^2, 0): of x the closest flips are at x_0 = 1 and x_0 = -1, and no others are minima."""
    return fo.TorchNetwork(_Slab(), input_shape=(n,))
