"""The compiled descent over linear pieces: :mod:`flipopt.solvers.pieces.descent` for many problems without bounds.

In a piece, the point closest to x is found by Goldfarb and Idnani's dual method: from x, where no constraint is active,
the most violated one is added until none is. The objective only rises, so a piece that has nothing nearer than what is
known is left early. Constraint k < n_classes is the goal's row y_i - y_k, the others are the hidden neurons' walls.

At a local minimum no wall is worth crossing, but behind one that is near there may be another, nearer minimum: those
walls are crossed against the slope, and the descent goes on from there.

Loops are written out, since numba takes long to compile expressions of arrays. All is in one file, since what numba
keeps on disk is compiled anew only when the file of the function that is called changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import SUMS, compiled_sums
from flipopt.solvers.pieces.descent import DECREASE, FAR, ON_WALL, PIECES, PROMISE, THROUGH_WALL

DEPENDENT = 1e-12
"""Square of the part of a unit row that is not a combination of the active rows, below which it counts as one."""
LINEARISATIONS = 10
"""Pieces that are looked at for a first point on the boundary."""
ADDITIONS = 10
"""Constraints added in a piece, at most, for each of its neurons and classes."""
ROUNDING = 1e-9
"""By which an objective may exceed one that it should not, relative."""
ASCENT = 1.1
"""The distance behind a wall that is crossed against the slope, at most, relative to that of the local minimum."""
NEARER = 1e-6
"""By which another local minimum must be nearer, relative."""
MOVES = 20
"""To other local minima, at most."""


class Net(NamedTuple):
    """A network in flat arrays: one compiled program serves any number of layers.

    Attributes
    ----------
    weights, biases
        Of all layers, one after the other.
    widths, starts
        n(0), ..., n(m), and where each matrix begins in ``weights``.
    slopes
        Of all hidden neurons left and right of their kinks, (2, neurons).
    """

    weights: Array
    biases: Array
    widths: Array
    starts: Array
    slopes: Array


class Goal(NamedTuple):
    """The closest point to x (n,) between the classes i and j, all others below by ``margin``."""

    x: Array
    i: int
    j: int
    margin: float


class Work(NamedTuple):
    """What a descent needs to remember.

    Attributes
    ----------
    z, c
        The solution of the last piece, (n,), and the pre-activations and logits there, (neurons + classes,).
    ids, lam, held
        The active constraints, their multipliers (for unit normals), (n,), and a mask of them, (neurons + classes,).
    sizes
        Lengths of the constraints' gradients, with the sign that the equation has been given, (neurons + classes,).
    normals, basis, R
        Unit normals of the active constraints, and their factorisation: normals = R^T basis, (n, n).
    a, w, d, r
        A normal, its coordinates in the basis, what is left of it, R^-1 w, (n,).
    v, mu
        Multipliers of the logits and of the neurons' c.
    walls, promises
        Neurons whose walls are worth crossing, and the slopes behind them, (neurons,).
    visited, pending
        Pieces that have been solved, as numbers, and sides of those that wait, (pieces, neurons).
    passes
        Forward and backward passes so far, (2,).
    """

    z: Array
    c: Array
    ids: Array
    lam: Array
    held: Array
    sizes: Array
    normals: Array
    basis: Array
    R: Array
    a: Array
    w: Array
    d: Array
    r: Array
    v: Array
    mu: Array
    walls: Array
    promises: Array
    visited: Array
    pending: Array
    passes: Array


inline = numba.njit(**SUMS, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@inline
def _room(net):  # type: ignore[no-untyped-def]
    n, neurons, classes = net.widths[0], net.slopes.shape[1], net.widths[-1]
    rows = neurons + classes
    return Work(
        np.empty(n),
        np.empty(rows),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(rows, np.bool_),
        np.empty(rows),
        np.empty((n, n)),
        np.empty((n, n)),
        np.empty((n, n)),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(classes),
        np.empty(neurons),
        np.empty(neurons, np.int64),
        np.empty(neurons),
        np.empty(2 * PIECES + 2, np.uint64),
        np.empty((PIECES, neurons), np.bool_),
        np.zeros(2, np.int64),
    )


# Vectors


@inline
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@inline
def _add(share, a, b):  # type: ignore[no-untyped-def]
    """b += share a."""
    for k in range(len(a)):
        b[k] += share * a[k]


@inline
def _put(share, a, b):  # type: ignore[no-untyped-def]
    """b = share a."""
    for k in range(len(a)):
        b[k] = share * a[k]


@inline
def _copy(a, b):  # type: ignore[no-untyped-def]
    for k in range(len(a)):
        b[k] = a[k]


@inline
def _square(a, b):  # type: ignore[no-untyped-def]
    """|a - b|^2."""
    total = 0.0
    for k in range(len(a)):
        total += (a[k] - b[k]) * (a[k] - b[k])
    return total


@inline
def _largest(c, start, stop):  # type: ignore[no-untyped-def]
    """max(1, |c|), the scale of a layer."""
    size = 1.0
    for k in range(start, stop):
        size = max(size, abs(c[k]))
    return size


# The network


@inline
def _times(net, layer, v, out):  # type: ignore[no-untyped-def]
    """out = W(layer + 1) v."""
    start, columns = net.starts[layer], net.widths[layer + 1]
    for row in range(net.widths[layer]):
        out[row] = _dot(net.weights[start : start + columns], v)
        start += columns


@inline
def _forward(net, sides, z, fixed, work):  # type: ignore[no-untyped-def]
    """c at z: of the piece on ``sides`` if they are ``fixed``; else of the network, whose sides are written there."""
    layers, first, y, c = len(net.widths) - 1, 0, z, work.c
    for k in range(layers):
        start, columns = net.starts[k], net.widths[k + 1]
        out = c[first : first + columns]
        _copy(net.biases[first : first + columns], out)
        for row in range(len(y)):
            if y[row] != 0.0:
                _add(y[row], net.weights[start : start + columns], out)
            start += columns
        if k + 1 < layers:
            y = np.empty(columns)
            for e in range(columns):
                if not fixed:
                    sides[first + e] = out[e] >= 0.0
                y[e] = net.slopes[int(sides[first + e]), first + e] * out[e]
        first += columns
    work.passes[0] += 1


@inline
def _normal(net, sides, constraint, i, work):  # type: ignore[no-untyped-def]
    """The gradient ``work.a`` of a constraint's value in the piece on ``sides``, and its length."""
    classes, layer, first, e = net.widths[-1], len(net.widths) - 2, net.slopes.shape[1], constraint
    if constraint >= classes:
        layer, first, e = 0, 0, constraint - classes
        while e >= net.widths[layer + 1]:
            e -= net.widths[layer + 1]
            first += net.widths[layer + 1]
            layer += 1
    # The last matrix's part is a column, or the difference of two.
    sign = 1.0 if constraint >= classes and sides[constraint - classes] else -1.0
    back, start = np.empty(net.widths[layer]) if layer else work.a, net.starts[layer]
    for row in range(net.widths[layer]):
        back[row] = sign * net.weights[start + e] + (net.weights[start + i] if constraint < classes else 0.0)
        start += net.widths[layer + 1]
    for k in range(layer, 0, -1):
        first -= net.widths[k]
        for e in range(net.widths[k]):
            back[e] *= net.slopes[int(sides[first + e]), first + e]
        v = back
        back = np.empty(net.widths[k - 1]) if k > 1 else work.a
        _times(net, k - 1, v, back)
    work.passes[1] += 1
    return np.sqrt(_dot(work.a, work.a))


