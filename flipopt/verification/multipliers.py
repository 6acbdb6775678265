"""The multipliers that explain the gradient of the objective, and what they leave of it.

At each point, with g the gradient of the objective and N the gradients (m, n) of what is active there, both by
sqrt(w) x_hat, so that the units of the features change nothing,

    minimise |g - lam N - nu|   over lam_k in R for equations and >= 0 otherwise,
                                nu_f >= 0 at a lower bound, <= 0 at an upper one, 0 for other features,
                                g in the subdifferential (1- and inf-norm; subdifferentials.py).

Two finders that share no solver do it: ``compiled``, many points at once, by Gram matrices, and ``reference``, point by
point, by scipy's bounded least squares in lam alone. What counts is the residual of the multipliers that were found.
They have the right signs, so it is an upper bound of the minimum whoever found them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import lsq_linear

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.problem.setting import Setting
from flipopt.verification.subdifferentials import Pair, Subdifferential, subdifferential, taken
from flipopt.verification.tolerances import ACTIVE, STATIONARY

ROUNDS = 50
"""Newton steps in which the features whose bounds take up a part of the gradient are found: few are needed."""
OPTIMAL = 1e-9
"""Largest cosine between what is left and a normal that could take up more: only rounding is below."""
VANISHED = 1e-290
"""A gradient no longer than this counts as none: multipliers of it would overflow."""
SHORTEST = 1e-4
"""Of a Newton step of the reference: below, rounding decides what leads down."""


@dataclass(frozen=True, eq=False)
class Rows(Columns):
    """Active rows of many points in one list: the point of each, (rows,), whether its multiplier may have either sign,
    (rows,), and its gradient, (rows, n_inputs)."""

    point: Array
    free: Array
    gradient: Array

    def among(self, points: Array, total: int) -> tuple[Rows, Array]:
        """Those of ``points``, numbered anew, and where they are in this list; ``total`` is the number of points."""
        number = np.full(total, -1)
        number[points] = np.arange(len(points))
        kept = np.flatnonzero(number[self.point] >= 0)
        return replace(self.take(kept), point=number[self.point[kept]]), kept

    def groups(self, total: int) -> Iterator[tuple[Array, Array, Array]]:
        """Points with equally many rows, (p,), where these are, (p, m), free ones first, and which are free, (m,).

        No array is padded to the largest number of rows, so what is computed for a point depends on no other.
        """
        count, free = (np.bincount(point, minlength=total) for point in (self.point, self.point[self.free]))
        order, start = np.lexsort((~self.free, self.point)), np.cumsum(count) - count
        for m, m_free in np.unique(np.column_stack([count, free]), axis=0):
            points = np.flatnonzero((count == m) & (free == m_free))
            yield points, order[start[points, None] + np.arange(m)], np.arange(m) < m_free


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective at many points: the change x_hat - x and, for the 2-norm, the gradient g, (points, free features);
    the size of g (else 1; 0 if nothing has changed), (points,); masks of the bounds touched, None without bounds."""

    setting: Setting
    change: Array
    g: Array
    size: Array
    edges: Pair | None

    @classmethod
    def at(cls, setting: Setting, X: Array, X_hat: Array) -> Objective:
        free = setting.free if setting.frozen.any() else slice(None)
        low, high, at, edges = setting.lower[free], setting.upper[free], X_hat[:, free], None
        root = np.sqrt(setting.weights[free])
        if setting.bounded:
            near = np.minimum(ACTIVE / root, 1e-3 * (high - low))
            edges = at - low <= near, high - at <= near
        change = at - X[:, free]
        g = 2 * root * change if setting.norm == 2 else np.zeros_like(change)
        size = _length(g) if setting.norm == 2 else np.any(change, axis=1).astype(np.float64)
        return cls(setting, change, g, size, edges)

    def take(self, points: Array) -> Objective:
        """That at ``points``, increasing indices."""
        if len(points) == len(self.size):
            return self
        edges = self.edges and (self.edges[0][points], self.edges[1][points])
        return Objective(self.setting, self.change[points], self.g[points], self.size[points], edges)

    def taken(self, left: Array) -> Array:
        """Where the multiplier of a bound takes up what is left: nu >= 0 at a lower bound, <= 0 at an upper one."""
        return taken(left, self.edges) if self.edges else np.zeros(left.shape, dtype=bool)

    def left(self, lam: Array, N: Array) -> Array:
        """What lam (p, m) and nu leave of g."""
        left = self.g - _times(lam, N)
        return np.where(self.taken(left), 0.0, left) if self.edges else left


