"""Discrete features: relax, round, and solve again for the features that stay free.

The returned point satisfies the discrete constraints exactly. It is the closest flip point for its own choice of the
discrete features; other choices near the relaxed solution are tried too, and the closest of them is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.flips.request import OneOf
from flipopt.problem import FlipProblem
from flipopt.results import FlipResult, Status, best

Solve = Callable[[FlipProblem, Array | None], FlipResult]
"""A problem and a starting point, or None, to its result."""
CHOICES = 32
"""Roundings that are tried, nearest to the relaxed solution first."""


def solve_discrete(problem: FlipProblem, solve: Solve, whole: Array, groups: Sequence[OneOf]) -> FlipResult:
    """Solve ``problem`` with the whole-number features ``whole`` (k,) and one-of-k ``groups``, each solve by ``solve``.

    The cost is that of all solves.
    """
    n = len(problem.x)
    _check_groups(groups, whole, n)
    fixed = _discrete(whole, groups)
    relaxed = solve(_boxed(problem, groups), None)
    results = []
    for values in islice(_choices(problem, relaxed.x, whole, groups), CHOICES):
        chosen, lower, upper = problem.x.copy(), problem.lower.copy(), problem.upper.copy()
        chosen[fixed] = lower[fixed] = upper[fixed] = values[fixed]
        # The discrete features are held by their bounds, so that distances are measured from the original x.
        results.append(solve(problem.changed(lower=lower, upper=upper), chosen))
    cost = sum((result.evaluations for result in results), relaxed.evaluations)
    if not results:
        message = "no rounding of the discrete features lies within the bounds"
        return replace(relaxed, status=Status.INFEASIBLE, message=message, distance=np.nan)
    return replace(best(results), evaluations=cost)


def _boxed(problem: FlipProblem, groups: Sequence[OneOf]) -> FlipProblem:
    """The relaxation: members of a group lie in [0, 1]."""
    members = np.asarray([k for group in groups for k in group], dtype=int)
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[members], upper[members] = np.maximum(lower[members], 0), np.minimum(upper[members], 1)
    return problem.changed(lower=lower, upper=upper)


def _choices(problem: FlipProblem, relaxed: Array, whole: Array, groups: Sequence[OneOf]) -> Iterator[Array]:
    """Roundings of ``relaxed``, the nearest first, then with one feature or group changed at a time."""
    base = relaxed.copy()
    base[whole] = np.clip(np.round(relaxed[whole]), np.ceil(problem.lower[whole]), np.floor(problem.upper[whole]))
    for group in groups:
        base[list(group)] = 0
        base[max(group, key=lambda k: relaxed[k])] = 1
    candidates = [base]
    for k in whole:
        other = base.copy()
        other[k] += 1 if relaxed[k] > base[k] else -1
        candidates.append(other)
    for group in groups:
        for k in sorted(group, key=lambda k: -relaxed[k])[1:]:
            other = base.copy()
            other[list(group)] = 0
            other[k] = 1
            candidates.append(other)
    candidates.sort(key=lambda values: float(np.abs(values - relaxed).sum()))
    for values in candidates:
        inside = (values >= problem.lower) & (values <= problem.upper)
        unfrozen = ~problem.frozen | (values == problem.x)
        if inside[_discrete(whole, groups)].all() and unfrozen[_discrete(whole, groups)].all():
            yield values


def _discrete(whole: Array, groups: Sequence[OneOf]) -> Array:
    return np.asarray([*whole, *(k for group in groups for k in group)], dtype=int)


def _check_groups(groups: Sequence[OneOf], whole: Array, n: int) -> None:
    seen: set[int] = {int(k) for k in whole}
    for position, group in enumerate(groups):
        members = [int(k) for k in group]
        if len(members) < 2 or not all(0 <= k < n for k in members):
            raise InputError(f"one_of[{position}]: expected at least two features below {n}, found {members}")
        if len(set(members)) != len(members) or seen & set(members):
            raise InputError(f"one_of[{position}]: expected features that are in no other group, found {members}")
        seen |= set(members)
