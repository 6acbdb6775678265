"""First-order reliability (FORM) as a method of a comparison.

Reliability engineers look for the *design point*: the point of a limit state g(u) = 0 that is closest to the origin of
a standard normal space. With u = x_hat - x and g the lead over the target class it is the closest flip point, as long
as no third class is in the way, of which FORM knows nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from flipopt.common.checks import Array
from flipopt.comparison.methods import Budget, Claim
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipProblem
from flipopt.solvers.walk import walk

ITERATIONS, PRECISION = 5000, 1e-12
"""Limits of OpenTURNS' algorithm, whose defaults (100, 1e-5) stop short of our tolerance."""


def offered() -> bool:
    """Whether OpenTURNS is here."""
    return find_spec("openturns") is not None


@dataclass(frozen=True)
class FormMethod:
    """OpenTURNS' FORM with the algorithm of Abdo and Rackwitz, from the end of the walk."""

    def run(self, problem: FlipProblem, network: Network, budget: Budget) -> Claim:
        """A design point; the other classes are left to the check."""
        import openturns as ot

        n, cost = len(problem.x), Evaluations()
        limit_state = _LimitState(problem, cost, time.perf_counter() + budget.seconds)
        function = ot.Function(ot.PythonFunction(n, 1, func=limit_state.value, gradient=limit_state.gradient))
        failure = ot.ThresholdEvent(ot.CompositeRandomVector(function, ot.RandomVector(ot.Normal(n))), ot.Less(), 0.0)
        algorithm = ot.AbdoRackwitz()
        algorithm.setStartingPoint(walk(problem, cost) - problem.x)
        algorithm.setMaximumIterationNumber(ITERATIONS)
        algorithm.setMaximumCallsNumber(budget.evaluations)
        for name in ("AbsoluteError", "RelativeError", "ResidualError", "ConstraintError"):
            getattr(algorithm, f"setMaximum{name}")(PRECISION)
        form = ot.FORM(algorithm, failure)
        try:
            form.run()
        except RuntimeError as error:  # OpenTURNS wraps whatever its functions raise
            late = time.perf_counter() > limit_state.deadline
            nowhere, status = np.full(n, np.nan), "LIMIT" if late else "NUMERICAL_ERROR"
            return Claim(nowhere, cost, 0, status, "stopped at its limit of time" if late else str(error))
        found = form.getResult()
        iterations = found.getOptimizationResult().getIterationNumber()
        return Claim(problem.x + np.array(found.getStandardSpaceDesignPoint()), cost, int(iterations))


@dataclass(frozen=True)
class _LimitState:
    """g(u) = y_i - y_j at x + u, counted, until the deadline."""

    problem: FlipProblem
    cost: Evaluations
    deadline: float

    def value(self, u: Array) -> list[float]:
        if time.perf_counter() > self.deadline:
            raise RuntimeError
        i, j = self.problem.classes
        y = self.problem.network.logits(self.problem.x + np.asarray(u))
        self.cost.forward += 1
        return [float(y[i] - y[j])]

    def gradient(self, u: Array) -> list[list[float]]:
        """(n, 1), as OpenTURNS has its gradients."""
        i, j = self.problem.classes
        v = np.zeros(self.problem.network.n_classes)
        v[i], v[j] = 1.0, -1.0
        g = self.problem.network.vjp(self.problem.x + np.asarray(u), v)
        self.cost.forward += 1
        self.cost.backward += 1
        return [[float(entry)] for entry in g]
