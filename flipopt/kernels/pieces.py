"""Descent over the linear pieces of a network, for many problems.

Where the sides of all hidden neurons are fixed, the network is affine and the problem a strictly convex quadratic
program: the point closest to x in a polyhedron, whose walls c_k(z) = 0 separate it from the next pieces. Its solution
is found exactly. Its multipliers tell which walls should be crossed (networks/linear_pieces.py); the solution stays
feasible in the piece behind such a wall, so the distance can only fall, and a piece is never met twice at different
distances: the descent is finite.

At a local minimum no wall should be crossed, but behind one that is near there may be another, nearer minimum: those
walls are crossed against the slope, and the descent goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.affine import Calls, Net, exhausted, forward, logit_gradient, neuron_gradient, times
from flipopt.kernels.compiled import compiled_sums, inline, merged
from flipopt.kernels.piece import Goal, solve, violation, workspace
from flipopt.kernels.vectors import add, clear, copy, dot, index_of_least, largest, scale, squared_distance

ON_WALL = 1e-9
"""|c_k|, relative to its layer, of a neuron that may change sides."""
DECREASE = 1e-12
"""Of the squared distance, relative, that counts as one."""
PROMISE = 1e-9
"""Slope of the squared distance behind a wall, relative to its gradient, for which the wall is crossed."""
GAP = 1e-12
"""Violation of the goal, relative to the logits, of a point on the boundary."""
ROUNDING = 1e-9
"""By which an objective may exceed one that it should not, relative."""
NEARER = 1e-6
"""By which another local minimum must be nearer, relative."""
DROPPED, FEASIBLE, MINIMUM = 1, 2, 3
"""How a problem ended, 0 for not at all: given up; at a point that satisfies its goal; at a local minimum."""


class Options(NamedTuple):
    """The fields of :class:`flipopt.solvers.pieces.options.PieceOptions`."""

    pieces: int
    neighbours: int
    ascent: float
    linearisations: int
    approaches: int
    elastic: float
    far: float


class Problems(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    X
        The inputs, (problems, n).
    lower, upper, frozen
        Bounds of all, and features that keep their values, (n,).
    boxed
        Whether there are any.
    goals
        The goal of each, (problems,): an index into those that follow.
    D, bounds, ties
        D y = bounds in the first ``ties`` rows and D y >= bounds in the others, (goals, rows, n_classes), (goals, rows)
        and (goals,).
    """

    X: Array
    lower: Array
    upper: Array
    frozen: Array
    boxed: bool
    goals: Array
    D: Array
    bounds: Array
    ties: Array


@inline
def _multipliers(m, sides, goal, work):  # type: ignore[no-untyped-def]
    """v and mu of the m active constraints."""
    clear(work.v)
    clear(work.mu)
    rows = len(goal.D)
    for k in range(m):
        constraint = work.active.ids[k]
        share = work.active.lam[k] / work.sizes[constraint]
        if constraint < rows:
            add(share, goal.D[constraint], work.v)
        else:
            work.mu[constraint - rows] = share if sides[constraint - rows] else -share


@inline
def _crossings(net, sides, objective, calls, work):  # type: ignore[no-untyped-def]
    """The neurons at whose walls the multipliers promise a decrease behind them, the most promising last.

    With delta = s w + mu, as in networks/linear_pieces.py, the multiplier behind the wall is delta - s_behind w. It
    must push away from the wall there; ``excess`` is how much it pushes back. Returns their number.
    """
    found, stop, slopes, a = np.int64(0), len(work.mu), net.slopes, work.active.a[: net.widths[0]]
    delta = work.v
    for layer in range(len(net.widths) - 3, -1, -1):
        start = stop - net.widths[layer + 1]
        w = np.empty(stop - start)
        times(net, layer + 1, delta, w)
        delta = np.empty(stop - start)
        near = ON_WALL * scale(work.c, start, stop)
        for e in range(start, stop):
            mu = work.mu[e]
            delta[e - start] = slopes[int(sides[e]), e] * w[e - start] + mu
            excess = (mu if sides[e] else -mu) + (slopes[1, e] - slopes[0, e]) * w[e - start]
            if slopes[0, e] != slopes[1, e] and abs(work.c[e]) <= near and excess > 0.0:
                neuron_gradient(net, sides, e, a, calls)
                promise = excess * np.sqrt(dot(a, a))
                if promise > PROMISE * np.sqrt(2 * objective):
                    _insert(e, promise, found, work)
                    found += 1
        stop = start
    return found


@inline
def _insert(wall, promise, found, work):  # type: ignore[no-untyped-def]
    """Add to the ``found`` walls in the order of their promises."""
    place = found
    while place > 0 and work.promises[place - 1] > promise:
        work.walls[place], work.promises[place] = work.walls[place - 1], work.promises[place - 1]
        place -= 1
    work.walls[place], work.promises[place] = wall, promise


