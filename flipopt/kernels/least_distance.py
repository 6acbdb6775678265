"""The point of a polyhedron closest to x, by the dual method of Goldfarb and Idnani.

From x, where no constraint is active, a violated one a . z >= b is added, and others whose multipliers would become
negative on the way are dropped. The distance only rises, so a caller may stop once it is too large.

D. Goldfarb and A. Idnani, A numerically stable dual method for solving strictly convex quadratic programs, Mathematical
Programming 27 (1983), 1-33. The Hessian is the identity here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import inline
from flipopt.kernels.vectors import add, copy, dot, put

DEPENDENT = 1e-12
"""Square of the part of a unit normal that is not a combination of the active ones, below which it counts as one."""


class Active(NamedTuple):
    """A point and the constraints that determine it, equations first.

    Attributes
    ----------
    z
        The point, (n,).
    ids, lam
        The constraints' numbers and multipliers, (capacity,).
    normals
        Their unit normals, (capacity, n).
    a
        The unit normal of the constraint to be added, (n,).
    held
        Whether a constraint is active, (constraints,).
    """

    z: Array
    ids: Array
    lam: Array
    normals: Array
    a: Array
    held: Array


class Factors(NamedTuple):
    """Of the normals: normals = R^T basis, (capacity, capacity) and (capacity, n).

    ``w`` (capacity,) are the coordinates of a normal in the basis, ``d`` (n,) is what is left of it, and r = R^-1 w.
    """

    basis: Array
    R: Array
    w: Array
    d: Array
    r: Array


@inline
def no_factors(capacity, n):  # type: ignore[no-untyped-def]
    """Room for the factors of up to ``capacity`` normals."""
    return Factors(
        basis=np.empty((capacity, n)),
        R=np.empty((capacity, capacity)),
        w=np.empty(capacity),
        d=np.empty(n),
        r=np.empty(capacity),
    )


@inline
def add_constraint(m, chosen, value, ties, active, factors):  # type: ignore[no-untyped-def]
    """Move z until the constraint ``chosen``, with the normal ``a`` and the negative ``value``, holds as an equation.

    The first ``ties`` of the m active ones are equations. Returns how many are active then; -1 if they contradict each
    other.
    """
    own = 0.0
    while True:
        _split(active.a, m, factors)
        t, stops = _blocking(m, ties, active, factors)
        free = dot(factors.d, factors.d)
        moves = m < len(active.lam) and free > DEPENDENT
        if moves and -value / free <= t:
            t, stops = -value / free, -1
        elif stops < 0:
            return -1
        if moves:
            add(t, factors.d, active.z)
            value += t * free
        for k in range(m):
            active.lam[k] -= t * factors.r[k]
        own += t
        if stops < 0:
            break
        _drop(stops, m, active, factors)
        m -= 1
    active.ids[m], active.lam[m], active.held[chosen] = chosen, own, True
    copy(active.a, active.normals[m])
    _append(m, factors)
    return m + 1


@inline
def _split(a, m, factors):  # type: ignore[no-untyped-def]
    """a = w basis + d with d orthogonal to the first m rows of the basis: Gram and Schmidt, twice."""
    basis, d, w = factors.basis, factors.d, factors.w
    copy(a, d)
    for k in range(m):
        w[k] = 0.0
    for _ in range(2):
        for k in range(m):
            share = dot(basis[k], d)
            w[k] += share
            add(-share, basis[k], d)


@inline
def _append(m, factors):  # type: ignore[no-untyped-def]
    """Make the normal that has been split the m-th of the basis."""
    for k in range(m):
        factors.R[k, m] = factors.w[k]
    factors.R[m, m] = np.sqrt(dot(factors.d, factors.d))
    put(1 / factors.R[m, m], factors.d, factors.basis[m])


@inline
def _drop(q, m, active, factors):  # type: ignore[no-untyped-def]
    """Take the q-th of m active constraints away; those after it move up and are made orthogonal anew."""
    active.held[active.ids[q]] = False
    for k in range(q, m - 1):
        active.ids[k], active.lam[k] = active.ids[k + 1], active.lam[k + 1]
        copy(active.normals[k + 1], active.normals[k])
        _split(active.normals[k], k, factors)
        _append(k, factors)


@inline
def _blocking(m, ties, active, factors):  # type: ignore[no-untyped-def]
    """The step at which the first multiplier of an inequality becomes 0, and which it is; infinite and -1 if none."""
    r, R = factors.r, factors.R
    for k in range(m - 1, -1, -1):  # r = R^-1 w
        r[k] = factors.w[k]
        for other in range(k + 1, m):
            r[k] -= R[k, other] * r[other]
        r[k] /= R[k, k]
    t, stops = np.inf, -1
    for k in range(ties, m):
        if r[k] > 0.0 and active.lam[k] / r[k] < t:
            t, stops = active.lam[k] / r[k], k
    return t, stops
