"""Methods that can be compared: a solver, the form of the constraints, a homotopy and a starting point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from flipopt.common.checks import Array
from flipopt.homotopy import Homotopy, follow
from flipopt.networks import DenseNetwork
from flipopt.networks.protocol import Network, Outputs
from flipopt.problem import Evaluations, FlipProblem
from flipopt.results import Status
from flipopt.solvers import Batch, FullSpace, Ipopt, Nlopt, Pieces, Scipy, Solver, TrustRegion
from flipopt.solvers.walk import walk


@dataclass(frozen=True)
class Budget:
    """What a method may spend on one problem."""

    seconds: float = 60.0
    evaluations: int = 20_000
    """Forward passes."""


@dataclass(frozen=True)
class Claim:
    """What a method says it has found. The point is checked by others; status and message are its own words."""

    x: Array
    evaluations: Evaluations
    iterations: int = 0
    status: str = ""
    message: str = ""


class Method(Protocol):
    """Anything that looks for the closest flip point of a problem within a budget."""

    def run(self, problem: FlipProblem, network: Network, budget: Budget) -> Claim:
        """A point for ``problem``, in logits and float64; ``network`` is the same network in its own precision."""


@dataclass(frozen=True)
class SolverMethod:
    """A solver of the library, in one of its formulations."""

    solver: Solver
    outputs: Outputs = "logits"
    homotopy: Homotopy | None = None
    start: Literal["x", "walk"] = "walk"

    def run(self, problem: FlipProblem, network: Network, budget: Budget) -> Claim:
        problem = problem.changed(outputs=self.outputs)
        reason = self.solver.missing() or self.solver.cannot(problem.setting, problem.goal)
        if self.homotopy is not None and not isinstance(network, DenseNetwork):
            reason = "a homotopy needs the layers of a DenseNetwork"
        if reason is not None:
            return Claim(np.full(len(problem.x), np.nan), Evaluations(), 0, Status.UNAVAILABLE.name, reason)
        limits = {"max_seconds": budget.seconds, "max_evaluations": budget.evaluations}
        cost = Evaluations()
        if self.homotopy is not None:
            flip = follow(problem, self.solver, replace(self.homotopy, **limits), network)  # type: ignore[arg-type]
        else:
            x0 = walk(problem, cost) if self.start == "walk" else problem.x
            flip = replace(self.solver, **limits).solve(problem, x0, network)  # type: ignore[arg-type]
        return Claim(flip.x, flip.evaluations + cost, flip.iterations, flip.status.name, flip.message)


METHODS: dict[str, Method] = {
    "ipopt": SolverMethod(Ipopt()),
    "ipopt from x": SolverMethod(Ipopt(), start="x"),
    "ipopt, exact Hessian": SolverMethod(Ipopt(hessian="exact")),
    "ipopt, probabilities": SolverMethod(Ipopt(), outputs="probabilities"),
    "ipopt, full space": SolverMethod(FullSpace()),
    "ipopt, uniform homotopy": SolverMethod(Ipopt(), homotopy=Homotopy(adaptive=False)),
    "ipopt, adaptive homotopy": SolverMethod(Ipopt(), homotopy=Homotopy()),
    "nlopt-slsqp": SolverMethod(Nlopt()),
    "nlopt-mma": SolverMethod(Nlopt(algorithm="LD_MMA")),
    "scipy-slsqp": SolverMethod(Scipy()),
    "scipy-trust-constr": SolverMethod(Scipy(method="trust-constr")),
    "trust-region": SolverMethod(TrustRegion()),
    "pieces": SolverMethod(Pieces()),
    "batch": SolverMethod(Batch(), start="x"),
    "batch, not softened": SolverMethod(Batch(soften=False), start="x"),
}
"""Methods of the library by name. All start from the end of the walk, whose cost is theirs, unless the name says
otherwise or they have a start of their own."""
