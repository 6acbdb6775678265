"""First-order estimates beside closest flips: how far off are they (001, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.explain.geometry import angles, changes
from flipopt.explain.matching import as_rows_like, counted, left_out, nearest, percent
from flipopt.paths.taylor import TaylorEstimates
from flipopt.results import FlipTable


@dataclass(frozen=True, eq=False)
class TaylorComparison(Table):
    """First-order estimates and closest flips of the same rows.

    Attributes
    ----------
    row, classes
        Of the flip, (rows,) and (rows, 2).
    closest, estimate
        Distance of the closest flip, and its first-order estimate, (rows,).
    beta
        closest / estimate, (rows,): above 1 where the estimate is too short.
    reached, ratio
        Distance of the boundary in the direction of the estimate, NaN if there is none, and the same over closest.
    angle
        Between that direction and the one to the closest flip, in degrees.
    same_class
        Whether the estimate is of the class that the closest flip leads to, (rows,) bool.
    feasible
        Whether the boundary is reached before the bounds are left, (rows,) bool.
    without_flip
        Rows that were left out because no flip is known.
    """

    row: Array
    classes: Array
    closest: Array
    estimate: Array
    beta: Array
    reached: Array
    ratio: Array
    angle: Array
    same_class: Array
    feasible: Array
    without_flip: int = 0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name != "without_flip")

    def summary(self) -> str:
        """In plain words."""
        known = np.isfinite(self.beta)
        if not known.any():
            return f"No estimates: how far off they are cannot be said.{left_out(self.without_flip)}"
        low, middle, high = np.quantile(self.beta[known], [0.05, 0.5, 0.95])
        met = np.isfinite(self.ratio)
        along = (
            f"along its direction the boundary is {np.median(self.ratio[met]):.3g} times as far as the closest flip "
            f"(mean {self.ratio[met].mean():.3g})"
            if met.any()
            else "along its direction there is no boundary"
        )
        never = percent(float(1 - self.feasible.mean()))
        angle = f", at an angle of {np.nanmedian(self.angle):.0f} degrees" if met.any() else ""
        return (
            f"Of {counted(len(self.row), 'input')} the closest flip is {middle:.3g} times as far as the first-order "
            f"estimate (median; {low:.3g} to {high:.3g} for nine in ten); {along}{angle}, and for {never} of inputs it "
            f"meets none that is allowed.{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def compare_taylor(estimates: TaylorEstimates, flips: FlipTable, X: ArrayLike) -> TaylorComparison:
    """First-order estimates beside closest flips.

    Parameters
    ----------
    estimates
        What :func:`flipopt.paths.taylor` found for X; of several of a row the smallest counts.
    flips, X
        Closest flips of rows of X (rows, n), in the 2-norm; of several of a row the nearest counts.
    """
    if not isinstance(estimates, TaylorEstimates):
        raise InputError(f"estimates: expected those of fo.paths.taylor, found {type(estimates).__name__}")
    points = as_rows_like(X, flips)
    found, missing = nearest(flips, len(points), "X")
    first = estimates.nearest()
    found = found[np.isin(found.row, first.row)]
    own = first.take(np.searchsorted(first.row, found.row))
    with np.errstate(invalid="ignore", divide="ignore"):
        beta, ratio = found.distance / own.distance, own.reached / found.distance
    return TaylorComparison(
        found.row,
        found.classes,
        found.distance,
        own.distance,
        beta,
        own.reached,
        ratio,
        angles(own.direction, changes(found, points)),
        own.classes[:, 1] == found.classes[:, 1],
        own.feasible,
        missing,
    )
