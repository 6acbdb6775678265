"""Minimising the loss of an adversarial label in a ball, beside the closest flip (001, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats, as_number, as_whole
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.explain.geometry import angles, changes
from flipopt.explain.matching import as_inputs, counted, left_out, nearest, percent
from flipopt.flips.many import closest_flip_points
from flipopt.networks.protocol import Network
from flipopt.networks.softmax import softmax
from flipopt.networks.wrapping import as_network
from flipopt.paths.taylor import first_change
from flipopt.problem import Setting
from flipopt.results import FlipTable
from flipopt.runs.threads import blocks

ROWS = 1024
"""Inputs that are attacked together, so that memory stays flat."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Adversarial(Table):
    """Points of least loss for another label in a ball around each input, beside its closest flip.

    Attributes
    ----------
    row, classes
        Index into X, (rows,); the predicted class and the adversarial one, (rows, 2).
    x
        The adversarial points, (rows, n_inputs).
    radius, distance
        Of the ball, and of the point, (rows,).
    success
        Whether the predicted class is another there, (rows,) bool.
    crossing
        Distance of the first change of class on the line to the point, (rows,); NaN if there is none.
    flip_distance
        Of the closest flip, (rows,): the smallest radius for which there is anything to find.
    angle
        Between the directions to the point and to the closest flip, in degrees, (rows,).
    feasible
        Whether the ball reaches the closest flip, (rows,) bool.
    without_flip
        Rows that were left out because no flip is known.
    """

    row: Array
    classes: Array
    x: Array
    radius: Array
    distance: Array
    success: Array
    crossing: Array
    flip_distance: Array
    angle: Array
    feasible: Array
    without_flip: int = 0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name != "without_flip")

    @property
    def best_radius(self) -> Array:
        """The radius at which an attack would find the closest flip, and below which it finds none: its distance."""
        return self.flip_distance

    def radii(self, quantiles: Sequence[float] = QUANTILES) -> Array:
        """Quantiles of the best radius over the rows."""
        if len(self) == 0:
            return np.full(len(quantiles), np.nan)
        return np.asarray(np.quantile(self.flip_distance, quantiles))

    def summary(self) -> str:
        """In plain words."""
        if len(self) == 0:
            return f"No flips: which radius is right cannot be said.{left_out(self.without_flip)}"
        radii = np.unique(self.radius)
        which = f"A radius of {radii[0]:g} is" if len(radii) == 1 else "The radii given are"
        never = percent(float(1 - self.feasible.mean()))
        large = percent(float((self.radius > 2 * self.flip_distance).mean()))
        low, high = self.radii((0.05, 0.95))
        return (
            f"{which} infeasible for {never} of {counted(len(self), 'input')} and more than twice too large for "
            f"{large}; for nine in ten the right one is between {low:.3g} and {high:.3g}."
            f"{self._points()}{left_out(self.without_flip)}"
        )

    def _points(self) -> str:
        """A sentence on the points that flip."""
        some = self.success
        if not some.any():
            return " Not one of the points of least loss flips."
        far, first = (float(np.nanmedian(d[some] / self.flip_distance[some])) for d in (self.distance, self.crossing))
        return (
            f" {int(some.sum())} of {int(self.feasible.sum())} feasible attacks flip, at {far:.3g} times the distance "
            f"of the closest flip (median), having crossed a boundary at {first:.3g} times, and at an angle of "
            f"{np.nanmedian(self.angle[some]):.0f} degrees."
        )

    def __str__(self) -> str:
        return self.summary()


