"""Rows as matrices (problems, methods)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.comparison.profiles import cost_of_solved, data_ratios, performance_ratios, solved
from flipopt.runs.rows import Row


@dataclass(frozen=True)
class Comparison:
    """What every method made of every problem.

    Attributes
    ----------
    problems, families, n, best
        Names, families, numbers of inputs and best distances known, (problems,); NaN where no flip is known.
    methods
        Their names.
    distance
        (problems, methods); NaN where no point stood up to the check.
    seconds, evaluations
        The cost, (problems, methods): time, and forward and backward passes and Hessian products together.
    status
        (problems, methods); an empty string where the method has not been run.
    proved
        Distances that are proved to be the least, (problems,); NaN where none is.
    """

    problems: list[str]
    families: list[str]
    n: Array
    best: Array
    methods: list[str]
    distance: Array
    seconds: Array
    evaluations: Array
    status: Array
    proved: Array

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        known: Mapping[str, float] | None = None,
        proved: Mapping[str, float] | None = None,
    ) -> Comparison:
        """From rows, the best distances ``known`` from elsewhere, and those that are ``proved`` to be the least."""
        entries = {row["problem"]: row for row in rows}
        problems, methods = list(entries), list(dict.fromkeys(row["method"] for row in rows))
        at = {name: k for k, name in enumerate(problems)}, {name: k for k, name in enumerate(methods)}
        shape = len(problems), len(methods)
        distance, seconds, evaluations = np.full((3, *shape), np.nan)
        status = np.full(shape, "", dtype=object)
        for row in rows:
            cell = at[0][row["problem"]], at[1][row["method"]]
            distance[cell] = row["distance"] if row["feasible"] else np.nan
            seconds[cell], status[cell] = row["seconds"], row["status"]
            evaluations[cell] = row["forward"] + row["backward"] + row["hessian"]
        optima = np.array([(proved or {}).get(name, np.nan) for name in problems])
        elsewhere = np.fmin([(known or {}).get(name, np.inf) for name in problems], optima)
        best = np.minimum(np.where(np.isfinite(distance), distance, np.inf).min(axis=1, initial=np.inf), elsewhere)
        families = [str(entries[name]["family"]) for name in problems]
        n = np.array([entries[name]["n"] for name in problems], dtype=np.int64)
        best = np.where(np.isfinite(best), best, np.nan)
        return cls(problems, families, n, best, methods, distance, seconds, evaluations, status, optima)

    @property
    def best_known(self) -> dict[str, float]:
        """The best distances by the names of the problems."""
        return dict(zip(self.problems, self.best.tolist(), strict=True))

    @property
    def ratio(self) -> Array:
        """Distances over the best known, (problems, methods)."""
        return np.asarray(self.distance / self.best[:, None])

    @property
    def gap(self) -> Array:
        """Distances over the proved least ones, less 1, (problems, methods); 0 for what rounding makes less."""
        return np.asarray(np.maximum(self.distance / self.proved[:, None] - 1, 0.0))

    def cost(self, unit: str, tolerance: float) -> Array:
        """In ``unit`` (seconds or evaluations), infinite where not solved within ``tolerance`` of the best known."""
        if unit not in ("seconds", "evaluations"):
            raise InputError(f"unit: expected seconds or evaluations, found {unit!r}")
        return cost_of_solved(getattr(self, unit), solved(self.distance, self.best, tolerance))

    def performance(self, unit: str, tolerance: float) -> Array:
        """Ratios of the performance profile, (problems, methods)."""
        return performance_ratios(self.cost(unit, tolerance))

    def data(self, unit: str, tolerance: float) -> Array:
        """Ratios of the data profile, (problems, methods)."""
        return data_ratios(self.cost(unit, tolerance), self.n)
