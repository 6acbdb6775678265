"""The last digits, for any solver.

Newton steps on the KKT equations of the constraints that are active at a point; for ReLU networks, whose closest points
lie on kinks where those equations do not hold, the descent over pieces.
"""

from __future__ import annotations

import numpy as np

from flipopt.checks import Array
from flipopt.problem import LimitReached, Oracle
from flipopt.solvers.pieces import descend, piecewise_linear
from flipopt.verification import ACTIVE, Verification, verify

STEPS = 8
LARGEST_N = 600
"""Free features up to which the Hessian is formed; above, only the curvature of the objective is used."""
NEARBY = 1e-2
"""Points farther than this from the boundary are not refined by Newton steps: another minimum might be near."""


def refine(oracle: Oracle, x_hat: Array, check: Verification) -> Array | None:
    """A point near ``x_hat`` that satisfies the KKT conditions better, or None. Only for the 2-norm."""
    problem = oracle.problem
    if problem.norm != 2 or problem.constraints or check.bound_violation > 0:
        return None
    if piecewise_linear(problem):
        return descend(oracle, x_hat)
    if not (check.boundary_gap < NEARBY and check.class_margin > -NEARBY and check.kkt_residual < 0.5):
        return None
    best, best_check = x_hat, check
    limit = 0.05 * max(problem.distance(x_hat), 1e-12)
    for _ in range(STEPS):
        try:
            step = _newton_step(oracle, best, best_check)
        except LimitReached:
            break
        if step is None or not np.isfinite(step).all() or np.linalg.norm(step) > limit:
            break
        trial = problem.clip(best + step)
        trial_check = verify(problem, trial)
        if _merit(trial_check) >= 0.9 * _merit(best_check):
            break
        best, best_check = trial, trial_check
        if best_check.closest(1e-12):
            break
    return best if best is not x_hat else None


def _merit(check: Verification) -> float:
    return max(check.boundary_gap, -min(check.class_margin, 0.0), check.kkt_residual)


def _newton_step(oracle: Oracle, x_hat: Array, check: Verification) -> Array | None:
    """The step to the solution of the KKT equations, linearised, with the active rows as equations."""
    problem = oracle.problem
    u = oracle.variables(x_hat)
    values, J = oracle.constraints(u), oracle.jacobian(u)
    lower, upper = oracle.constraint_bounds
    scale = np.maximum(1.0, np.abs(values))
    equations = lower == upper
    # An inequality is held if it is violated, or touches its bound and pushes.
    slack = np.minimum(values - lower, upper - values)
    pushes = np.abs(check.multipliers) > 0
    active = equations | (slack < -ACTIVE * scale) | ((slack <= ACTIVE * scale) & pushes)
    low, high = oracle.bounds
    moving = (u > low) & (u < high)
    target = np.where(values - lower <= upper - values, lower, upper)[active]
    A, c = J[active][:, moving], values[active] - target
    g = oracle.gradient(u)[moving]
    lam = np.linalg.lstsq(A.T, -g, rcond=None)[0]
    H = np.diag(2 * problem.weights[problem.free])[np.ix_(moving, moving)]
    if oracle.n_free <= LARGEST_N:
        multipliers = np.zeros(len(values))
        multipliers[active] = lam
        H = oracle.hessian(u, multipliers)[np.ix_(moving, moving)]
    m = len(c)
    K = np.block([[H, A.T], [A, np.zeros((m, m))]])
    try:
        solution = np.linalg.solve(K, -np.concatenate([g + A.T @ lam, c]))
    except np.linalg.LinAlgError:
        return None
    step = np.zeros_like(x_hat)
    step[problem.free[moving]] = solution[: int(moving.sum())]
    return step
