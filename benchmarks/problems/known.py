"""Problems whose closest flip is known: planes, ellipsoids, and two spheres of which the far one may be in the way.

The classifiers have two classes. Their logits are (g(x), 0) for a smooth g, positive at x, so that the boundary is
g = 0; they are torch modules, as a user's own would be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor, nn

from flipopt.common.checks import Array
from flipopt.networks import TorchNetwork


@dataclass(frozen=True)
class Known:
    """A classifier, an input of class 0, and the distance of its closest flip to class 1."""

    network: TorchNetwork
    x: Array
    distance: float


class _Level(nn.Module, ABC):
    """Logits (g(x), 0)."""

    def forward(self, X: Tensor) -> Tensor:
        g = self.level(X)
        return torch.stack([g, torch.zeros_like(g)], dim=-1)

    @abstractmethod
    def level(self, X: Tensor) -> Tensor:
        """g at the rows of X (points, n), (points,)."""


class Plane(_Level):
    """g = a . x + b."""

    a: Tensor

    def __init__(self, a: Array, b: float) -> None:
        super().__init__()
        self.b = b
        self.register_buffer("a", torch.tensor(a))

    def level(self, X: Tensor) -> Tensor:
        return X @ self.a + self.b


class Ellipsoid(_Level):
    """g = sum ((x - c) / s)^2 - 1: positive outside."""

    centre: Tensor
    axes: Tensor

    def __init__(self, centre: Array, axes: Array) -> None:
        super().__init__()
        self.register_buffer("centre", torch.tensor(centre))
        self.register_buffer("axes", torch.tensor(axes))

    def level(self, X: Tensor) -> Tensor:
        return (((X - self.centre) / self.axes) ** 2).sum(dim=-1) - 1


class Spheres(_Level):
    """The product of two spheres' g, each in units of its radius: positive outside both, negative inside one."""

    centres: Tensor
    radii: Tensor

    def __init__(self, centres: Array, radii: Array) -> None:
        super().__init__()
        self.register_buffer("centres", torch.tensor(centres))
        self.register_buffer("radii", torch.tensor(radii))

    def level(self, X: Tensor) -> Tensor:
        squares = ((X[..., None, :] - self.centres) ** 2).sum(dim=-1) / self.radii**2 - 1
        return squares.prod(dim=-1)


def plane(n: int, seed: int) -> Known:
    """A plane at a random distance: |a . x + b| / |a|."""
    rng = np.random.default_rng((seed, n, 1))
    a, x, lead = rng.standard_normal(n), rng.standard_normal(n), rng.uniform(0.5, 5.0)
    return Known(_network(Plane(a, float(lead - a @ x)), n), x, float(lead / np.linalg.norm(a)))


def ellipsoid(n: int, seed: int) -> Known:
    """An ellipsoid with axes from 1/3 to 3 and a point outside."""
    rng = np.random.default_rng((seed, n, 2))
    axes = np.exp(rng.uniform(-np.log(3), np.log(3), n))
    direction = rng.standard_normal(n)
    offset = rng.uniform(1.5, 4.0) * direction / np.linalg.norm(direction / axes)
    centre = rng.standard_normal(n)
    return Known(_network(Ellipsoid(centre, axes), n), centre + offset, distance_to_ellipsoid(offset, axes))


def distance_to_ellipsoid(p: Array, axes: Array) -> float:
    """From p (n,) outside to sum (z / axes)^2 = 1.

    At the closest point p - z = t z / axes^2 for the t > 0 with sum (axes p / (axes^2 + t))^2 = 1, which falls in t.
    """

    def excess(t: float) -> float:
        return float((((axes * p) / (axes**2 + t)) ** 2).sum() - 1)

    high = float(np.linalg.norm(axes * p))
    t = brentq(excess, 0.0, high, xtol=1e-15 * high, rtol=8.9e-16)
    z = axes**2 * p / (axes**2 + t)
    return float(np.linalg.norm(p - z))


def spheres(n: int, seed: int) -> Known:
    """Two spheres, one behind the other as seen from x: a descent that overshoots the first ends at the second."""
    rng = np.random.default_rng((seed, n, 3))
    towards = rng.standard_normal(n)
    towards /= np.linalg.norm(towards)
    aside = rng.standard_normal(n)
    aside -= (aside @ towards) * towards
    aside *= 0.3 / np.linalg.norm(aside)
    x, radii = rng.standard_normal(n), np.array([0.4, 1.5])
    near = rng.uniform(1.0, 2.0)
    centres = np.stack(
        [x + (near + radii[0]) * towards, x + (2.2 * near + radii[0] + radii[1] + 1.0) * towards + aside]
    )
    distance = float((np.linalg.norm(centres - x, axis=1) - radii).min())
    return Known(_network(Spheres(centres, radii), n), x, distance)


def _network(module: nn.Module, n: int) -> TorchNetwork:
    return TorchNetwork(module.double(), input_shape=(n,))
