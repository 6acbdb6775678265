"""Networks from files."""

from __future__ import annotations

from pathlib import Path

from flipopt.networks.dense import DenseNetwork
from flipopt.networks.files import read_layers
from flipopt.networks.files.onnx import NotDenseError
from flipopt.networks.onnx_network import OnnxNetwork


def load_network(path: str | Path) -> DenseNetwork | OnnxNetwork:
    """Read a network from ``net.npz``, ``net.onnx`` or a folder of W1.csv, B1.csv, ..., sigma.csv.

    An ONNX file that is a chain of dense layers becomes a :class:`DenseNetwork`, any other an :class:`OnnxNetwork`,
    whose derivatives need torch. The precision is the file's; points in float64 are evaluated by a dense network in
    float64 whatever it is.
    """
    try:
        return load_dense(path)
    except NotDenseError:
        return OnnxNetwork(path, derivatives=True)


def load_dense(path: str | Path) -> DenseNetwork:
    """Read a network of dense layers alone."""
    layers = read_layers(path)
    return DenseNetwork(layers.weights, layers.biases, layers.activations)
