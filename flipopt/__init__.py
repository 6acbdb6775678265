"""Closest flip points: how far an input is from where a classifier changes its mind, where, and proof of it."""

from flipopt import lipschitz
from flipopt.activations import ELU, Activation, Erf, Identity, PReLU, ReLU, Tanh
from flipopt.errors import DerivativeError, FileFormatError, FlipoptError, InputError, MissingPackageError
from flipopt.features import WaveletFeatures
from flipopt.networks import DenseNetwork, Network, OnnxNetwork, TorchNetwork, load_network
from flipopt.networks.flow import gradient_flow
from flipopt.shipped import load_shipped

__version__ = "0.1.0"

__all__ = [
    "ELU",
    "Activation",
    "DenseNetwork",
    "DerivativeError",
    "Erf",
    "FileFormatError",
    "FlipoptError",
    "Identity",
    "InputError",
    "MissingPackageError",
    "Network",
    "OnnxNetwork",
    "PReLU",
    "ReLU",
    "Tanh",
    "TorchNetwork",
    "WaveletFeatures",
    "gradient_flow",
    "lipschitz",
    "load_network",
    "load_shipped",
]
