"""A check of any claimed flip point that never asks the solver.

Everything is computed from the network, in float64 and in the space of x_hat. With g the gradient of the objective at
x_hat and N the gradients of what is active there, a closest flip point has g in the cone of N. The KKT residual is how
far it is from that, relative to the size of g:

    min over multipliers of |g - N lam| / |g|,   signs of lam as the constraints demand.

For the squared 2-norm this is the sine of the angle between x_hat - x and the cone of normals.

Where a ReLU network has kinks at x_hat, several linear pieces meet. The residual is then the smaller of the one in the
piece that x_hat is counted to and of one that holds in all of them (flipopt.networks.linear_pieces).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import lsq_linear

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.linear_pieces import Piece, at_kinks, kinked_slopes, wrong_way
from flipopt.networks.protocol import Network
from flipopt.networks.softmax import softmax, softmax_vjp
from flipopt.problem import FlipProblem, LinearConstraint

ON_BOUNDARY = 1e-8
"""Largest |y_i - y_j|, relative to max(1, |y_i|), of a point on the boundary; also for every other constraint."""
STATIONARY = 1e-6
"""Largest KKT residual of a point that is called closest."""
ACTIVE = 1e-6
"""An inequality within this of its bound, relative to max(1, |value|), may have a multiplier."""
NEWTON_STEPS = 50
DOUBLINGS = 24
"""How often the step of the bracket is doubled before giving up."""


@dataclass(frozen=True)
class Bracket:
    """Two points, one on either side of x_hat along the boundary's normal, that the network puts in different classes.

    ``step`` is their distance from x_hat; they are in the precision of the network's own parameters.
    """

    step: float
    classes: tuple[int, int]
    inside: Array
    outside: Array


@dataclass(frozen=True)
class Verification:
    """What the check found at a point.

    Attributes
    ----------
    boundary_gap
        Largest violation of the goal's equations, ``|y_i - y_j|``, relative to ``max(1, |y_i|)``.
    class_margin
        Smallest slack of the goal's inequalities; negative if another class is above. inf if there is none.
    bound_violation, constraint_violation
        Largest excess over the bounds, and over the user's constraints relative to ``max(1, |value|)``.
    kkt_residual
        Relative distance of the objective's gradient from the cone of active normals.
    angle
        Between x_hat - x and the boundary's normal, in degrees; 0 at a closest flip with nothing else active.
    bracket
        A pair of points either side, if the goal is a flip, the point on the boundary, and the pair was found.
    multipliers
        Of the goal's rows, (rows,), for the objective as the problem states it.
    kinks
        Neurons that were given a slope between those of the two sides of their kink; 0 where the network is smooth.
    """

    boundary_gap: float
    class_margin: float
    bound_violation: float
    constraint_violation: float
    kkt_residual: float
    angle: float
    bracket: Bracket | None
    multipliers: Array = field(repr=False)
    kinks: int = 0

    @property
    def on_boundary(self) -> bool:
        """Every constraint holds."""
        return bool(
            self.boundary_gap <= ON_BOUNDARY
            and self.class_margin >= -ON_BOUNDARY
            and self.bound_violation == 0
            and self.constraint_violation <= ON_BOUNDARY
        )

    def closest(self, tolerance: float = STATIONARY) -> bool:
        """Every constraint holds and the point is stationary."""
        return bool(self.on_boundary and self.kkt_residual <= tolerance)


def verify(problem: FlipProblem, x_hat: Array, network: Network | None = None) -> Verification:
    """Check the point ``x_hat`` (n_inputs,); ``network`` is the one in its own precision, for the bracket."""
    goal, net = problem.goal, problem.network
    Y, pullback = net.linearize(x_hat)
    probabilities = problem.outputs == "probabilities"
    outputs = softmax(Y) if probabilities else Y
    values, rows = goal.T @ outputs, pullback(softmax_vjp(outputs, goal.T) if probabilities else goal.T)
    # The scale of a row is the largest output in it, as in |y_i - y_j| <= eps max(1, |y_i|).
    scale = np.maximum(1.0, (np.abs(goal.T) * np.abs(outputs)).max(axis=1))
    violation = np.maximum(goal.lower - values, values - goal.upper) / scale
    equations = goal.equations
    boundary_gap = float(np.abs(violation[equations]).max(initial=0.0))
    below, above = _excess(problem, x_hat)
    residual, multipliers, kinks = *_kkt(problem, x_hat, values, rows, scale)[:2], 0
    if 0 < residual < np.inf and isinstance(net, DenseNetwork):
        other = _kinked(problem, x_hat, values, scale)
        if other is not None and other[0] < residual:
            residual, multipliers, kinks = other
    return Verification(
        boundary_gap=boundary_gap,
        class_margin=float((-violation[~equations]).min(initial=np.inf)),
        bound_violation=float(max(below, above, 0.0)),
        constraint_violation=_user_violation(problem, x_hat),
        kkt_residual=residual,
        angle=_angle(x_hat - problem.x, rows[0]),
        bracket=_bracket(network or net, x_hat, rows[0]) if goal.classes and boundary_gap <= ON_BOUNDARY else None,
        multipliers=multipliers,
        kinks=kinks,
    )


def _excess(problem: FlipProblem, x_hat: Array) -> tuple[float, float]:
    frozen = np.abs(x_hat - problem.x)[problem.frozen].max(initial=0.0)
    return float(max((problem.lower - x_hat).max(), frozen)), float((x_hat - problem.upper).max())


def _user_rows(problem: FlipProblem, x_hat: Array) -> tuple[Array, Array, Array, Array]:
    """Values, gradients and bounds of the user's constraints."""
    values, rows, lower, upper = [np.empty(0)], [np.empty((0, len(x_hat)))], [np.empty(0)], [np.empty(0)]
    for c in problem.constraints:
        values.append(c.A @ x_hat if isinstance(c, LinearConstraint) else np.asarray(c.function(x_hat)))
        rows.append(c.A if isinstance(c, LinearConstraint) else np.asarray(c.jacobian(x_hat)))
        lower.append(c.lower)
        upper.append(c.upper)
    return np.concatenate(values), np.concatenate(rows), np.concatenate(lower), np.concatenate(upper)


