"""Networks from files."""

from __future__ import annotations

from pathlib import Path

from flipopt.networks.dense import DenseNetwork
from flipopt.networks.files import read_layers


def load_network(path: str | Path) -> DenseNetwork:
    """Read a dense network from ``net.npz``, ``net.onnx`` or a folder of W1.csv, B1.csv, ..., sigma.csv.

    Its precision is the file's; points in float64 are evaluated in float64 whatever it is.
    """
    layers = read_layers(path)
    return DenseNetwork(layers.weights, layers.biases, layers.activations)