# One piece


@inline
def _worst(net, sides, goal, walls, work):  # type: ignore[no-untyped-def]
    """The constraint violated the most, in the scale of its layer, and its value; -1 if none is.

    The equation comes first.
    """
    classes, slopes, c = net.widths[-1], net.slopes, work.c
    Y = c[len(c) - classes :]
    if not work.held[goal.j]:
        return goal.j, Y[goal.i] - Y[goal.j]
    size, chosen, worst, value = _largest(Y, 0, classes), -1, THROUGH_WALL, 0.0
    for k in range(classes):
        lead = Y[goal.i] - Y[k] - goal.margin
        if k != goal.i and not work.held[k] and -lead / size > worst:
            chosen, worst, value = k, -lead / size, lead
    start = 0
    for layer in range(len(net.widths) - 2 if walls else 0):
        stop = start + net.widths[layer + 1]
        size = _largest(c, start, stop)
        for e in range(start, stop):
            inside = c[e] if sides[e] else -c[e]
            if -inside / size > worst and slopes[0, e] != slopes[1, e] and not work.held[classes + e]:
                chosen, worst, value = classes + e, -inside / size, inside
        start = stop
    return chosen, value


@inline
def _split(a, m, work):  # type: ignore[no-untyped-def]
    """a = w basis + d with d orthogonal to the first m rows of the basis: Gram and Schmidt, twice."""
    _copy(a, work.d)
    for k in range(m):
        work.w[k] = 0.0
    for _ in range(2):
        for k in range(m):
            share = _dot(work.basis[k], work.d)
            work.w[k] += share
            _add(-share, work.basis[k], work.d)