def _user_violation(problem: FlipProblem, x_hat: Array) -> float:
    values, _, lower, upper = _user_rows(problem, x_hat)
    excess = np.maximum(np.maximum(lower - values, values - upper), 0) / np.maximum(1.0, np.abs(values))
    return float(np.nan_to_num(excess, nan=np.inf).max(initial=0.0))


def _kinked(problem: FlipProblem, x_hat: Array, values: Array, scale: Array) -> tuple[float, Array, int] | None:
    """Residual and multipliers with slopes between the two sides' for neurons at a kink, and their number; or None.

    First every such neuron's c is a row with a multiplier mu of its own; then mu is put into the slopes, as far as they
    go; then the residual is computed anew with these slopes, so that it holds whatever was done to find them.
    """
    net, goal = problem.network, problem.goal
    assert isinstance(net, DenseNetwork)
    if not net.kinked:
        return None
    layers = net.pre_activations(x_hat)
    kinks = at_kinks(net, layers, ACTIVE)
    if not any(mask.any() for mask in kinks):
        return None
    plain = Piece.at(net, layers)
    T = softmax_vjp(softmax(layers[-1]), goal.T) if problem.outputs == "probabilities" else goal.T
    normals = np.concatenate([plain.gradients(k + 1, np.eye(len(mask))[mask]) for k, mask in enumerate(kinks)])
    _, lam, free = _kkt(problem, x_hat, values, plain.gradients(net.n_layers, T), scale, normals)
    mu = [np.zeros(len(mask)) for mask in kinks]
    for layer, mask, part in zip(mu, kinks, np.split(free, np.cumsum([mask.sum() for mask in kinks])), strict=False):
        layer[mask] = part
    piece = kinked_slopes(plain, kinks, lam @ T, mu)
    while True:
        residual, lam, _ = _kkt(problem, x_hat, values, piece.gradients(net.n_layers, T), scale)
        wrong = wrong_way(piece, plain, lam @ T)  # the multipliers may differ from those that the slopes were made for
        if not any(mask.any() for mask in wrong):
            break
        slopes = zip(wrong, plain.slopes, piece.slopes, strict=True)
        piece = Piece(net, tuple(np.where(mask, old, new) for mask, old, new in slopes))
    return residual, lam, sum(int((a != b).sum()) for a, b in zip(piece.slopes, plain.slopes, strict=True))


