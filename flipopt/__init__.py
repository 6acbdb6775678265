"""Closest flip points: how far an input is from where a classifier changes its mind, where, and proof of it."""

from flipopt import (
    borderline,
    bounds,
    disagreement,
    explain,
    generative,
    paths,
    proofs,
    regions,
    report,
    runs,
    solvers,
)
from flipopt.bounds import lipschitz
from flipopt.common.errors import (
    DerivativeError,
    FileFormatError,
    FlipoptError,
    InputError,
    MissingPackageError,
    StorageError,
)
from flipopt.features.shipped import load_shipped
from flipopt.features.wavelets import WaveletFeatures
from flipopt.flips.further import further_flip_points
from flipopt.flips.least_change import least_change
from flipopt.flips.many import closest_flip_points, stream_flip_points
from flipopt.flips.one import closest_flip_point
from flipopt.homotopy import Homotopy
from flipopt.networks import DenseNetwork, Network, OnnxNetwork, TorchNetwork, from_sklearn, load_network
from flipopt.networks.activations import ELU, Activation, Erf, Identity, PReLU, ReLU, Tanh
from flipopt.networks.gradient_flow import gradient_flow
from flipopt.problem import FlipProblem, LinearConstraint, NonlinearConstraint, flip_problem, scale_of
from flipopt.results import FlipResult, FlipTable, Stage, Status
from flipopt.verification import Verification, verify

__version__ = "0.1.0"

__all__ = [
    "ELU",
    "Activation",
    "DenseNetwork",
    "DerivativeError",
    "Erf",
    "FileFormatError",
    "FlipProblem",
    "FlipResult",
    "FlipTable",
    "FlipoptError",
    "Homotopy",
    "Identity",
    "InputError",
    "LinearConstraint",
    "MissingPackageError",
    "Network",
    "NonlinearConstraint",
    "OnnxNetwork",
    "PReLU",
    "ReLU",
    "Stage",
    "Status",
    "StorageError",
    "Tanh",
    "TorchNetwork",
    "Verification",
    "WaveletFeatures",
    "borderline",
    "bounds",
    "closest_flip_point",
    "closest_flip_points",
    "disagreement",
    "explain",
    "flip_problem",
    "from_sklearn",
    "further_flip_points",
    "generative",
    "gradient_flow",
    "least_change",
    "lipschitz",
    "load_network",
    "load_shipped",
    "paths",
    "proofs",
    "regions",
    "report",
    "runs",
    "scale_of",
    "solvers",
    "stream_flip_points",
    "verify",
]
