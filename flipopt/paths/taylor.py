"""First-order estimates of the distance to the boundary, and the boundary in their direction (001, section 5).

The estimate is that of G. Elsayed, D. Krishnan, H. Mobahi, K. Regan and S. Bengio, Large margin deep networks for
classification (2018), for the class that it says is the nearest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_targets
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network, Outputs
from flipopt.networks.softmax import softmax, softmax_vjp
from flipopt.networks.wrapping import as_network
from flipopt.problem import Setting
from flipopt.runs.threads import blocks

ROWS = 1024
"""Inputs that are looked at together, so that memory stays flat."""
NEAR, FAR, GROWTH = 1 / 8, 1e3, 1.2
"""Multiples of the estimate between which the boundary is looked for, and the ratio of neighbouring ones."""
SMALL = 1e-3
"""A step that is short beside x: where a network is saturated an estimate may be thousands of times too long."""
ENOUGH, ROUNDS = 1e-12, 100
"""Relative width of a bracket that is as good as none, and more rounds than that takes."""


@dataclass(frozen=True, eq=False)
class TaylorEstimates(Table):
    """First-order estimates, one a row, or one for every other class of it.

    Attributes
    ----------
    row, classes
        Index into X, (entries,); the predicted class i and the class k that is flipped to, (entries, 2). Both are -1
        for a row that is not finite, which has one entry without values.
    distance
        (o_i - o_k) / ||grad (o_i - o_k)|| for the outputs o, (entries,); infinite where the gradient is 0.
    direction
        Of unit length, against that gradient, (entries, n_inputs); all 0 where the gradient is.
    reached
        Distance along the direction at which another class first takes the lead, (entries,); NaN if none does up to
        1,000 times the estimate. It is looked for from an eighth of the estimate on, or a thousandth of the length of x
        if that is less, at distances that grow by a fifth: a shorter stay in another class may be missed.
    met
        That class, (entries,); -1 if there is none.
    exit
        Distance at which the direction leaves the bounds, (entries,); infinite if it does not.
    feasible
        Whether the other class is reached before that, (entries,) bool.
    """

    row: Array
    classes: Array
    distance: Array
    direction: Array
    reached: Array
    met: Array
    exit: Array
    feasible: Array

    def nearest(self) -> TaylorEstimates:
        """One entry a row: the one with the smallest estimate."""
        by_row = np.lexsort((self.distance, self.row))
        return self.take(by_row[np.unique(self.row[by_row], return_index=True)[1]])


def taylor(
    net: Network,
    X: ArrayLike,
    targets: Literal["nearest", "all"] | ArrayLike = "nearest",
    bounds: tuple[ArrayLike | None, ArrayLike | None] | None = None,
    outputs: Outputs = "logits",
) -> TaylorEstimates:
    """How far the boundary is by a linear approximation at x, and how far it is in that direction.

    Parameters
    ----------
    net, X
        The classifier and inputs, (rows, n_inputs). All rows go to the network together.
    targets
        "nearest": the class with the smallest estimate. "all": an entry for every other class. Or a class for each row.
    bounds
        Lower and upper bounds of allowed points, which ``exit`` and ``feasible`` speak of.
    outputs
        What is linearised: logits, or probabilities, which hardly change where the network is sure.
    """
    net = as_network(net, X, many=True)
    points = np.atleast_2d(as_points(X, net, "X", finite=False)).astype(np.float64)
    setting = Setting.of(net, bounds=bounds, outputs=outputs)
    wanted = _wanted(targets, len(points), net.n_classes)
    sound = np.isfinite(points).all(axis=1)
    groups = [np.flatnonzero(sound)[part] for part in blocks(int(sound.sum()), most=ROWS)]
    parts = [entry for rows in groups for entry in _estimates(setting, points[rows], rows, wanted)]
    found = TaylorEstimates.join([*parts, _unknown(np.flatnonzero(~sound), net.n_inputs)])
    return found.take(np.argsort(found.row, kind="stable"))


def first_change(network: Network, X: Array, D: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """Distances (rows,) along the unit vectors D (rows, n_inputs) at which the class first is another than at X.

    It is looked for at ``first`` (rows,) > 0 and at multiples of it by GROWTH up to ``last``, and then found to
    twelve digits by false position that halves what stays put (the Illinois rule). Returns NaN where there is none,
    and the class that is met, -1 there.
    """
    rays = _Rays(network, X, D)
    low, high, met = rays.bracket(first, last)
    found = np.flatnonzero(met >= 0)
    distance = np.full(len(X), np.nan)
    distance[found] = rays.zero(found, low[found], high[found])
    if len(found):
        met[found] = rays.look(found, distance[found])[1]
    return distance, met


class _Rays:
    """x + t d, and by how much the class at x leads all others there."""

    def __init__(self, network: Network, X: Array, D: Array) -> None:
        self.network, self.X, self.D = network, X, D
        self.i = network.logits(X).argmax(axis=1) if len(X) else np.empty(0, dtype=np.int64)

    def look(self, rows: Array, t: Array) -> tuple[Array, Array]:
        """The lead of the rays ``rows`` (k,) at t (k,), and the class that comes closest to it or is ahead."""
        Y = self.network.logits(self.X[rows] + t[:, None] * self.D[rows])
        k = np.arange(len(rows))
        own = Y[k, self.i[rows]]
        Y[k, self.i[rows]] = -np.inf
        other = Y.argmax(axis=1)
        return own - Y[k, other], other

    def bracket(self, first: Array, last: Array) -> tuple[Array, Array, Array]:
        """t on this side of the change and beyond, with the leads there, (rows, 2) each; the class met, -1 if none."""
        count = len(self.X)
        low, high, met = np.full((count, 2), np.nan), np.full((count, 2), np.nan), np.full(count, -1)
        live = np.flatnonzero(np.isfinite(first) & (first > 0) & (last > 0))
        low[live, 0], t = 0.0, np.minimum(first, last)
        low[live, 1] = self.look(live, low[live, 0])[0]
        while len(live):
            lead, other = self.look(live, t[live])
            beyond = ~(lead > 0) & np.isfinite(lead)
            high[live[beyond]] = np.column_stack([t[live], lead])[beyond]
            met[live[beyond]] = other[beyond]
            low[live[~beyond]] = np.column_stack([t[live], lead])[~beyond]
            live = live[~beyond & (t[live] < last[live]) & np.isfinite(lead)]
            t[live] = np.minimum(GROWTH * t[live], last[live])
        return low, high, met

    def zero(self, rows: Array, low: Array, high: Array) -> Array:
        """t where the lead is 0, between ``low`` and ``high`` (k, 2) with their leads."""
        (a, fa), (b, fb) = low.T.copy(), high.T.copy()
        live = np.arange(len(rows))
        for k in range(ROUNDS):
            live = live[(b[live] - a[live] > ENOUGH * b[live]) & (fb[live] < 0)]
            if len(live) == 0:
                break
            A, FA, B, FB = a[live], fa[live], b[live], fb[live]
            secant, middle = B - FB * (B - A) / (FB - FA), (A + B) / 2
            inside = (secant > A) & (secant < B) & (k % 4 < 3)  # every fourth halves the interval whatever happens
            c = np.where(inside, secant, middle)
            fc = self.look(rows[live], c)[0]
            left = fc > 0
            a[live], b[live] = np.where(left, c, A), np.where(left, B, c)
            fa[live], fb[live] = np.where(left, fc, FA / 2), np.where(left, FB / 2, fc)
        return np.asarray(b)


def _wanted(targets: Any, rows: int, n_classes: int) -> Any:
    classes = as_targets(targets, rows)
    if isinstance(classes, str):
        return classes
    if rows and not 0 <= classes.min() <= classes.max() < n_classes:
        raise InputError(f"targets: expected classes from 0 to {n_classes - 1}, found {classes.min()}..{classes.max()}")
    return classes


def _estimates(setting: Setting, X: Array, rows: Array, wanted: Any) -> Iterator[TaylorEstimates]:
    """Those of the inputs X, which are ``rows`` of all: a table, or one for every other class."""
    model = _Linear(setting, X)
    if not isinstance(wanted, str):
        yield _searched(setting, X, rows, model, wanted[rows], *model.towards(wanted[rows]))
    elif wanted == "nearest":
        yield _searched(setting, X, rows, model, *model.nearest())
    else:
        for k in range(setting.network.n_classes - 1):
            other = k + (k >= model.i)
            yield _searched(setting, X, rows, model, other, *model.towards(other))


def _searched(
    setting: Setting, X: Array, rows: Array, model: _Linear, k: Array, distance: Array, direction: Array
) -> TaylorEstimates:
    """Estimates with what is found along their directions."""
    near, far = model.scales(k, direction)
    reached, met = first_change(setting.network, X, direction, near, far)
    tied = model.tied(k)
    reached[tied], met[tied] = 0.0, k[tied]
    leaving = _exit(setting, X, direction)
    classes = np.column_stack([model.i, k])
    return TaylorEstimates(rows, classes, distance, direction, reached, met, leaving, reached <= leaving)


def _unknown(rows: Array, n: int) -> TaylorEstimates:
    """Entries of rows that are not finite."""
    none, no = np.full(len(rows), np.nan), np.zeros(len(rows), dtype=bool)
    return TaylorEstimates(rows, np.full((len(rows), 2), -1), none, np.zeros((len(rows), n)), none, -1 - no, none, no)


class _Linear:
    """The outputs near the points X (rows, n_inputs) to first order."""

    def __init__(self, setting: Setting, X: Array) -> None:
        self.X, self.outputs = X, setting.outputs
        self.Y, self.pullback = setting.network.linearize(X)
        self.i = self.Y.argmax(axis=1) if len(X) else np.empty(0, dtype=np.int64)

    def gradients(self, k: Array, outputs: Outputs) -> tuple[Array, Array]:
        """o_i - o_k (rows,) and its gradient (rows, n_inputs)."""
        rows = np.arange(len(self.Y))
        V = np.zeros(self.Y.shape)
        V[rows, self.i] += 1
        V[rows, k] -= 1
        if outputs == "logits":
            return np.asarray(self.Y[rows, self.i] - self.Y[rows, k]), self.pullback(V)
        Z = softmax(self.Y)
        return Z[rows, self.i] - Z[rows, k], self.pullback(softmax_vjp(Z, V))

    def towards(self, k: Array) -> tuple[Array, Array]:
        """Estimates (rows,) and unit directions (rows, n_inputs) of the flips to k (rows,); NaN where k is i."""
        lead, G = self.gradients(k, self.outputs)
        length = np.linalg.norm(G, axis=1)
        flat = length == 0
        with np.errstate(over="ignore"):
            distance = np.where(flat, np.where(lead == 0, 0.0, np.inf), lead / np.where(flat, 1.0, length))
        direction = np.where(flat[:, None], 0.0, -G / np.where(flat, 1.0, length)[:, None])
        return np.where(k == self.i, np.nan, distance), direction

    def nearest(self) -> tuple[Array, Array, Array]:
        """The class with the smallest estimate, the estimate and its direction."""
        best, distance = np.full(len(self.Y), -1), np.full(len(self.Y), np.inf)
        direction: Array = np.empty(0)
        for k in range(self.Y.shape[1]):
            estimate, towards = self.towards(np.full(len(self.Y), k))
            better = (estimate < distance) | ((best < 0) & (k != self.i))
            direction = towards if k == 0 else np.where(better[:, None], towards, direction)
            best, distance = np.where(better, k, best), np.where(better, estimate, distance)
        return best, distance, direction

    def scales(self, k: Array, direction: Array) -> tuple[Array, Array]:
        """Distances between which the boundary is looked for, (rows,) each; 0 where there is no direction.

        By the logits: where probabilities are saturated they show no scale.
        """
        lead, G = self.gradients(k, "logits")
        slope, size = -(G * direction).sum(axis=1), np.linalg.norm(self.X, axis=1)
        size = np.where(size > 0, size, 1.0)
        with np.errstate(over="ignore"):
            scale = np.where(slope > 0, lead / np.where(slope > 0, slope, 1.0), size)
        scale = np.where(direction.any(axis=1), np.where(np.isfinite(scale), scale, size), 0.0)
        return np.minimum(NEAR * scale, SMALL * size), FAR * scale

    def tied(self, k: Array) -> Array:
        """Which points are on the boundary already, (rows,) bool."""
        rows = np.arange(len(self.Y))
        return np.asarray((self.Y[rows, self.i] == self.Y[rows, k]) & (k != self.i))


def _exit(setting: Setting, X: Array, D: Array) -> Array:
    """Distances (rows,) along D at which points leave the bounds; 0 for points outside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        to_bound = np.where(D > 0, (setting.upper - X) / D, np.where(D < 0, (setting.lower - X) / D, np.inf))
    outside = ((setting.lower > X) | (setting.upper < X)).any(axis=1)
    return np.where(outside, 0.0, to_bound.min(axis=1, initial=np.inf)) + 0.0  # no -0
