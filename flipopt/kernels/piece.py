"""The point closest to x in one linear piece of a network, where it is affine: a quadratic program.

Its constraints are numbered: first the rows of the goal, then the walls of the hidden neurons, c_k >= 0 or c_k <= 0 as
the piece is on one side of them or the other. Most are never met, so a gradient is computed only of those that are
violated, one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.affine import exhausted, forward, logit_gradient, neuron_gradient
from flipopt.kernels.boxed_least_distance import Dual, append_row, begin, maximise_dual, no_dual, without_idle_rows
from flipopt.kernels.compiled import inline
from flipopt.kernels.least_distance import Active, Factors, add_constraint, no_factors
from flipopt.kernels.vectors import clear, copy, dot, largest, put, scale, squared_distance

THROUGH_WALL = 1e-11
"""How far beyond a wall a solution may be, relative to the layer."""
ADDITIONS = 10
"""Constraints added in a piece, at most, for each of its neurons and the goal's rows: more are signs of rounding."""


class Goal(NamedTuple):
    """The closest point to x (n,) in a box with D y = bound in the first ``ties`` rows and D y >= bound in the others.

    ``size`` is that of the logits, the largest at the input: what they are small or large to.
    With ``elastic`` > 0, x has a further variable t for each row: D y + elastic t takes the place of D y, and |t|^2 is
    a part of the squared distance. Vectors (n,) are longer by these then.
    """

    x: Array
    lower: Array
    upper: Array
    boxed: bool
    D: Array
    bound: Array
    ties: int
    elastic: float
    size: float


class Workspace(NamedTuple):
    """What a descent needs to remember.

    Attributes
    ----------
    active, factors, dual
        The solution of the last piece and its constraints, and what the two methods for them need.
    c
        Pre-activations and logits there, (neurons + classes,).
    sizes
        Lengths of the constraints' gradients, with the sign that an equation has been given, (rows + neurons,).
    v, mu
        Multipliers of the logits, (classes,), and of the neurons' c, (neurons,).
    walls, promises
        Neurons whose walls should be crossed, and the slopes behind them, (neurons,).
    visited, pending
        Pieces that have been solved, as numbers, and sides of those that wait, (pieces, neurons).
    """

    active: Active
    factors: Factors
    dual: Dual
    c: Array
    sizes: Array
    v: Array
    mu: Array
    walls: Array
    promises: Array
    visited: Array
    pending: Array


@inline
def workspace(net, n, rows, boxed, pieces):  # type: ignore[no-untyped-def]
    """For problems in n variables with so many goals' rows."""
    neurons, classes = net.slopes.shape[1], net.widths[-1]
    capacity = min(2 * n if boxed else n, neurons + rows)
    active = Active(
        z=np.empty(n),
        ids=np.empty(capacity, np.int64),
        lam=np.empty(capacity),
        normals=np.empty((capacity, n)),
        a=np.zeros(n),
        held=np.empty(rows + neurons, np.bool_),
    )
    return Workspace(
        active=active,
        factors=no_factors(0 if boxed else capacity, n),
        dual=no_dual(capacity if boxed else 0, n),
        c=np.empty(neurons + classes),
        sizes=np.empty(rows + neurons),
        v=np.empty(classes),
        mu=np.empty(neurons),
        walls=np.empty(neurons, np.int64),
        promises=np.empty(neurons),
        visited=np.empty(2 * pieces + 2, np.uint64),
        pending=np.empty((pieces, neurons), np.bool_),
    )


@inline
def _row_value(goal, row, work):  # type: ignore[no-untyped-def]
    """By how much D y is above its bound, in one row."""
    classes = len(work.v)
    value = dot(goal.D[row], work.c[len(work.c) - classes :]) - goal.bound[row]
    if goal.elastic > 0.0:
        value += goal.elastic * work.active.z[len(goal.x) - len(goal.D) + row]
    return value


@inline
def _worst(net, sides, goal, walls, work):  # type: ignore[no-untyped-def]
    """The constraint violated the most, in the scale of its layer, and its value; -1 if none is.

    Equations come first.
    """
    slopes, c, held, rows = net.slopes, work.c, work.active.held, len(goal.D)
    for row in range(goal.ties):
        if not held[row]:
            return row, _row_value(goal, row, work)
    neurons, chosen, worst, value = slopes.shape[1], -1, THROUGH_WALL, 0.0
    size = max(goal.size, largest(c, neurons, len(c)))
    for row in range(goal.ties, rows):
        lead = _row_value(goal, row, work)
        if not held[row] and -lead / size > worst:
            chosen, worst, value = row, -lead / size, lead
    start = 0
    for layer in range(len(net.widths) - 2 if walls else 0):
        stop = start + net.widths[layer + 1]
        size = scale(c, start, stop)
        for e in range(start, stop):
            inside = c[e] if sides[e] else -c[e]
            if -inside / size > worst and slopes[0, e] != slopes[1, e] and not held[rows + e]:
                chosen, worst, value = rows + e, -inside / size, inside
        start = stop
    return chosen, value


