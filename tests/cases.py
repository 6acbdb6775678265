"""Small classifiers whose flip points are known by hand or by a fine search."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from scipy.optimize import minimize_scalar

import flipopt as fo


def linear(difference: np.ndarray, offset: float = 0.0, dtype: type = np.float64) -> fo.DenseNetwork:
    """Two classes with y_0 - y_1 = difference . x + offset."""
    W = np.column_stack([difference, np.zeros_like(difference)]).astype(dtype)
    return fo.DenseNetwork([W], [np.array([offset, 0.0], dtype=dtype)])


def three_classes() -> fo.DenseNetwork:
    """y = (x_0, -x_0, x_1 - 3): classes 0 and 1 tie at x_0 = 0, where class 2 is at x_1 - 3."""
    return fo.DenseNetwork([np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])], [np.array([0.0, 0.0, -3.0])])


class _Disc(torch.nn.Module):
    def __init__(self, radius: float) -> None:
        super().__init__()
        self.radius = torch.nn.Parameter(torch.tensor(radius, dtype=torch.float64))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.radius**2 - (X**2).sum(dim=1), torch.zeros(len(X), dtype=X.dtype)], dim=1)


def disc(radius: float) -> fo.TorchNetwork:
    """Logits (r^2 - |x|^2, 0): the closest flip of x is r x / |x|."""
    return fo.TorchNetwork(_Disc(radius), input_shape=(2,))


@cache
def moons() -> fo.DenseNetwork:
    """Two interleaved half circles, told apart by random erf features and a least-squares output layer."""
    rng = np.random.default_rng(3)
    t = rng.uniform(0, np.pi, 200)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    X = np.concatenate([upper, np.array([1.0, 0.5]) - upper]) + 0.1 * rng.standard_normal((400, 2))
    labels = np.repeat([1.0, -1.0], 200)
    W, b = 2 * rng.standard_normal((2, 20)), rng.standard_normal(20)
    hidden = fo.DenseNetwork([W, np.eye(20)], [b, np.zeros(20)], fo.Erf(1.0)).logits(X)
    ridge = hidden.T @ hidden + 1e-2 * np.eye(20)
    out = np.linalg.solve(ridge, hidden.T @ labels)
    return fo.DenseNetwork([W, np.column_stack([out, -out])], [b, np.zeros(2)], fo.Erf(1.0))


def distance_by_search(net: fo.Network, x: np.ndarray, reach: float = 3.0) -> float:
    """Distance to the boundary y_0 = y_1: the first crossing on a fine fan of rays, then the best ray to 1e-9."""

    def lead(points: np.ndarray) -> np.ndarray:
        Y = net.logits(points)
        return Y[:, 0] - Y[:, 1]

    side = np.sign(lead(x[None])[0])

    def crossing(angles: np.ndarray, steps: int = 600) -> np.ndarray:
        rays = np.column_stack([np.cos(angles), np.sin(angles)])
        radii = np.linspace(0, reach, steps)
        values = lead((x + radii[None, :, None] * rays[:, None, :]).reshape(-1, 2)).reshape(len(angles), steps)
        other = np.sign(values) != side
        first = other.argmax(axis=1)
        low, high = radii[np.maximum(first - 1, 0)], radii[first]
        for _ in range(60):
            middle = (low + high) / 2
            same = np.sign(lead(x + middle[:, None] * rays)) == side
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return np.where(other.any(axis=1), high, np.inf)

    angles = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    best = angles[np.argmin(crossing(angles))]
    found = minimize_scalar(
        lambda angle: crossing(np.array([angle]))[0],
        bounds=(best - 2 * np.pi / 1000, best + 2 * np.pi / 1000),
        method="bounded",
        options={"xatol": 1e-7},  # the distance is quadratic in the angle: 1e-14
    )
    return float(found.fun)
