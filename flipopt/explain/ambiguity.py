"""Which decisions may change within the uncertainty of the inputs (002, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from flipopt.common.checks import Array, as_floats, as_number
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.explain.matching import as_inputs, counted, left_out, nearest, on_boundary, percent
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.problem import in_float64
from flipopt.results import FlipTable


@dataclass(frozen=True, eq=False)
class Ambiguity(Table):
    """Whether the decision on each input may change within its uncertainty.

    Attributes
    ----------
    row, classes, distance
        Of the flip that is the likeliest, (rows,), (rows, 2), (rows,).
    index
        The reliability index: distance of x to the plane that touches the boundary at the flip, in standard deviations
        along its normal, (rows,). NaN if the uncertainty is a radius.
    probability
        That the decision changes, by that plane, (rows,); NaN if the uncertainty is a radius.
    ambiguous
        Whether the flip is within the radius, or the probability at least ``level``, (rows,) bool.
    level
        Of probability, or NaN.
    radius
        The radius, or NaN.
    without_flip
        Rows that were left out because no flip is known.
    """

    row: Array
    classes: Array
    distance: Array
    index: Array
    probability: Array
    ambiguous: Array
    level: float = np.nan
    radius: float = np.nan
    without_flip: int = 0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name not in ("level", "radius", "without_flip"))

    @property
    def share(self) -> float:
        """Of the rows that are ambiguous; NaN without rows."""
        return float(self.ambiguous.mean()) if len(self) else np.nan

    def summary(self) -> str:
        """In plain words."""
        if len(self) == 0:
            return f"No flips: which decisions are ambiguous cannot be said.{left_out(self.without_flip)}"
        how = (
            f"may change with a probability of {percent(self.level)} or more"
            if np.isnan(self.radius)
            else f"may change within a distance of {self.radius:g}"
        )
        return (
            f"{int(self.ambiguous.sum())} of {counted(len(self), 'decision')} ({percent(self.share)}) {how}."
            f"{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def ambiguity(
    flips: FlipTable,
    uncertainty: float | ArrayLike,
    X: ArrayLike | None = None,
    net: Network | None = None,
    level: float = 0.05,
) -> Ambiguity:
    """Inputs whose decision may change within the uncertainty of their measurement.

    Parameters
    ----------
    flips
        Flip points of rows of X. Those to all classes, where there are any, are all taken into account.
    uncertainty
        A radius in the norm of the flips; or a standard deviation for each feature, (n,), of errors that are normal and
        independent. The probability of a change is then that of the plane which touches the boundary at the flip, the
        first-order reliability method's. It is best for flips found with ``weights=1 / uncertainty**2``, whose distance
        is the reliability index.
    X, net
        The inputs (rows, n_inputs) and the classifier; only standard deviations need them.
    level
        Probability from which a decision counts as ambiguous.
    """
    if np.ndim(uncertainty) == 0:
        radius = as_number(uncertainty, "uncertainty", least=0.0)
        rows = int(flips.row.max(initial=-1)) + 1 if isinstance(flips, FlipTable) else 0
        found, missing = nearest(flips, rows, "flips")
        none = np.full(len(found), np.nan)
        return Ambiguity(
            found.row, found.classes, found.distance, none, none, found.distance <= radius, np.nan, radius, missing
        )
    if X is None or net is None:
        raise InputError("X, net: expected the inputs and the network with standard deviations, found none")
    net = as_network(net, X, many=True)
    points, sd = as_inputs(X, net), _deviations(uncertainty, net.n_inputs)
    every = on_boundary(flips, len(points), "X")
    index = _index(net, every, points, sd)
    order = np.lexsort((index, every.row))
    first = order[np.unique(every.row[order], return_index=True)[1]]
    found, index = every[first], index[first]
    probability, level = special.ndtr(-index), as_number(level, "level", least=0.0)
    missing = len(np.unique(flips.row)) - len(found)
    return Ambiguity(
        found.row, found.classes, found.distance, index, probability, probability >= level, level, np.nan, missing
    )


def _index(net: Network, flips: FlipTable, X: Array, sd: Array) -> Array:
    """g . (x - x_hat) / |g sd| with the normal g = grad(y_i - y_j) at the flip, (entries,)."""
    if len(flips) == 0:
        return np.empty(0)
    rows, (i, j) = np.arange(len(flips)), flips.classes.T
    V = np.zeros((len(flips), net.n_classes))
    V[rows, i], V[rows, j] = 1.0, -1.0
    G = in_float64(net).vjp(flips.x, V)
    ahead, spread = (G * (X[flips.row] - flips.x)).sum(axis=1), np.linalg.norm(G * sd, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Features that are known exactly leave the decision as it is; without a gradient nothing is known.
        return np.where(spread > 0, ahead / spread, np.where((G != 0).any(axis=1), np.inf, np.nan))


def _deviations(uncertainty: ArrayLike, n: int) -> Array:
    array = as_floats(uncertainty, "uncertainty").astype(np.float64)
    if array.shape != (n,) or (array < 0).any():
        raise InputError(
            f"uncertainty: expected a radius, or {n} standard deviations >= 0, found shape {array.shape} and least "
            f"{array.min(initial=np.inf):g}"
        )
    return array