def _kkt(
    problem: FlipProblem, x_hat: Array, values: Array, rows: Array, scale: Array, normals: Array | None = None
) -> tuple[float, Array, Array]:
    """The relative KKT residual, and the multipliers of the goal's rows and of ``normals`` (k, n), which are free."""
    free, n_goal = problem.free, len(values)
    normals = np.empty((0, len(x_hat))) if normals is None else normals
    user_values, user_rows, user_lower, user_upper = _user_rows(problem, x_hat)
    zero = np.zeros(len(normals))
    values = np.concatenate([values, user_values, zero])
    rows = np.concatenate([rows, user_rows, normals])[:, free]
    lower = np.concatenate([problem.goal.lower, user_lower, zero])
    upper = np.concatenate([problem.goal.upper, user_upper, zero])
    near = ACTIVE * np.concatenate([scale, np.maximum(1.0, np.abs(user_values)), zero])
    equations = lower == upper  # active with either sign, however far off they are
    at_lower, at_upper = (values - lower <= near) | equations, (upper - values <= near) | equations
    active = np.flatnonzero(at_lower | at_upper)
    # g = N lam with lam >= 0 at a lower bound, <= 0 at an upper one, free for an equation.
    low = np.where(at_upper, -np.inf, 0.0)[active]
    high = np.where(at_lower, np.inf, 0.0)[active]
    multipliers = np.zeros(len(values))
    g, G, g_low, g_high = _objective_gradients(problem, x_hat)
    size = float(np.linalg.norm(g)) if G.size == 0 else 1.0
    if not np.any((x_hat - problem.x)[free]) or size == 0:
        residual = 0.0  # nothing is closer to x than x, in any norm
    elif not np.isfinite(rows[active]).all():
        residual = np.inf
    else:
        lam, t, residual = _bounded_least_squares(rows[active], low, high, g, G, g_low, g_high, _edges(problem, x_hat))
        multipliers[active] = lam
        if problem.norm == np.inf:  # complementarity of the features that are nearly, not quite, changed the most
            moved = np.abs((x_hat - problem.x)[free])
            residual = max(residual, float(t @ (1 - (np.abs(G) @ moved) / moved.max())))
    return residual / (size or 1.0), multipliers[:n_goal], multipliers[len(values) - len(normals) :]


def _edges(problem: FlipProblem, x_hat: Array) -> tuple[Array, Array]:
    """Masks of the free features that touch their lower and their upper bound."""
    low, high, at = (array[problem.free] for array in (problem.lower, problem.upper, x_hat))
    width = high - low
    edge = np.where(np.isfinite(width), np.minimum(ACTIVE, 1e-3 * width), ACTIVE)
    return at - low <= edge, high - at <= edge


def _objective_gradients(problem: FlipProblem, x_hat: Array) -> tuple[Array, Array, Array, Array]:
    """The gradients of the objective at x_hat: g + t G with t in [low, high] (and sum t = 1 for the inf-norm)."""
    free = problem.free
    change = (x_hat - problem.x)[free]
    none = np.empty((0, len(free))), np.empty(0), np.empty(0)
    if problem.norm == 2:
        return 2 * problem.weights[free] * change, *none
    size = np.abs(change).max(initial=0.0)
    if problem.norm == 1:
        still = np.flatnonzero(np.abs(change) <= ACTIVE * size)
        g = np.sign(change)
        g[still] = 0
        return g, np.eye(len(free))[still], -np.ones(len(still)), np.ones(len(still))
    # An interior-point solution stays off weakly active rows by about 1e-5; what is not quite active is charged for it.
    most = np.flatnonzero(np.abs(change) >= size * (1 - 100 * ACTIVE))
    return (
        np.zeros(len(free)),
        np.sign(change[most])[:, None] * np.eye(len(free))[most],
        np.zeros(len(most)),
        np.ones(len(most)),
    )


