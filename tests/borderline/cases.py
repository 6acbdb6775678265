"""Networks whose borderline points and measures are known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import flipopt as fo
from flipopt.borderline import Instances, Outcome
from flipopt.borderline.instances import nothing_found


def along(classes: str) -> fo.DenseNetwork:
    """Of one input: class 0 ("s") or 1 ("t") at 0, 1/m, ..., (m - 1)/m, as the letters say, and beyond as the last."""
    m = len(classes)
    values = np.array([1.0 if letter == "s" else -1.0 for letter in classes])
    slopes = np.diff(values) * m
    bends = np.diff(np.concatenate([[0.0], slopes, [0.0]]))
    hidden = fo.DenseNetwork([np.ones((1, m)), np.eye(m)], [-np.arange(m) / m, np.zeros(m)], fo.ReLU())
    out = np.column_stack([bends, np.zeros(m)])
    return fo.DenseNetwork([hidden.weights[0], out], [hidden.biases[0], np.array([values[0], 0.0])], fo.ReLU())


def corner() -> fo.DenseNetwork:
    """y = (x_0, -x_0, x_1): 0 and 1 tie at x_0 = 0, where class 2 is ahead for x_1 > 0."""
    return fo.DenseNetwork([np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])], [np.zeros(3)])


@cache
def blobs(rows: int = 120) -> tuple[fo.DenseNetwork, np.ndarray, np.ndarray]:
    """Three clouds in the plane with their labels, and a network of random ReLU features that tells them apart."""
    rng = np.random.default_rng(5)
    centres = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    labels = np.arange(rows) % 3
    X = centres[labels] + 0.7 * rng.standard_normal((rows, 2))
    W, b = rng.standard_normal((2, 12)), rng.standard_normal(12)
    H = np.maximum(X @ W + b, 0)
    out = np.linalg.solve(H.T @ H + 0.1 * np.eye(12), H.T @ (6 * np.eye(3)[labels] - 2))
    return fo.DenseNetwork([W, out], [b, np.zeros(3)], fo.ReLU()), X, labels


def table(x: np.ndarray, classes: tuple[int, int] = (0, 1)) -> Instances:
    """Points that were found, from nowhere."""
    count = len(x)
    status = np.full(count, Outcome.FOUND, dtype=object)
    every = np.arange(count)
    found = nothing_found(every, every, np.tile(classes, (count, 1)), status, x.shape[1])
    found.x[:] = x
    return found


@cache
def pictures(rows: int = 150, sides: int = 4) -> tuple[fo.DenseNetwork, np.ndarray, np.ndarray]:
    """Three kinds of small gray images, their labels, and a network of random ReLU features that tells them apart."""
    rng, n = np.random.default_rng(3), sides**2
    kinds = rng.uniform(0.2, 0.8, size=(3, n))
    labels = np.arange(rows) % 3
    X = np.clip(kinds[labels] + 0.12 * rng.standard_normal((rows, n)), 0, 1).astype(np.float32)
    W, b = rng.standard_normal((n, 24)), rng.standard_normal(24)
    H = np.maximum(X @ W + b, 0)
    out = np.linalg.solve(H.T @ H + 0.1 * np.eye(24), H.T @ (6 * np.eye(3)[labels] - 2))
    return fo.DenseNetwork([W, out], [b, np.zeros(3)], fo.ReLU()), X, labels


def convolutional(sides: tuple[int, int, int], seed: int = 0) -> fo.TorchNetwork:
    """A small image classifier with random weights."""
    torch = pytest.importorskip("torch")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [torch.nn.Conv2d(sides[0], 4, 3), torch.nn.MaxPool2d(2), torch.nn.ReLU(), torch.nn.Flatten()]
        width = 4 * ((sides[1] - 2) // 2) * ((sides[2] - 2) // 2)
        return fo.TorchNetwork(torch.nn.Sequential(*layers, torch.nn.Linear(width, 3)), sides)
