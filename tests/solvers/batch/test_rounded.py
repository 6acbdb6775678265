"""Networks with kinks that are not dense: an answer for every input, near the closest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flipopt as fo

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


class Hidden(nn.Module):
    """A module whose layers cannot be read off."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, X: Any) -> Any:
        return self.inner(X.flip(1).flip(1))


def cnn() -> fo.TorchNetwork:
    torch.manual_seed(1)
    body = (nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.ReLU(), nn.Flatten())
    return fo.TorchNetwork(nn.Sequential(*body, nn.Linear(32, 4)).double(), (1, 8, 8))


def images(rows: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(size=(rows, 64))


def test_every_input_of_a_convolutional_network_has_a_point_on_the_boundary() -> None:
    net, X = cnn(), images(6)
    table = fo.closest_flip_points(net, X, bounds=(0, 1))
    assert set(table.status) <= {fo.Status.CONVERGED, fo.Status.ON_BOUNDARY}
    assert np.isfinite(table.distance).all()
    assert (table.x >= 0).all()
    assert (table.x <= 1).all()
    assert (table.boundary_gap <= 1e-8).all()
    assert all("kinks" in message for message in table.message)
    np.testing.assert_allclose(table.distance, np.linalg.norm(table.x - X, axis=1))


def test_one_input_is_its_row_of_the_table() -> None:
    net, X = cnn(), images(3)
    table = fo.closest_flip_points(net, X)
    for row, x in enumerate(X):
        flip = fo.closest_flip_point(net, x)
        assert flip.status is table.status[row]
        assert flip.classes == tuple(table.classes[row])
        # Convolutions of another batch size are rounded otherwise, and so is what follows from them.
        assert abs(flip.distance - table.distance[row]) <= 1e-3 * flip.distance


def test_the_exact_descent_over_pieces_is_hardly_closer() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 4)).double()
    X = np.random.default_rng(0).normal(size=(30, 8))
    exact = fo.closest_flip_points(fo.TorchNetwork(module), X)
    assert exact.success.all()
    ours = fo.closest_flip_points(fo.TorchNetwork(Hidden(module), (8,)), X)
    ratio = ours.distance / exact.distance
    assert np.median(ratio) < 1.01
    assert (ratio < 1.1).mean() > 0.9


def test_a_target_class_can_be_asked_for() -> None:
    net, X = cnn(), images(4)
    targets = (np.asarray(net.predict(X)) + 1) % 4
    table = fo.closest_flip_points(net, X, targets)
    there = np.isfinite(table.distance)
    assert there.any()
    Y, rows = net.logits(table.x[there]), np.arange(there.sum())
    np.testing.assert_allclose(Y[rows, targets[there]], Y.max(axis=1), atol=1e-7)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_other_solvers_end_on_the_boundary_too(norm: float) -> None:
    net, x = cnn(), images(1)[0]
    flip = fo.closest_flip_point(net, x, bounds=(0, 1), norm=norm, solver=fo.solvers.Ipopt(max_iter=3))
    assert np.isfinite(flip.distance)
    assert flip.status in (fo.Status.CONVERGED, fo.Status.ON_BOUNDARY)