def adversarial(
    net: Network,
    X: ArrayLike,
    radius: float | ArrayLike = 0.5,
    targets: Literal["nearest"] | ArrayLike = "nearest",
    steps: int = 100,
    flips: FlipTable | None = None,
    bounds: tuple[ArrayLike | None, ArrayLike | None] | None = None,
) -> Adversarial:
    """The point of least loss for an adversarial label in a ball around each input, and the closest flip.

    Projected gradient descent in the 2-norm from x, with steps of length 2.5 radius / steps along the gradient, as in
    A. Ilyas et al., Adversarial examples are not bugs, they are features (2019). Of all steps that of least loss is
    kept.

    Parameters
    ----------
    net, X
        The classifier and inputs, (rows, n_inputs).
    radius
        Of the balls: one for all, or one a row.
    targets
        The adversarial label: "nearest" for the class of the closest flip, or a class for each row.
    steps
        Gradient steps; all rows go to the network together.
    flips
        Closest flips of rows of X in the 2-norm and within the bounds; found here if they are not given.
    bounds
        Lower and upper bounds of allowed points.
    """
    net = as_network(net, X, many=True)
    points = as_inputs(X, net)
    setting, steps = Setting.of(net, bounds=bounds), as_whole(steps, "steps", least=1)
    radii = _radii(radius, len(points))
    if flips is None:
        flips = closest_flip_points(net, points, targets=targets, bounds=bounds)
    elif not isinstance(targets, str):
        flips = _towards(flips, targets, len(points))
    found, missing = nearest(flips, len(points), "X")
    ways, start, balls = changes(found, points), points[found.row], radii[found.row]
    x = [
        _least_loss(setting, start[part], found.classes[part, 1], balls[part], steps)
        for part in blocks(len(start), most=ROWS)
    ]
    return _compared(setting.network, found, start, np.concatenate(x), ways, balls, missing)


def _compared(
    network: Network, flips: FlipTable, X: Array, x: Array, ways: Array, radii: Array, missing: int
) -> Adversarial:
    """The table: adversarial points x of the inputs X, which are closest flips away by ``ways``."""
    D = x - X
    distance = np.linalg.norm(D, axis=1)
    first = np.minimum(flips.distance, distance) / 2  # nothing flips before the closest flip
    unit = D / np.where(distance > 0, distance, 1.0)[:, None]
    crossing, _ = first_change(network, X, unit, first, distance)
    after = network.logits(x).argmax(axis=1) if len(x) else np.empty(0, dtype=np.int64)
    return Adversarial(
        flips.row,
        flips.classes,
        x,
        radii,
        distance,
        after != flips.classes[:, 0],
        crossing,
        flips.distance,
        angles(D, ways),
        radii >= flips.distance,
        missing,
    )


def _least_loss(setting: Setting, X: Array, j: Array, radii: Array, steps: int) -> Array:
    """Points (rows, n_inputs) of least cross-entropy of the labels j (rows,) in balls around X and the bounds."""
    rows, x, best, least = np.arange(len(X)), X.copy(), X.copy(), np.full(len(X), np.inf)
    if len(X) == 0:
        return best
    length = 2.5 * radii / steps
    for k in range(steps + 1):
        Y, pullback = setting.network.linearize(x)
        top = Y.max(axis=1, keepdims=True)
        loss = np.log(np.exp(Y - top).sum(axis=1)) + top[:, 0] - Y[rows, j]
        better = loss < least
        best[better], least[better] = x[better], loss[better]
        if k == steps:
            break
        V = softmax(Y)
        V[rows, j] -= 1
        G = pullback(V)
        slope = np.linalg.norm(G, axis=1)
        x = x - (length / np.where(slope > 0, slope, 1.0))[:, None] * G
        x = setting.clip(_into_balls(x, X, radii), X)  # towards the bounds is no way out of the ball
    return best


def _into_balls(x: Array, X: Array, radii: Array) -> Array:
    D = x - X
    distance = np.linalg.norm(D, axis=1)
    shrink = np.minimum(1.0, radii / np.where(distance > 0, distance, 1.0))
    return np.asarray(np.where((shrink < 1)[:, None], X + shrink[:, None] * D, x))


def _radii(radius: Any, rows: int) -> Array:
    if np.ndim(radius) == 0:
        return np.full(rows, as_number(radius, "radius", least=0.0))
    array = as_floats(radius, "radius").astype(np.float64)
    if array.shape != (rows,) or (array < 0).any():
        raise InputError(f"radius: expected a number >= 0 or {rows} of them, found shape {array.shape}")
    return array


def _towards(flips: FlipTable, targets: Any, rows: int) -> FlipTable:
    """The flips to the class that is asked for in each row."""
    classes = np.asarray(targets)
    if classes.shape != (rows,) or classes.dtype.kind not in "iu":
        raise InputError(f"targets: expected 'nearest' or {rows} classes, one a row, found shape {classes.shape}")
    nearest(flips, rows, "X")  # which checks the rows
    return flips[flips.classes[:, 1] == classes[flips.row]]
