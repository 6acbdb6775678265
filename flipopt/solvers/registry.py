"""Solvers by name, and what is installed."""

from __future__ import annotations

from dataclasses import dataclass

from flipopt.common.errors import InputError
from flipopt.solvers.batch import Batch
from flipopt.solvers.ipopt import Ipopt
from flipopt.solvers.nlopt import ALGORITHMS, Nlopt
from flipopt.solvers.pieces.solver import Pieces
from flipopt.solvers.scipy import STATUS as SCIPY_METHODS
from flipopt.solvers.scipy import Scipy
from flipopt.solvers.template import Solver
from flipopt.solvers.trust_region import TrustRegion

SOLVERS: dict[str, Solver] = {
    "ipopt": Ipopt(),
    "ipopt-exact": Ipopt(hessian="exact"),
    "cyipopt": Ipopt(backend="cyipopt"),
    "nlopt": Nlopt(),
    "scipy": Scipy(),
    "batch": Batch(),
    "trust-region": TrustRegion(),
    "pieces": Pieces(),
    **{solver.name: solver for solver in (Nlopt(algorithm=name) for name in ALGORITHMS)},
    **{solver.name: solver for solver in (Scipy(method=name) for name in SCIPY_METHODS)},
}
"""Every solver that can be named by a string, with its default options; ``nlopt`` and ``scipy`` are their SLSQP."""


def as_solver(solver: str | Solver) -> Solver:
    """A solver from its name, or the solver itself."""
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise InputError(f"solver: expected a Solver or one of {', '.join(SOLVERS)}, found {solver!r}")
    return SOLVERS[solver]


@dataclass(frozen=True)
class Installed:
    """One line of the list of solvers."""

    name: str
    available: bool
    note: str


def installed() -> list[Installed]:
    """Every named solver: whether it can run here, and how to get it if not."""
    lines = []
    for name, solver in SOLVERS.items():
        missing = solver.missing()
        lines.append(Installed(name, missing is None, missing or solver.summary))
    return lines
