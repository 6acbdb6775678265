"""A trust-region SQP method with exact second derivatives: short, checked steps where other solvers lose their way.

Each step is composed as Byrd and Omojokun do. The normal part goes towards the linearised constraints of a working set;
the tangential part minimises the quadratic model of the Lagrangian in their null space, exactly, by an eigenvalue
decomposition, so that negative curvature is used and not feared. A step is taken if it reduces the merit function
f + nu |violation| about as much as the model promised, and the radius follows how well the model did. So no step is
longer than the network's curvature allows, which is what a steep, folded boundary needs (appendix D.6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import eigh, qr

from flipopt.common.checks import Array
from flipopt.problem import Oracle
from flipopt.results import Status
from flipopt.solvers.template import Answer, Capabilities, Solver

LARGEST_N = 1000
"""Free features up to which a dense Hessian and its eigenvalues are affordable at every step."""
NORMAL_SHARE = 0.8
"""Of the radius, at most, for the normal part of a step."""
GOOD, POOR = 0.75, 0.1
"""Ratios of actual to predicted reduction above which the radius may grow, and below which a step is refused."""
GROW, SHRINK = 2.0, 0.3
"""What the radius is multiplied by then."""
FULL = 0.75
"""Length of a step, relative to the radius, from which on the radius was in its way; below NORMAL_SHARE, so that it
does not depend on rounding whether a normal step counts."""
LANDING = 10
"""Iterations at the end of a limited run that only reduce the violation, so that what it leaves is on the boundary."""
F_SHARE = 0.1
"""Of what the tangential part gains must be left after the normal part for a step to count as one that lowers f."""
PATIENCE, PROGRESS = 15, 0.9
"""Iterations outside the funnel within which the violation must fall to this share, or the restoration has failed."""
ROUNDING = 1e-14
"""A radius below this, relative to |u|, and a change of the merit below this, relative to it, mean nothing."""


@dataclass(frozen=True, kw_only=True)
class TrustRegion(Solver):
    """flipopt's own trust-region method."""

    tol: float = 1e-9
    """Relative KKT residual and violation at which it stops."""
    radius: float = 0.02
    """Longest first step, relative to the norm of the starting point."""
    funnel: float = 0.3
    """First limit of the violation, in logits: outside it steps only reduce the violation. A boundary with a gradient
    of 1e3, as a saturated network has, is then left by 3e-4 at most. Steps along its folds are tiny in a narrow funnel,
    and more often lost in a wide one."""

    @property
    def name(self) -> str:
        return "trust-region"

    @property
    def summary(self) -> str:
        return "trust-region SQP, exact Hessian, for steep networks"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(smooth_norms_only=True, largest_n=LARGEST_N)

    def loosened(self, tolerance: float, max_iter: int) -> Self:
        return replace(super().loosened(tolerance, max_iter), tol=max(self.tol, tolerance))

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        rows, at = _Rows(oracle), _point(oracle, u0)
        size = float(np.linalg.norm(u0)) or 1.0
        radius, funnel, patience = self.radius * size, self.funnel, _Patience()
        for iteration in range(self.max_iter):
            model = _Model(oracle, rows, at)
            if model.solved(self.tol):
                return Answer(at.u, Status.CONVERGED, "the KKT conditions hold", iteration)
            if model.v > funnel and patience.over(model.v):
                return Answer(at.u, Status.INFEASIBLE, f"the violation stays at {model.v:.1e}", iteration)
            landing = iteration >= self.max_iter - LANDING
            if landing and model.v <= self.tol:
                break
            while True:
                step = model.step(radius, restore=landing or model.v > funnel)
                trial, ratio = model.judged(step, funnel)
                if ratio >= POOR:
                    break
                radius = SHRINK * min(radius, step.length)
                if radius <= ROUNDING * size:
                    return Answer(at.u, Status.NUMERICAL_ERROR, "steps are lost in rounding", iteration)
            if not step.lowers_f and model.v <= funnel:
                v = rows.size(trial.c)
                funnel = max(0.5 * funnel, v + 0.5 * (model.v - v))
            if ratio >= GOOD and step.length >= FULL * radius:
                radius *= GROW
            at = trial
        return Answer(at.u, Status.LIMIT, f"{self.max_iter} iterations", self.max_iter)


class _Patience:
    """Gives up a restoration that no longer gets anywhere: a plateau, or a local minimum of the violation."""

    def __init__(self) -> None:
        self.best, self.waited = np.inf, 0

    def over(self, v: float) -> bool:
        if v < PROGRESS * self.best:
            self.best, self.waited = v, 0
        self.waited += 1
        return self.waited > PATIENCE