@inline
def _append(m, work):  # type: ignore[no-untyped-def]
    """Make the normal ``normals[m]``, which has been split, the m-th of the basis."""
    for k in range(m):
        work.R[k, m] = work.w[k]
    work.R[m, m] = np.sqrt(_dot(work.d, work.d))
    _put(1 / work.R[m, m], work.d, work.basis[m])


@inline
def _drop(q, m, work):  # type: ignore[no-untyped-def]
    """Take the q-th of m active constraints away; those after it move up and are made orthogonal anew."""
    work.held[work.ids[q]] = False
    for k in range(q, m - 1):
        work.ids[k], work.lam[k] = work.ids[k + 1], work.lam[k + 1]
        _copy(work.normals[k + 1], work.normals[k])
        _split(work.normals[k], k, work)
        _append(k, work)


@inline
def _blocking(m, j, work):  # type: ignore[no-untyped-def]
    """The step at which the first multiplier of an inequality becomes 0, and which it is; infinite and -1 if none."""
    for k in range(m - 1, -1, -1):  # r = R^-1 w
        work.r[k] = work.w[k]
        for other in range(k + 1, m):
            work.r[k] -= work.R[k, other] * work.r[other]
        work.r[k] /= work.R[k, k]
    t, stops = np.inf, -1
    for k in range(m):
        if work.ids[k] != j and work.r[k] > 0.0 and work.lam[k] / work.r[k] < t:
            t, stops = work.lam[k] / work.r[k], k
    return t, stops


@inline
def _activate(m, j, value, work):  # type: ignore[no-untyped-def]
    """Move z until the constraint with the unit normal ``a`` and the negative ``value`` holds as an equation.

    Returns its multiplier and how many others are still active; -1 of them if the constraints contradict each other.
    """
    own = 0.0
    while True:
        _split(work.a, m, work)
        t, stops = _blocking(m, j, work)
        free = _dot(work.d, work.d)
        moves = m < len(work.z) and free > DEPENDENT
        if moves and -value / free <= t:
            t, stops = -value / free, -1
        elif stops < 0:
            return own, -1
        if moves:
            _add(t, work.d, work.z)
            value += t * free
        for k in range(m):
            work.lam[k] -= t * work.r[k]
        own += t
        if stops < 0:
            return own, m
        _drop(stops, m, work)
        m -= 1