@inline
def _normal(net, sides, goal, constraint, value, calls, work):  # type: ignore[no-untyped-def]
    """The unit normal of a constraint, and the length of its gradient.

    An equation with a positive ``value`` changes its sign, as one that is to grow.
    """
    a, rows, n = work.active.a, len(goal.D), net.widths[0]
    clear(a[n:])
    if constraint < rows:
        logit_gradient(net, sides, goal.D[constraint], a, calls)
        if goal.elastic > 0.0:
            a[n + constraint] = goal.elastic
    else:
        neuron_gradient(net, sides, constraint - rows, a, calls)
    size = np.sqrt(dot(a, a))
    turned = value > 0.0 if constraint < goal.ties else constraint >= rows and not sides[constraint - rows]
    if size > 0.0:
        put(-1 / size if turned else 1 / size, a, a)
    length = size if size > 0.0 else 1.0  # a zero row says nothing, or what cannot be
    work.sizes[constraint] = -length if turned and constraint < goal.ties else length
    return size


@inline
def _begin(net, sides, goal, warm, calls, work):  # type: ignore[no-untyped-def]
    """z = x, put into the box, and no constraints; or, in a box, those ``warm`` ones of the last piece."""
    active, dual, rows = work.active, work.dual, len(goal.D)
    for k in range(len(active.held)):
        active.held[k] = False
    if not goal.boxed:
        copy(goal.x, active.z)
        return
    if warm == 0:
        begin(goal.x, goal.lower, goal.upper, active, dual)
        return
    forward(net, sides, active.z, True, work.c, calls)
    for k in range(warm):
        chosen, before = active.ids[k], work.sizes[active.ids[k]]
        if chosen < rows:
            value = _row_value(goal, chosen, work)
        else:
            value = work.c[chosen - rows] if sides[chosen - rows] else -work.c[chosen - rows]
        _normal(net, sides, goal, chosen, -1.0, calls, work)
        size = work.sizes[chosen]
        lam = active.lam[k] * size / before
        append_row(k, chosen, dot(active.a, active.z) - value / size, lam, active, dual)


@inline
def solve(net, sides, goal, cap, walls, warm, calls, work):  # type: ignore[no-untyped-def]
    """The point ``active.z`` closest to x in the piece on ``sides``, with or without its ``walls``.

    The first ``warm`` constraints of the last piece are where to start from in a box. Returns the number of active
    constraints; -1 if there is no such point with an objective of at most ``cap``.
    """
    active, dual, m = work.active, work.dual, warm
    if exhausted(calls):
        return -1
    _begin(net, sides, goal, warm, calls, work)
    if warm and not maximise_dual(m, goal.ties, goal.x, goal.lower, goal.upper, cap, active, dual):
        return -1
    for _ in range(ADDITIONS * len(active.held)):
        if exhausted(calls):
            return -1
        forward(net, sides, active.z, True, work.c, calls)
        chosen, value = _worst(net, sides, goal, walls, work)
        if chosen < 0:
            return m
        size = _normal(net, sides, goal, chosen, value, calls, work)
        if not size > 0.0 or not np.isfinite(value):
            return -1
        value = -abs(value) / size if chosen < goal.ties else value / size
        if goal.boxed:
            m = without_idle_rows(m, goal.ties, active, dual) if m > goal.ties else m
            if m == len(active.lam):
                return -1
            append_row(m, chosen, dot(active.a, active.z) - value, 0.0, active, dual)
            m += 1
            if not maximise_dual(m, goal.ties, goal.x, goal.lower, goal.upper, cap, active, dual):
                return -1
        else:
            m = add_constraint(m, chosen, value, goal.ties, active, work.factors)
        if m < 0 or squared_distance(active.z, goal.x) / 2 > cap:
            return -1
    return -1


@inline
def violation(goal, work):  # type: ignore[no-untyped-def]
    """The largest violation of the goal at the last point of a forward pass, relative to the logits."""
    worst = 0.0
    for row in range(len(goal.D)):
        value = _row_value(goal, row, work)
        worst = max(worst, abs(value) if row < goal.ties else -value)
    return worst / max(goal.size, largest(work.c, len(work.c) - len(work.v), len(work.c)))