def stationarity(objective: Objective, rows: Rows) -> tuple[Array, Array]:
    """The KKT residual of every point, (points,), and the multipliers of the rows, (rows,).

    In the 2-norm the reference is asked too where the compiled multipliers show neither that a point is stationary nor,
    to rounding, that no others would do better.
    """
    setting, total = objective.setting, len(objective.size)
    gradient = rows.gradient[:, setting.free] if setting.frozen.any() else rows.gradient
    gradient = gradient / np.sqrt(setting.weights[setting.free])
    residual, lam = np.zeros(total), np.zeros(len(rows))
    for points, index, free in rows.groups(total):
        part, N = objective.take(points), gradient[index]
        own, left = compiled(part, N, free) if setting.norm == 2 else reference(part, N, free)
        doubt = np.flatnonzero((left > STATIONARY) & (left < np.inf) & (setting.norm == 2))
        doubt = doubt[~_optimal(part.take(doubt), N[doubt], free, own[doubt])]
        other, less = reference(part.take(doubt), N[doubt], free)
        better = less < left[doubt]
        own[doubt[better]], left[doubt[better]] = other[better], less[better]
        lam[index], residual[points] = own, left
    return residual, lam


def compiled(objective: Objective, N: Array, free: Array) -> Pair:
    """lam (p, m) and the relative residual (p,) in the 2-norm, for N (p, m, n) and the mask ``free`` (m,).

    Semismooth Newton in nu: where a bound takes up its component, that counts no more.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # a gradient that overflows is a residual of inf
        lam = _project(objective, N, free)
        taken = objective.taken(objective.g - _times(lam, N))
        todo = np.flatnonzero(taken.any(axis=1))
        for _ in range(ROUNDS):
            if len(todo) == 0:
                break
            part, M = objective.take(todo), N[todo]
            lam[todo] = _project(part, M * ~taken[todo, None], free)
            now = part.taken(part.g - _times(lam[todo], M))
            moved = (now != taken[todo]).any(axis=1)
            taken[todo] = now
            todo = todo[moved]
        residual = _length(objective.left(lam, N)) / np.where(objective.size > 0, objective.size, 1.0)
    return lam, np.where(objective.size > 0, np.nan_to_num(residual, nan=np.inf), 0.0)


def _project(objective: Objective, M: Array, free: Array) -> Array:
    """lam (p, m) with the right signs that minimises |g - lam M|.

    A Gram matrix squares the condition of nearly dependent rows. A second solve with what the first has left makes up
    for it: A. Bjorck, Stability analysis of the method of seminormal equations, Linear Algebra Appl. 88/89 (1987).
    """
    K, size = np.matmul(M, M.transpose(0, 2, 1)), np.where(objective.size > 0, objective.size, 1.0)[:, None]
    length = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    length = np.where(length > 0, length, 1.0)
    K = K / (length[:, :, None] * length[:, None])  # of unit rows, for a unit g: the kernel's tolerances are absolute
    lam = _dual(K, _times(M, objective.g) / (length * size), np.ones(length.shape, dtype=bool), free)
    left = objective.g - _times(lam * size / length, M)
    lam += _dual(K, _times(M, left) / (length * size), (lam != 0) | free, np.ones_like(free))
    return np.where(free, lam, np.maximum(lam, 0.0)) * size / length


def _dual(K: Array, q: Array, use: Array, free: Array) -> Array:
    """lam (p, m) of the duals with the Gram matrices K (p, m, m) and the right sides q (p, m)."""
    from flipopt.kernels.projections import multipliers

    lam = np.zeros_like(q)
    multipliers(*map(np.ascontiguousarray, (K, q, use)), free, lam)
    return lam


def _optimal(objective: Objective, N: Array, free: Array, lam: Array) -> Array:
    """Whether no other multipliers leave less, (p,): no normal has a component in what is left that it may take up."""
    left = objective.left(lam, N)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = _times(N, left) / (_length(N) * _length(left)[:, None])
    return np.asarray((np.where(free | (lam != 0), np.abs(cosine), cosine) <= OPTIMAL).all(axis=1))


def reference(objective: Objective, N: Array, free: Array) -> Pair:
    """lam (p, m) and the residual (p,) as ``compiled`` has them, in any norm; relative where the gradient is unique."""
    lam, residual, norm = np.zeros(N.shape[:2]), np.zeros(len(N)), objective.setting.norm
    for k in np.flatnonzero(objective.size > 0):  # nothing is closer to x than x
        if not np.isfinite(N[k]).all():
            residual[k] = np.inf
            continue
        change, none = objective.change[k], np.zeros(N.shape[2], dtype=bool)
        edges = (objective.edges[0][k], objective.edges[1][k]) if objective.edges else (none, none)
        gradients = subdifferential(norm, change, objective.g[k], edges)
        lam[k] = _nearest(gradients, N[k], free)
        residual[k] = gradients.residual(lam[k] @ N[k])
    return lam, residual


def _nearest(gradients: Subdifferential, N: Array, free: Array) -> Array:
    """lam (m,) with the right signs that minimises the distance of lam N from the gradients.

    Its square is convex and made of quadratic pieces. Newton's method goes from piece to piece; where a full step leads
    up, a shorter one leads down.
    """
    length = np.linalg.norm(N, axis=1)
    length = np.where(length > VANISHED, length, np.inf)  # gradients of a saturated network may be tiny
    unit = N / length[:, None]
    limits = np.where(free, -np.inf, 0.0), np.full(len(N), np.inf)
    lam = np.zeros(len(N))
    piece = gradients.piece(lam @ unit)
    for _ in range(ROUNDS):
        if piece.distance == 0:
            break
        step = _least_squares(*piece.equations(unit), limits) - lam
        share = 1.0
        while True:
            there = gradients.piece((lam + share * step) @ unit)
            if there.distance < piece.distance or share < SHORTEST:
                break
            share /= 2
        if there.distance >= piece.distance:
            break
        lam, same, piece = lam + share * step, share == 1 and there.same(piece), there
        if same:
            break
    return np.asarray(lam / length)


def _least_squares(A: Array, right: Array, limits: Pair) -> Array:
    """The solution within ``limits`` that minimises |A solution - right|."""
    if A.shape[1] == 0:
        return np.empty(0)
    if np.isinf(limits).all():
        return np.linalg.lstsq(A, right, rcond=None)[0]
    apart = np.where(limits[1] > limits[0], 0.0, 1e-12)
    found = lsq_linear(A, right, (limits[0], limits[1] + apart), method="bvls", tol=1e-14, max_iter=1000)
    return np.asarray(np.clip(found.x, *limits))  # it may be beyond by a rounding error


def _times(A: Array, B: Array) -> Array:
    """lam (p, m) times N (p, m, n), or N times vectors (p, n): a product for each point, of its own shape."""
    return np.asarray(np.matmul(A[:, None], B)[:, 0] if A.ndim == 2 else np.matmul(A, B[:, :, None])[:, :, 0])


def _length(A: Array) -> Array:
    """The 2-norms along the last axis."""
    return np.asarray(np.sqrt(np.matmul(A[..., None, :], A[..., :, None])[..., 0, 0]))
