"""Vectors, for other kernels. Loops are written out, since numba takes long to compile expressions of arrays."""

from __future__ import annotations

from flipopt.kernels.compiled import inline


@inline
def dot(a, b):  # type: ignore[no-untyped-def]
    """a . b."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@inline
def add(share, a, b):  # type: ignore[no-untyped-def]
    """b += share a."""
    for k in range(len(a)):
        b[k] += share * a[k]


@inline
def put(share, a, b):  # type: ignore[no-untyped-def]
    """b = share a."""
    for k in range(len(a)):
        b[k] = share * a[k]


@inline
def clear(a):  # type: ignore[no-untyped-def]
    """a = 0."""
    for k in range(len(a)):
        a[k] = 0.0


@inline
def copy(a, b):  # type: ignore[no-untyped-def]
    """b = a."""
    for k in range(len(a)):
        b[k] = a[k]


@inline
def clip(a, lower, upper, b):  # type: ignore[no-untyped-def]
    """b = a, put within the bounds."""
    for k in range(len(a)):
        b[k] = min(max(a[k], lower[k]), upper[k])


@inline
def squared_distance(a, b):  # type: ignore[no-untyped-def]
    """|a - b|^2."""
    total = 0.0
    for k in range(len(a)):
        total += (a[k] - b[k]) * (a[k] - b[k])
    return total


@inline
def scale(a, start, stop):  # type: ignore[no-untyped-def]
    """The largest of 1 and |a_start|, ..., |a_(stop - 1)|."""
    size = 1.0
    for k in range(start, stop):
        size = max(size, abs(a[k]))
    return size


@inline
def largest(a, start, stop):  # type: ignore[no-untyped-def]
    """The largest of |a_start|, ..., |a_(stop - 1)|."""
    size = 0.0
    for k in range(start, stop):
        size = max(size, abs(a[k]))
    return size


@inline
def index_of_least(a):  # type: ignore[no-untyped-def]
    """That of the least finite entry, or -1."""
    chosen = -1
    for k in range(len(a)):
        if a[k] < float("inf") and (chosen < 0 or a[k] < a[chosen]):
            chosen = k
    return chosen
