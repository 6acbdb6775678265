"""Solvers: frozen dataclasses whose fields are their options."""

from flipopt.solvers.batch import Batch, Kinked, Small, Smooth, Start, Steps
from flipopt.solvers.full_space import FullSpace
from flipopt.solvers.ipopt import Ipopt
from flipopt.solvers.nlopt import Nlopt
from flipopt.solvers.pieces.solver import Pieces
from flipopt.solvers.registry import SOLVERS, Installed, as_solver, installed
from flipopt.solvers.scipy import Scipy
from flipopt.solvers.template import Answer, Capabilities, Solver
from flipopt.solvers.trust_region import TrustRegion

__all__ = [
    "SOLVERS",
    "Answer",
    "Batch",
    "Capabilities",
    "FullSpace",
    "Installed",
    "Ipopt",
    "Kinked",
    "Nlopt",
    "Pieces",
    "Scipy",
    "Small",
    "Smooth",
    "Solver",
    "Start",
    "Steps",
    "TrustRegion",
    "as_solver",
    "installed",
]
