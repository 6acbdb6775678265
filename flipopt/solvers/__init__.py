"""Solvers: frozen dataclasses whose fields are their options."""

from flipopt.solvers.base import Answer, Capabilities, Solver
from flipopt.solvers.ipopt import Ipopt
from flipopt.solvers.nlopt import Nlopt
from flipopt.solvers.registry import SOLVERS, Installed, as_solver, installed
from flipopt.solvers.scipy import Scipy

__all__ = [
    "SOLVERS",
    "Answer",
    "Capabilities",
    "Installed",
    "Ipopt",
    "Nlopt",
    "Scipy",
    "Solver",
    "as_solver",
    "installed",
]
