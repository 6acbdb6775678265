"""Classifiers: one protocol, its implementations, and their files."""

from flipopt.networks.dense import DenseNetwork
from flipopt.networks.load import load_network
from flipopt.networks.onnx_network import OnnxNetwork
from flipopt.networks.protocol import Network
from flipopt.networks.pytorch import TorchNetwork
from flipopt.networks.scikit_learn import from_sklearn

__all__ = ["DenseNetwork", "Network", "OnnxNetwork", "TorchNetwork", "from_sklearn", "load_network"]