@inline
def _solve(net, sides, goal, cap, walls, work):  # type: ignore[no-untyped-def]
    """The point ``work.z`` closest to x in the piece on ``sides``, with or without its ``walls``.

    Returns the number of active constraints; -1 if there is no such point with an objective of at most ``cap``.
    """
    for k in range(len(work.held)):
        work.held[k] = False
    _copy(goal.x, work.z)
    m = 0
    for _ in range(ADDITIONS * len(work.c)):
        _forward(net, sides, work.z, True, work)
        chosen, value = _worst(net, sides, goal, walls, work)
        if chosen < 0:
            return m
        size = _normal(net, sides, chosen, goal.i, work)
        if not size > 0.0 or not np.isfinite(value):
            return -1
        if chosen == goal.j and value > 0.0:
            size = -size  # the equation, as one that wants to grow
        _put(1 / size, work.a, work.a)
        own, m = _activate(m, goal.j, value / size, work)
        if m < 0:
            return -1
        work.ids[m], work.lam[m], work.sizes[chosen], work.held[chosen] = chosen, own, size, True
        _copy(work.a, work.normals[m])
        _append(m, work)
        m += 1
        if _square(work.z, goal.x) / 2 > cap:
            return -1
    return -1


# From piece to piece


@inline
def _multipliers(m, sides, i, work):  # type: ignore[no-untyped-def]
    """v and mu of the m active constraints."""
    classes = len(work.v)
    for k in range(classes):
        work.v[k] = 0.0
    for k in range(len(work.mu)):
        work.mu[k] = 0.0
    for k in range(m):
        share, constraint = work.lam[k] / work.sizes[work.ids[k]], work.ids[k]
        if constraint < classes:
            work.v[i] += share
            work.v[constraint] -= share
        else:
            work.mu[constraint - classes] = share if sides[constraint - classes] else -share


@inline
def _crossings(net, sides, objective, work):  # type: ignore[no-untyped-def]
    """The neurons at whose walls the multipliers promise a decrease behind them, the most promising last.

    Returns their number; see ``crossings`` in :mod:`flipopt.solvers.pieces.descent`.
    """
    found, stop, slopes, layers = 0, len(work.mu), net.slopes, len(net.widths) - 1
    delta = work.v
    for layer in range(layers - 2, -1, -1):
        start = stop - net.widths[layer + 1]
        w = np.empty(stop - start)
        _times(net, layer + 1, delta, w)
        delta = np.empty(stop - start)
        near = ON_WALL * _largest(work.c, start, stop)
        for e in range(start, stop):
            mu = work.mu[e]
            delta[e - start] = slopes[int(sides[e]), e] * w[e - start] + mu
            excess = (mu if sides[e] else -mu) + (slopes[1, e] - slopes[0, e]) * w[e - start]
            if slopes[0, e] != slopes[1, e] and abs(work.c[e]) <= near and excess > 0.0:
                promise = excess * _normal(net, sides, len(work.v) + e, 0, work)
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
def _walk(net, goal, m, sides, avoid, z, work):  # type: ignore[no-untyped-def]
    """From the solution of the piece on ``sides``, with m active constraints, to a local minimum z.

    As ``descend`` in :mod:`flipopt.solvers.pieces.descent`; the piece with the number ``avoid`` is not entered.
    Returns whether the end was reached.
    """
    objective, seen, waiting = np.inf, 0, 0
    for _ in range(PIECES):
        if m >= 0:
            now = _square(work.z, goal.x) / 2
            if now < objective * (1 - DECREASE):
                work.visited[0] = avoid
                seen, waiting = 1, 0
            _copy(work.z, z)
            objective = min(now, objective)
            work.visited[seen] = _key(sides)
            seen += 1
            _multipliers(m, sides, goal.i, work)
            found = _crossings(net, sides, objective, work)
            if found == 0:
                return True
            for k in range(min(found, PIECES - waiting)):
                _copy(sides, work.pending[waiting])
                work.pending[waiting, work.walls[k]] ^= True
                waiting += 1
        while waiting > 0 and _seen(_key(work.pending[waiting - 1]), seen, work):
            waiting -= 1
        if waiting == 0:
            return True
        waiting -= 1
        _copy(work.pending[waiting], sides)
        work.visited[seen] = _key(sides)
        seen += 1
        m = _solve(net, sides, goal, objective * (1 + ROUNDING), True, work)
    return False