@dataclass(frozen=True)
class _Point:
    u: Array
    f: float
    c: Array


def _point(oracle: Oracle, u: Array) -> _Point:
    return _Point(u, oracle.objective(u), oracle.constraints(u))


class _Rows:
    """The constraints: lower <= c <= upper, and low <= u <= high."""

    def __init__(self, oracle: Oracle) -> None:
        self.lower, self.upper = oracle.constraint_bounds
        self.low, self.high = oracle.bounds
        self.equations = self.lower == self.upper

    def violation(self, c: Array) -> Array:
        return np.asarray(np.maximum(np.maximum(self.lower - c, c - self.upper), 0.0))

    def size(self, c: Array) -> float:
        """v, the norm of the violation."""
        return float(np.linalg.norm(self.violation(c)))

    def excess(self, c: Array) -> Array:
        """c less the bound that is nearer (or violated): what a working row must lose."""
        return np.asarray(np.where(c - self.lower <= self.upper - c, c - self.lower, c - self.upper))

    def side(self, c: Array) -> Array:
        """The sign that a multiplier must have: + at a lower bound, - at an upper one."""
        return np.asarray(np.where(c - self.lower <= self.upper - c, 1.0, -1.0))


@dataclass(frozen=True)
class _Step:
    """d, what it is made of, and what the model promises of it."""

    d: Array
    working: Array
    A: Array
    moving: Array
    f_fall: float
    v_fall: float
    lowers_f: bool

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.d))