@inline
def _key(sides):  # type: ignore[no-untyped-def]
    """A number for the piece on ``sides``: Fowler, Noll and Vo's hash."""
    key = np.uint64(14695981039346656037)
    for e in range(len(sides)):
        key = (key ^ np.uint64(sides[e])) * np.uint64(1099511628211)
    return key


@inline
def _seen(key, count, work):  # type: ignore[no-untyped-def]
    k = 0
    while k < count and work.visited[k] != key:
        k += 1
    return k < count


@inline
def _warm(m, sides, other, rows, work):  # type: ignore[no-untyped-def]
    """How many constraints to start with on the ``other`` sides; those of walls between the two push no more."""
    for k in range(m):
        e = work.active.ids[k] - rows
        if e >= 0 and other[e] != sides[e]:
            work.active.lam[k] = 0.0
    return max(m, 0)


@inline
def _walk(net, goal, m, sides, avoid, z, calls, work):  # type: ignore[no-untyped-def]
    """From the solution of the piece on ``sides``, with m active constraints, to a local minimum z.

    Where many walls meet, the distance may stay the same from piece to piece; then every piece that multipliers point
    at is tried once, the most promising first. The piece with the number ``avoid`` is not entered. Returns whether the
    end was reached; ``sides`` are those of z then.
    """
    own, pieces = np.empty(len(sides), np.bool_), len(work.pending)
    objective, seen, waiting, ended = np.inf, 0, 0, False
    for _ in range(pieces):
        if m >= 0:
            now = squared_distance(work.active.z, goal.x) / 2
            if now < objective * (1 - DECREASE):
                work.visited[0] = avoid
                seen, waiting = 1, 0
            copy(work.active.z, z)
            copy(sides, own)
            objective = min(now, objective)
            work.visited[seen] = _key(sides)
            seen += 1
            _multipliers(m, sides, goal, work)
            found = _crossings(net, sides, objective, calls, work)
            if found == 0:
                ended = True
                break
            for k in range(min(found, pieces - waiting)):
                copy(sides, work.pending[waiting])
                work.pending[waiting, work.walls[k]] ^= True
                waiting += 1
        while waiting > 0 and _seen(_key(work.pending[waiting - 1]), seen, work):
            waiting -= 1
        ended = waiting == 0 and not (m < 0 and exhausted(calls))
        if waiting == 0 or exhausted(calls):
            break
        waiting -= 1
        warm = _warm(m, sides, work.pending[waiting], len(goal.D), work) if goal.boxed else np.int64(0)
        copy(work.pending[waiting], sides)
        work.visited[seen] = _key(sides)
        seen += 1
        m = solve(net, sides, goal, objective * (1 + ROUNDING), np.bool_(True), warm, calls, work)
    copy(own, sides)
    return ended


@merged
def _on_goal(net, goal, z, sides, options, calls, work):  # type: ignore[no-untyped-def]
    """Newton steps from z to the closest point at which the linearised goal holds, until the goal does.

    Returns whether it does; z and its ``sides`` are those of the point then, and z is what it was else.
    """
    y, size = z.copy(), _far(goal, z, options)
    for _ in range(options.linearisations):
        if exhausted(calls):
            break
        forward(net, sides, y, False, work.c, calls)
        if violation(goal, work) <= GAP:
            copy(y, z)
            return True
        here = Goal(y, goal.lower, goal.upper, goal.boxed, goal.D, goal.bound, goal.ties, 0.0, goal.size)
        if solve(net, sides, here, size, np.bool_(False), np.int64(0), calls, work) < 0:
            break
        copy(work.active.z, y)
    return False


@inline
def _far(goal, z, options):  # type: ignore[no-untyped-def]
    """An objective that is too large to be of interest."""
    return (options.far * (1 + np.sqrt(dot(z, z)) + np.sqrt(dot(goal.x, goal.x)))) ** 2


@merged
def _approach(net, goal, z, sides, options, calls):  # type: ignore[no-untyped-def]
    """Move z and its ``sides`` closer to the goal: a descent towards z in which the violation is a penalty.

    The linearised goal may lead from piece to piece for ever; this ends. Returns whether it was possible.
    """
    n, rows = len(z), len(goal.D)
    work = workspace(net, n + rows, rows, goal.boxed, options.pieces)
    if exhausted(calls):
        return False
    forward(net, sides, z, False, work.c, calls)
    x, end = np.zeros(n + rows), np.zeros(n + rows)
    lower, upper = np.full(n + rows, -np.inf), np.full(n + rows, np.inf)
    copy(z, x)
    copy(goal.lower, lower)
    copy(goal.upper, upper)
    logit_gradient(net, sides, goal.D[0], end, calls)
    steepness = np.sqrt(dot(end, end))
    elastic = options.elastic * (steepness if steepness > 0.0 else 1.0)
    nearby = Goal(x, lower, upper, goal.boxed, goal.D, goal.bound, goal.ties, elastic, goal.size)
    m = solve(net, sides, nearby, _far(nearby, x, options), np.bool_(True), np.int64(0), calls, work)
    if m < 0:
        return False
    _walk(net, nearby, m, sides, np.uint64(0), end, calls, work)
    copy(end[:n], z)
    return True


