"""Performance and data profiles.

A problem is solved by a method if its point was verified and is within a tolerance of the best distance known. With the
cost c(p, m) of method m on problem p, infinite where it is not solved,

    performance profile (Dolan and More, 2002)   share of problems with c(p, m) <= tau min over m of c(p, m)
    data profile (More and Wild, 2009)           share of problems with c(p, m) <= kappa (n_p + 1)

The first compares methods with each other, so it changes with the methods that take part; the second says what a budget
buys, whatever the others do. Two methods far from the best of a performance profile are not compared by it.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array

FREE = 1e-12
"""A cost below this counts as this much: ratios of nothing say nothing."""


def solved(distance: Array, best: Array, tolerance: float) -> Array:
    """Which results count, (problems, methods): ``distance`` (problems, methods), NaN where nothing was verified, is
    within ``tolerance`` of ``best`` (problems,), relative."""
    with np.errstate(invalid="ignore"):
        return np.asarray(distance <= best[:, None] * (1 + tolerance))


def cost_of_solved(cost: Array, is_solved: Array) -> Array:
    """c(p, m), (problems, methods): the cost, infinite where the problem was not solved."""
    return np.where(is_solved, np.maximum(cost, FREE), np.inf)


def performance_ratios(cost: Array) -> Array:
    """c(p, m) over the least of all methods, (problems, methods); infinite where a method or all of them failed."""
    least = cost.min(axis=1, keepdims=True, initial=np.inf)
    return np.where(np.isfinite(cost), cost / np.where(np.isfinite(least), least, 1.0), np.inf)


def data_ratios(cost: Array, n: Array) -> Array:
    """c(p, m) / (n_p + 1), (problems, methods), for n (problems,) inputs."""
    return np.asarray(cost / (n[:, None] + 1.0))


def curve(ratios: Array) -> tuple[Array, Array]:
    """The profile of one method from its ratios (problems,): where it rises, and the share of problems from there on.

    It is a step function, 0 before the first of these; the last share is that of all problems it has solved.
    """
    finite = np.sort(ratios[np.isfinite(ratios)])
    at = np.unique(finite)
    return at, np.searchsorted(finite, at, side="right") / max(len(ratios), 1)
