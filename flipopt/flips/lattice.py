"""The values that discrete features may take, nearest first, and all their combinations within a distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.problem import Setting

OneOf = Sequence[int]
"""Indices of features of which exactly one is 1 and the others are 0."""
MOST_VALUES = 2**18
"""Of a feature: the nearest ones, at most. How far they reach is kept in mind."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A discrete feature, or a group of which exactly one is 1.

    Attributes
    ----------
    features
        Indices, (k,).
    values
        What they may be, (options, k), nearest to x first.
    cost
        Of each, (options,), increasing: w (v - x)^2 in the 2-norm, else |v - x|.
    reach
        Cost up to which no option is left out.
    """

    features: Array
    values: Array
    cost: Array
    reach: float


@dataclass(frozen=True, eq=False)
class Lattice:
    """The choices of a problem at x (n_inputs,), those with the longest steps first.

    Their costs add up, or the largest counts in the inf-norm.
    """

    setting: Setting
    x: Array
    choices: tuple[Choice, ...]

    @classmethod
    def of(cls, setting: Setting, x: Array, whole: Array, groups: Sequence[OneOf]) -> Lattice:
        _check_groups(groups, whole, len(x))
        choices = [_whole(setting, x, int(k)) for k in whole] + [_one_of(setting, x, list(group)) for group in groups]
        return cls(setting, x, tuple(sorted(choices, key=_step, reverse=True)))

    @property
    def features(self) -> Array:
        """Indices of all discrete features."""
        return np.concatenate([choice.features for choice in self.choices])

    @property
    def empty(self) -> bool:
        """Whether some feature may take no value at all."""
        return any(len(choice.cost) == 0 for choice in self.choices)

    @property
    def size(self) -> float:
        """How many points there are."""
        return float(np.prod([float(len(choice.cost)) for choice in self.choices]))

    @property
    def least(self) -> float:
        """Cost of the point nearest to x."""
        return float(self._total([choice.cost[0] for choice in self.choices]))

    @property
    def step(self) -> float:
        """The least difference of the costs of two options of a choice."""
        differences = np.concatenate([np.diff(choice.cost) for choice in self.choices])
        return float(differences[differences > 1e-12 * differences.max(initial=0.0)].min(initial=np.inf))

    @property
    def reach(self) -> float:
        """Cost up to which no point is left out."""
        return min(self._total([choice.reach, *self._least_but(k)]) for k, choice in enumerate(self.choices))

    def _least_but(self, k: int) -> list[float]:
        return [float(choice.cost[0]) for at, choice in enumerate(self.choices) if at != k]

    def _total(self, costs: Sequence[float]) -> float:
        return float(max(costs, default=0.0) if self.setting.norm == np.inf else sum(costs))

    def point(self, index: Array) -> Array:
        """Points (points, n_inputs) by the option of every choice, (points, choices); other features as in x."""
        X = np.tile(self.x, (len(index), 1))
        for choice, option in zip(self.choices, index.T, strict=True):
            X[:, choice.features] = choice.values[option]
        return X

    def between(self, low: float, high: float, most: int) -> tuple[Array, Array] | None:
        """All points that cost more than ``low`` and at most ``high``: options (points, choices) and costs (points,),
        cheapest first; None if there are more than ``most`` up to ``high``."""
        index, cost = np.zeros((1, 0), dtype=np.int32), np.zeros(1)
        largest = self.setting.norm == np.inf
        for k, choice in enumerate(self.choices):
            later = self._total([float(other.cost[0]) for other in self.choices[k + 1 :]])
            left = np.full(len(cost), high) if largest else high - cost - later
            options = np.searchsorted(choice.cost, left + 1e-12 * abs(high), side="right")
            if options.sum() > most:
                return None
            before = np.repeat(np.arange(len(cost)), options)
            option = np.arange(len(before)) - np.repeat(np.cumsum(options) - options, options)
            added = choice.cost[option]
            cost = np.maximum(cost[before], added) if largest else cost[before] + added
            index = np.column_stack([index[before], option.astype(np.int32)])
        some = np.flatnonzero((cost > low) & (cost <= high))
        some = some[np.argsort(cost[some], kind="stable")]
        return index[some], cost[some]


def _step(choice: Choice) -> float:
    """The cost of the least change from the nearest option."""
    return float(choice.cost[1] - choice.cost[0]) if len(choice.cost) > 1 else np.inf


def _whole(setting: Setting, x: Array, k: int) -> Choice:
    """A feature that is a whole number."""
    if setting.frozen[k]:
        values, reach = np.array([x[k]] if x[k] == np.round(x[k]) else []), np.inf
    else:
        low, high = np.ceil(setting.lower[k]), np.floor(setting.upper[k])
        first = max(low, np.round(x[k]) - MOST_VALUES // 2)
        last = min(high, np.round(x[k]) + MOST_VALUES // 2)
        values = np.arange(first, last + 1)
        outside = [x[k] - first + 1 if first > low else np.inf, last + 1 - x[k] if last < high else np.inf]
        reach = float(min(outside))
    change = values - x[k]
    cost = _cost(setting, k, change)
    order = np.argsort(cost, kind="stable")
    limit = float(_cost(setting, k, np.array(reach))) * (1 - 1e-9) if np.isfinite(reach) else np.inf
    return Choice(np.array([k]), values[order, None], cost[order], limit)


def _one_of(setting: Setting, x: Array, group: list[int]) -> Choice:
    values = np.eye(len(group))
    inside = ((values >= setting.lower[group]) & (values <= setting.upper[group])).all(axis=1)
    inside &= (~setting.frozen[group] | (values == x[group])).all(axis=1)
    values = values[inside]
    parts = np.stack([_cost(setting, k, values[:, at] - x[k]) for at, k in enumerate(group)], axis=1)
    cost = parts.max(axis=1) if setting.norm == np.inf else parts.sum(axis=1)
    order = np.argsort(cost, kind="stable")
    return Choice(np.array(group), values[order], cost[order], np.inf)


def _cost(setting: Setting, k: int, change: Array) -> Array:
    return np.asarray(setting.weights[k] * change**2 if setting.norm == 2 else np.abs(change))


def _check_groups(groups: Sequence[OneOf], whole: Array, n: int) -> None:
    seen: set[int] = {int(k) for k in whole}
    for position, group in enumerate(groups):
        members = [int(k) for k in group]
        if len(members) < 2 or not all(0 <= k < n for k in members):
            raise InputError(f"one_of[{position}]: expected at least two features below {n}, found {members}")
        if len(set(members)) != len(members) or seen & set(members):
            raise InputError(f"one_of[{position}]: expected features that are in no other group, found {members}")
        seen |= set(members)
