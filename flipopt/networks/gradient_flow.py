"""How gradients flow through a dense network at a point: where they vanish or explode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array, as_rows
from flipopt.common.errors import InputError
from flipopt.networks.dense import DenseNetwork


@dataclass(frozen=True)
class LayerFlow:
    """Slopes of one hidden layer at a point, and what a change there does to the logits.

    ``jacobian_norm`` is the Frobenius norm of dy / dc(k), the logits by the layer's pre-activations.
    """

    layer: int
    width: int
    activation: str
    smallest_slope: float
    median_slope: float
    largest_slope: float
    jacobian_norm: float


def gradient_flow(net: DenseNetwork, x: Array) -> list[LayerFlow]:
    """The flow through every hidden layer at x (n_inputs,)."""
    point = as_rows(x, net.n_inputs, "x")
    if point.ndim != 1:
        raise InputError(f"x: expected one point of shape ({net.n_inputs},), found {point.shape}")
    inputs = [point, *net.forward(point)[:-1]]
    J = net.weights[-1].T.astype(np.float64)
    flows = []
    for k in range(net.n_layers - 1, 0, -1):
        activation = net.activations[k - 1]
        slope = activation.slope(inputs[k - 1] @ net.weights[k - 1] + net.biases[k - 1])
        J = J * slope
        low, median, high = (float(value) for value in np.quantile(np.abs(slope), (0, 0.5, 1)))
        norm = float(np.linalg.norm(J))
        flows.append(LayerFlow(k, len(slope), type(activation).__name__, low, median, high, norm))
        J = J @ net.weights[k - 1].T
    return flows[::-1]