def _bounded_least_squares(
    N: Array, low: Array, high: Array, g: Array, G: Array, g_low: Array, g_high: Array, edges: tuple[Array, Array]
) -> tuple[Array, Array, float]:
    """lam in [low, high], t in its range and nu >= 0 that minimise |g + t G - lam N - nu|, and that minimum.

    nu, the multipliers of the features at their bounds ``edges``, takes away every component of the right sign there.
    """
    sums_to_one = len(G) > 0 and bool((g_low == 0).all()) and not np.any(g)
    A, right = np.concatenate([N, -G]).T, g
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    A = A / scale  # unit columns: gradients of a saturated network may be tiny
    limits = np.concatenate([low, g_low]) * scale, np.concatenate([high, g_high]) * scale
    if sums_to_one:
        weight = 1e3  # large enough to hold the sum, small enough not to drown the rest
        A = np.vstack([A, weight * np.concatenate([np.zeros(len(N)), np.ones(len(G))]) / scale])
        right = np.append(right, weight)
        edges = np.append(edges[0], False), np.append(edges[1], False)
    solution = _without_edges(A, right, limits, edges)
    if solution is None:
        unit = np.eye(len(right))
        A_all = np.column_stack([A, unit[:, edges[0]], -unit[:, edges[1]]])
        more = np.zeros(A_all.shape[1] - A.shape[1])
        limits = np.concatenate([limits[0], more]), np.concatenate([limits[1], more + np.inf])
        solution = _least_squares(A_all, right, limits)[: A.shape[1]]
    left = right - A @ solution
    unscaled = solution / scale
    return unscaled[: len(N)], unscaled[len(N) :], float(np.linalg.norm(left[~_absorbed(left, edges)]))


def _absorbed(left: Array, edges: tuple[Array, Array]) -> Array:
    """Where a multiplier of a bound takes the component away: g = lam N + nu at a lower bound, - nu at an upper one."""
    return np.asarray((edges[0] & (left > 0)) | (edges[1] & (left < 0)))


def _without_edges(A: Array, right: Array, limits: tuple[Array, Array], edges: tuple[Array, Array]) -> Array | None:
    """The minimiser by Newton's method on what is left of the components, a piecewise quadratic; None if it cycles."""
    absorbed = _absorbed(right, edges)
    for _ in range(NEWTON_STEPS):
        if absorbed.all():
            return None
        solution = _least_squares(A[~absorbed], right[~absorbed], limits)
        now = _absorbed(right - A @ solution, edges)
        if (now == absorbed).all():
            return solution
        absorbed = now
    return None


def _least_squares(A: Array, right: Array, limits: tuple[Array, Array]) -> Array:
    """The solution in [low, high] that minimises |A solution - right|."""
    if A.shape[1] == 0:
        return np.empty(0)
    if np.isinf(limits[0]).all() and np.isinf(limits[1]).all():
        return np.linalg.lstsq(A, right, rcond=None)[0]
    apart = np.where(limits[1] > limits[0], 0.0, 1e-12)
    found = lsq_linear(A, right, (limits[0], limits[1] + apart), method="bvls", tol=1e-14, max_iter=1000)
    return np.asarray(found.x)


def _angle(change: Array, normal: Array) -> float:
    """Degrees between two vectors, whichever way the normal points."""
    if not (np.any(change) and np.any(normal)):
        return 0.0
    u, v = (vector / np.abs(vector).max() for vector in (change, normal))  # so that no norm underflows
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v) * (np.sign(u @ v) or 1.0)
    # Kahan's formula is accurate for small angles, where arccos is not.
    return float(np.degrees(2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v))))


def _bracket(network: Network, x_hat: Array, normal: Array) -> Bracket | None:
    """Step both ways along the normal, from one unit in the last place on, until the classes differ."""
    length = np.linalg.norm(normal)
    if not (np.isfinite(length) and length > 0):
        return None
    direction = normal / length
    step = float(np.finfo(network.dtype).eps * max(1.0, np.abs(x_hat).max()))
    for _ in range(DOUBLINGS):
        ends = np.stack([x_hat + step * direction, x_hat - step * direction]).astype(network.dtype)
        inside, outside = (int(k) for k in network.predict(ends))
        if inside != outside:
            return Bracket(step, (inside, outside), ends[0], ends[1])
        step *= 2
    return None