class _Model:
    """The quadratic model of the Lagrangian at a point, with linearised constraints."""

    def __init__(self, oracle: Oracle, rows: _Rows, at: _Point) -> None:
        self.oracle, self.rows, self.at = oracle, rows, at
        self.g, self.J = oracle.gradient(at.u), oracle.jacobian(at.u)
        self.violation = rows.violation(at.c)
        self.v = rows.size(at.c)
        scale = np.maximum(1.0, np.abs(at.c))
        near = np.abs(rows.excess(at.c)) <= 1e-7 * scale
        self.working = rows.equations | near | (self.violation > 0)
        self.moving = np.ones(len(at.u), dtype=bool)
        self.lam = self._multipliers()
        self.H: Array | None = None  # when the first step asks for it
        self.axes: dict[bytes, tuple[Array, Array]] = {}

    def _multipliers(self) -> Array:
        """Least-squares multipliers of the working rows, those of the wrong sign left out; sets ``working`` and
        ``moving`` to what they are consistent with."""
        rows, at = self.rows, self.at
        side = rows.side(at.c)
        lam = np.zeros(len(at.c))
        for _ in range(len(at.c) + 3):
            use = np.flatnonzero(self.working)
            lam[:] = 0
            lam[use] = np.linalg.lstsq(self.J[use][:, self.moving].T, self.g[self.moving], rcond=None)[0]
            pull = self.g - lam @ self.J  # what a bound would have to balance
            held = ((at.u <= rows.low) & (pull > 0)) | ((at.u >= rows.high) & (pull < 0))
            wrong = self.working & ~rows.equations & (self.violation <= 1e-9) & (lam * side < 0)
            if not wrong.any() and np.array_equal(~held, self.moving):
                break
            self.working &= ~wrong
            self.moving = ~held
        return lam

    def solved(self, tol: float) -> bool:
        residual = (self.g - self.lam @ self.J)[self.moving]
        feasible = bool((self.violation <= tol * np.maximum(1.0, np.abs(self.at.c))).all())
        return feasible and float(np.linalg.norm(residual)) <= tol * float(np.linalg.norm(self.g))

    def step(self, radius: float, restore: bool) -> _Step:
        """The composed step, with rows added that it would violate and variables stopped at their bounds.

        With ``restore`` only the normal part, which needs no second derivatives.
        """
        if self.H is None and not restore:
            self.H = self.oracle.hessian(self.at.u, -self.lam)
        rows, u = self.rows, self.at.u
        working, moving = self.working.copy(), self.moving.copy()
        fixed = np.zeros_like(u)
        for _ in range(len(self.at.c) + 5):
            normal, tangent, A = self._composed(working, moving, fixed, radius, restore)
            d = normal + tangent
            low, high = u + d < rows.low - 1e-15, u + d > rows.high + 1e-15
            blocked = (rows.violation(self.at.c + self.J @ d) > 1e-12) & ~working & (self.violation <= 1e-9)
            stopped = moving & (low | high)
            if not blocked.any() and not stopped.any():
                break
            fixed = np.where(stopped, np.where(low, rows.low, rows.high) - u, fixed)
            working |= blocked
            moving &= ~stopped
        d = np.clip(u + d, rows.low, rows.high) - u
        v_fall = self.v - rows.size(self.at.c + self.J @ d)
        if restore:
            return _Step(d, working, A, moving, 0.0, v_fall, False)
        f_fall = self._f_fall(d)
        gained = f_fall - self._f_fall(d - tangent)
        return _Step(d, working, A, moving, f_fall, v_fall, gained > 0 and f_fall >= F_SHARE * gained)

    def _f_fall(self, d: Array) -> float:
        assert self.H is not None
        return -float(self.g @ d + d @ self.H @ d / 2)

    def _composed(
        self, working: Array, moving: Array, fixed: Array, radius: float, restore: bool
    ) -> tuple[Array, Array, Array]:
        """Normal and tangential part over the moving variables, the others displaced by ``fixed``."""
        A = self.J[working][:, moving]
        e = self.rows.excess(self.at.c)[working] + self.J[working] @ fixed
        n = -np.linalg.lstsq(A, e, rcond=None)[0]
        n *= min(1.0, NORMAL_SHARE * radius / max(float(np.linalg.norm(n)), 1e-300))
        normal, tangent = fixed.copy(), np.zeros_like(fixed)
        normal[moving] = n
        if not restore:
            assert self.H is not None
            g = (self.g + self.H @ normal)[moving]
            values, axes = self._principal_axes(A, moving)
            left = np.sqrt(max(radius**2 - float(n @ n), 0.0))
            tangent[moving] = axes @ _ball_minimiser(values, axes.T @ g, left)
        return normal, tangent, A

    def _principal_axes(self, A: Array, moving: Array) -> tuple[Array, Array]:
        """Eigenvalues (k,) and eigenvectors (moving, k) of the Hessian in the null space of A, for any radius."""
        key = A.tobytes() + moving.tobytes()
        if key not in self.axes:
            assert self.H is not None
            Z = qr(A.T)[0][:, len(A) :]
            values, Q = eigh(Z.T @ self.H[np.ix_(moving, moving)] @ Z)
            self.axes[key] = values, Z @ Q
        return self.axes[key]

    def judged(self, step: _Step, funnel: float) -> tuple[_Point, float]:
        """The point after the step, if need be with a second-order correction, and actual over promised reduction."""
        trial = _point(self.oracle, self.at.u + step.d)
        ratio = self._ratio(trial, step, funnel)
        if ratio < POOR and len(step.A):
            back = np.zeros_like(step.d)
            back[step.moving] = -np.linalg.lstsq(step.A, self.rows.excess(trial.c)[step.working], rcond=None)[0]
            if np.linalg.norm(back) < step.length:
                corrected = _point(self.oracle, np.clip(trial.u + back, self.rows.low, self.rows.high))
                return corrected, self._ratio(corrected, step, funnel)
        return trial, ratio

    def _ratio(self, trial: _Point, step: _Step, funnel: float) -> float:
        v = self.rows.size(trial.c)
        if not np.isfinite(v):
            return -np.inf
        if step.lowers_f:
            noise = ROUNDING * max(abs(self.at.f), 1e-300)
            return (self.at.f - trial.f + noise) / (step.f_fall + noise) if v <= funnel else -np.inf
        noise = ROUNDING * float(np.abs(self.at.c).max())
        return (self.v - v + noise) / (step.v_fall + noise)


def _ball_minimiser(values: Array, b: Array, radius: float) -> Array:
    """The y with |y| <= radius that minimises b . y + sum values y^2 / 2, for ascending values of any sign, (k,)."""
    if len(b) == 0 or radius == 0:
        return np.zeros_like(b)
    smallest = float(values[0])
    above = values + max(0.0, -smallest)  # so that the shift is what is left: a tiny one is found as well as any

    def y(shift: float) -> Array:
        return np.asarray(-b / (above + shift))

    if smallest > 0 and float(np.linalg.norm(y(0.0))) <= radius:
        return y(0.0)
    size = max(float(np.abs(values).max()), float(np.linalg.norm(b)) / radius, 1e-300)
    low = 1e-14 * size
    inside = y(low)
    if float(np.linalg.norm(inside)) <= radius:  # the hard case: go on along the lowest eigenvector
        inside[0] = np.copysign(np.sqrt(radius**2 - float(inside[1:] @ inside[1:])), inside[0])
        return inside
    high = low + float(np.linalg.norm(b)) / radius
    for _ in range(100):  # |y| falls with the shift
        middle = np.sqrt(low * high)
        low, high = (middle, high) if float(np.linalg.norm(y(middle))) > radius else (low, middle)
        if high - low <= 1e-10 * high:
            break
    return y(high)