@inline
def _first(net, goal, z, sides, work):  # type: ignore[no-untyped-def]
    """Solve the first piece that can be solved: that of z, or those where the linearised goal leads from there.

    Returns the number of active constraints, or -1.
    """
    cap = (FAR * (1 + np.sqrt(_dot(z, z)) + np.sqrt(_dot(goal.x, goal.x)))) ** 2
    for _ in range(LINEARISATIONS):
        _forward(net, sides, z, False, work)
        m = _solve(net, sides, goal, cap, True, work)
        if m >= 0 or _solve(net, sides, Goal(z, goal.i, goal.j, goal.margin), cap, False, work) < 0:
            return m
        _copy(work.z, z)
    return -1


@inline
def _look_around(net, goal, z, looks, work):  # type: ignore[no-untyped-def]
    """Move from the local minimum z to nearer ones behind up to ``looks`` walls around it; whether there are any."""
    neurons = net.slopes.shape[1]
    own, sides = np.empty(neurons, np.bool_), np.empty(neurons, np.bool_)
    other, far = np.empty(len(z)), np.empty(neurons)
    better = False
    for _ in range(MOVES):
        square = _square(z, goal.x)
        _forward(net, own, z, False, work)
        _distances(net, own, far, work)
        found = False
        for _ in range(min(looks, neurons)):
            wall = _nearest(far)
            if wall < 0:
                break
            far[wall] = np.inf
            _copy(own, sides)
            sides[wall] ^= True
            m = _solve(net, sides, goal, ASCENT * ASCENT * square / 2, True, work)
            ended = m >= 0 and _walk(net, goal, m, sides, _key(own), other, work)
            if ended and _square(other, goal.x) < square * (1 - NEARER):
                _copy(other, z)
                found = better = True
                break
        if not found:
            break
    return better


@inline
def _distances(net, sides, far, work):  # type: ignore[no-untyped-def]
    """From the last point of a forward pass to the walls of the neurons if its piece went on for ever."""
    for e in range(len(far)):
        size = _normal(net, sides, net.widths[-1] + e, 0, work)
        kinked = net.slopes[0, e] != net.slopes[1, e] and size > 0.0
        far[e] = abs(work.c[e]) / size if kinked else np.inf


@inline
def _nearest(far):  # type: ignore[no-untyped-def]
    """The index of the least finite entry, or -1."""
    chosen = -1
    for e in range(len(far)):
        if far[e] < np.inf and (chosen < 0 or far[e] < far[chosen]):
            chosen = e
    return chosen


@compiled_sums
def descend_all(
    net: Net,
    X: Array,
    classes: Array,
    margin: float,
    order: Array,
    groups: Array,
    best: Array,
    fall: float,
    looks: int,
    Z: Array,
    ended: Array,
    dropped: Array,
    passes: Array,
) -> None:
    """Descend from Z (problems, n), in place, in the ``order`` given; or, with ``looks``, look around the minima Z.

    A problem is ``dropped`` if its start is so far that, even if the distance falls to the share ``fall`` of it,
    another one of its group is nearer: ``best`` (groups,) has the distances so far.
    """
    work = _room(net)
    sides = np.empty(net.slopes.shape[1], np.bool_)
    for p in order:
        x, z, g = X[p], Z[p], groups[p]
        if fall * np.sqrt(_square(z, x)) > best[g]:
            dropped[p] = True
            continue
        goal = Goal(x, classes[p, 0], classes[p, 1], margin)
        before, more = work.passes[0], work.passes[1]
        if looks:
            ended[p] = _look_around(net, goal, z, looks, work)
        else:
            m = _first(net, goal, z, sides, work)
            ended[p] = m >= 0 and _walk(net, goal, m, sides, np.uint64(0), z, work)
        passes[p, 0] += work.passes[0] - before
        passes[p, 1] += work.passes[1] - more
        if ended[p]:
            best[g] = min(best[g], np.sqrt(_square(z, x)))
