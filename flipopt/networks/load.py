"""Networks from files."""

from __future__ import annotations

from pathlib import Path

from flipopt.networks.dense import DenseNetwork
from flipopt.networks.files import read_layers
from flipopt.networks.files.onnx import NotDenseError
from flipopt.networks.onnx_graph.model import ControlFlowError
from flipopt.networks.onnx_network import OnnxNetwork


def load_network(path: str | Path, control_flow: bool = False) -> DenseNetwork | OnnxNetwork:
    """Read a network from ``net.npz``, ``net.onnx`` or a folder of W1.csv, B1.csv, ..., sigma.csv.

    An ONNX file that is a chain of dense layers becomes a :class:`DenseNetwork`, any other an :class:`OnnxNetwork`,
    whose derivatives need torch. The precision is the file's; points in float64 are evaluated by a dense network in
    float64 whatever it is.

    An ONNX file with If, Loop or Scan is refused unless ``control_flow``, for a file of your own: such a graph may run
    for ever. It can only be evaluated, since it has no translation to torch.
    """
    inner = False
    try:
        return load_dense(path)
    except ControlFlowError:
        if not control_flow:
            raise
        inner = True
    except NotDenseError:  # which is let go before the file is read again: it holds the whole model
        pass
    return OnnxNetwork(path, derivatives=not inner, control_flow=inner)


def load_dense(path: str | Path) -> DenseNetwork:
    """Read a network of dense layers alone."""
    layers = read_layers(path)
    return DenseNetwork(layers.weights, layers.biases, layers.activations)
