"""The last digits, for any solver.

Newton steps on the KKT equations of the constraints that are active at a point. Where a network has kinks its closest
points often lie on them, and those equations do not hold: neurons at a kink then have c = 0 as a further equation, and
for ReLU networks there is the descent over pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.linear_pieces import Held
from flipopt.networks.softmax import softmax, softmax_vjp
from flipopt.problem import LimitReached, Oracle
from flipopt.solvers.pieces.compiled import descend_one, piecewise_linear
from flipopt.verification import ACTIVE, Verification, verify

STEPS = 8
LONGEST = 0.05
"""Of a Newton step, relative to the distance."""
LARGEST_N = 600
"""Free features up to which the Hessian is formed; above, only the curvature of the objective is used."""
NEARBY = 1e-2
"""Points farther than this from the boundary are not refined by Newton steps: another minimum might be near."""


def refine(oracle: Oracle, x_hat: Array, check: Verification) -> Array | None:
    """A point near ``x_hat`` that satisfies the KKT conditions better, or None. Only for the 2-norm."""
    problem = oracle.problem
    if problem.norm != 2 or problem.constraints or check.bound_violation > 0:
        return None
    if piecewise_linear(problem.setting):
        return descend_one(oracle, x_hat)
    if not (check.boundary_gap < NEARBY and check.class_margin > -NEARBY and check.kkt_residual < 0.5):
        return None
    best, best_check = x_hat, check
    try:
        held = _held(oracle, x_hat)
        for z, z_check in _newton(oracle, x_hat, check, held):
            better = _merit(z_check) < 0.9 * _merit(best_check)
            if better:
                best, best_check = z, z_check
            # On the way to a kink nothing looks better: the check sees it only where a point is on it.
            if best_check.closest(1e-12) or (held is None and not better):
                break
    except LimitReached:
        pass
    return best if best is not x_hat else None


def _merit(check: Verification) -> float:
    return max(check.boundary_gap, -min(check.class_margin, 0.0), check.kkt_residual)


def _held(oracle: Oracle, x_hat: Array) -> Held | None:
    """The neurons that are at their kinks, or None if the network has no kinks, or does not show them."""
    net = oracle.problem.network
    if not (isinstance(net, DenseNetwork) and net.kinked):
        return None
    oracle.count_forward()
    return Held.near(net, x_hat, ACTIVE)


def _newton(oracle: Oracle, z: Array, check: Verification, held: Held | None) -> Iterator[tuple[Array, Verification]]:
    """The points of Newton's method from z on, and what the check says of them.

    A long step ends it, as it leads to another minimum; where there are kinks it may as well lead across one that
    should be held, so it is only shortened.
    """
    problem = oracle.problem
    limit = LONGEST * max(problem.distance(z), 1e-12)
    for _ in range(STEPS):
        newton = _newton_step(oracle, z, check, held)
        length = np.inf if newton is None else float(problem.setting.length(newton.step))
        if newton is None or not np.isfinite(length) or (held is None and length > limit):
            break
        z = problem.clip(z + limit / max(length, limit) * newton.step)
        check = verify(problem, z)
        yield z, check
        if held is not None:
            oracle.count_forward()
            held = held.moved(z, newton.v, newton.mu)


@dataclass(frozen=True)
class _Newton:
    """A step (n_inputs,), and the multipliers after it: v (n_classes,) of the logits, mu (k,) of the neurons held."""

    step: Array
    v: Array
    mu: Array


def _newton_step(oracle: Oracle, x_hat: Array, check: Verification, held: Held | None) -> _Newton | None:
    """The step to the solution of the KKT equations, linearised, with the active rows as equations."""
    problem, u = oracle.problem, oracle.variables(x_hat)
    low, high = oracle.bounds
    moving = (u > low) & (u < high)
    active, c = _equations(oracle, u, check)
    A, m, n = oracle.jacobian(u)[active], len(c), int(moving.sum())
    if held is not None:
        A, c = np.concatenate([A, held.gradients[:, problem.free] / oracle.scale]), np.append(c, held.c)
    A, g = A[:, moving], oracle.gradient(u)[moving]
    lam = np.linalg.lstsq(A.T, g, rcond=None)[0]
    H = _hessian(oracle, u, active, lam, held)[np.ix_(moving, moving)]
    K = np.block([[H, -A.T], [A, np.zeros((len(c), len(c)))]])
    try:
        solution = np.linalg.solve(K, -np.concatenate([g - A.T @ lam, c]))
    except np.linalg.LinAlgError:
        return None
    step, lam = np.zeros_like(x_hat), lam + solution[n:]
    step[problem.free[moving]] = solution[:n] / oracle.scale[moving]
    v = lam[:m] @ oracle.T[active]
    if problem.outputs == "probabilities":
        v = softmax_vjp(softmax(problem.network.logits(x_hat)), v)
    return _Newton(step, v, lam[m:])


def _equations(oracle: Oracle, u: Array, check: Verification) -> tuple[Array, Array]:
    """The rows that are active at u, a mask, and by how much they are off their bounds."""
    values = oracle.constraints(u)
    lower, upper = oracle.constraint_bounds
    scale = np.maximum(1.0, np.abs(values))
    # An inequality is held if it is violated, or touches its bound and pushes.
    slack = np.minimum(values - lower, upper - values)
    pushes = np.abs(check.multipliers) > 0
    active = (lower == upper) | (slack < -ACTIVE * scale) | ((slack <= ACTIVE * scale) & pushes)
    return active, (values - np.where(values - lower <= upper - values, lower, upper))[active]


def _hessian(oracle: Oracle, u: Array, active: Array, lam: Array, held: Held | None) -> Array:
    """Of the Lagrangian, f - lam . (active rows, c of the neurons held), by the free features."""
    problem, m = oracle.problem, int(active.sum())
    if oracle.n_free > LARGEST_N:
        return np.diag(2 * problem.weights[problem.free] / oracle.scale**2)
    multipliers = np.zeros(len(active))
    multipliers[active] = -lam[:m]
    H = oracle.hessian(u, multipliers)
    if held is not None:
        oracle.evaluations.hessian += oracle.n_free * sum(bool(mask.any()) for mask in held.masks[1:])
        own = held.hessian(oracle.point(u), lam[m:])[np.ix_(problem.free, problem.free)]
        H -= own / np.multiply.outer(oracle.scale, oracle.scale)
    return H