@merged
def _descend(net, goal, z, sides, options, calls, work):  # type: ignore[no-untyped-def]
    """From z to a local minimum; returns how it ended."""
    m, cap = np.int64(-1), _far(goal, z, options)
    for attempt in range(1 + options.approaches):
        if attempt > 0:
            if not _approach(net, goal, z, sides, options, calls):
                break
            m = solve(net, sides, goal, cap, np.bool_(True), np.int64(0), calls, work)
        if m < 0 and _on_goal(net, goal, z, sides, options, calls, work):
            m = solve(net, sides, goal, cap, np.bool_(True), np.int64(0), calls, work)
        if m >= 0:
            break
    if m < 0:
        return 0
    return MINIMUM if _walk(net, goal, m, sides, np.uint64(0), z, calls, work) else FEASIBLE


@merged
def _neighbours(net, goal, z, sides, known, options, calls, work):  # type: ignore[no-untyped-def]
    """Move from the local minimum z to nearer ones behind the walls that are the nearest; how it ended.

    A minimum at the distance ``known`` has had its neighbours looked at before: it is the last one.
    """
    neurons = net.slopes.shape[1]
    own, other, far = np.empty(neurons, np.bool_), np.empty(len(z)), np.empty(neurons)
    state, found = 0, True
    while found and not exhausted(calls):
        found, square = False, squared_distance(z, goal.x)
        if abs(square - known**2) <= NEARER * known**2:
            break
        forward(net, own, z, False, work.c, calls)
        _wall_distances(net, own, far, calls, work)
        for _ in range(min(options.neighbours, neurons)):
            wall = index_of_least(far)
            if wall < 0:
                break
            far[wall] = np.inf
            copy(own, sides)
            sides[wall] ^= True
            m = solve(net, sides, goal, options.ascent**2 * square / 2, np.bool_(True), np.int64(0), calls, work)
            ended = m >= 0 and _walk(net, goal, m, sides, _key(own), other, calls, work)
            if ended and squared_distance(other, goal.x) < square * (1 - NEARER):
                copy(other, z)
                state, found = MINIMUM, True
                break
    return state


@merged
def _wall_distances(net, sides, far, calls, work):  # type: ignore[no-untyped-def]
    """From the last point of a forward pass to the walls of the neurons if its piece went on for ever."""
    a = work.active.a
    for e in range(len(far)):
        neuron_gradient(net, sides, e, a, calls)
        size = np.sqrt(dot(a, a))
        kinked = net.slopes[0, e] != net.slopes[1, e] and size > 0.0
        far[e] = abs(work.c[e]) / size if kinked else np.inf


@compiled_sums
def descend_all(
    net: Net,
    problems: Problems,
    order: Array,
    groups: Array,
    best: Array,
    fall: float,
    around: bool,
    options: Options,
    most: int,
    stop: Array,
    Z: Array,
    state: Array,
    passes: Array,
) -> None:
    """Descend from Z (problems, n), in place, in the ``order`` given; or, with ``around``, on from the minima Z.

    A problem is given up if its start is so far that, even if the distance falls to the share ``fall`` of it, another
    one of its group is nearer: ``best`` (groups,) has the distances so far; with ``around``, those of minima whose
    neighbours need not be looked at again. ``passes`` (problems, 2) count forward and
    backward passes, of which each problem may have ``most`` forward ones, and none once ``stop`` (1,) is set.
    """
    n, rows, neurons = Z.shape[1], problems.D.shape[1], net.slopes.shape[1]
    work = workspace(net, n, rows, problems.boxed, options.pieces)
    sides = np.empty(net.slopes.shape[1], np.bool_)
    lower, upper = problems.lower.copy(), problems.upper.copy()
    for p in order:
        x, z, g, of = problems.X[p], Z[p], groups[p], problems.goals[p]
        calls = Calls(passes[p], most, stop)
        if exhausted(calls):
            continue
        if fall * np.sqrt(squared_distance(z, x)) > best[g]:
            state[p] = DROPPED
            continue
        for k in range(n):
            if problems.frozen[k]:
                lower[k] = upper[k] = x[k]
        forward(net, sides, x, False, work.c, calls)
        size = largest(work.c, neurons, len(work.c))
        size = size if size > 0.0 else 1.0
        goal = Goal(x, lower, upper, problems.boxed, problems.D[of], problems.bounds[of], problems.ties[of], 0.0, size)
        if around:
            state[p] = _neighbours(net, goal, z, sides, best[g], options, calls, work)
        else:
            state[p] = _descend(net, goal, z, sides, options, calls, work)
        if state[p] == MINIMUM:
            best[g] = min(best[g], np.sqrt(squared_distance(z, x)))
