"""What a step needs to know at a point of every problem: the watched rows, and the shortest way to satisfy them.

The variables are u = sqrt(w) x_hat, so that the objective is |u - sqrt(w) x|^2 whatever the weights. The row of class k
is the gradient of its lead y_i - y_k. Only the target's row and those of classes that are close get a backward pass.
The user's linear constraints have rows of their own after those of the classes, of unit length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.kernels import projections
from flipopt.networks.blocks import times
from flipopt.networks.protocol import Network, linearize_rows
from flipopt.problem import FlipBatch
from flipopt.problem.constraints import LinearRows
from flipopt.solvers.batch.options import Steps
from flipopt.verification.tolerances import ROUNDING

SLOTS = 6
"""Rows of a problem that are watched at once; ties of more classes than that are unheard of."""
ROUNDS, ENOUGH = 20, 1e-9
"""Newton steps onto the boundary, and the violation at which they end, as a distance relative to that from x."""
ACTIVE = 1e-7
"""A lead below this, as a distance relative to that from x, may have a multiplier in the KKT residual."""
NOISE = ROUNDING / 4
"""Rounding errors that the iteration does not try to mend, relative to the largest logit and to the point's length."""


@dataclass
class Linearization(Columns):
    """The problems' constraints at their points.

    Attributes
    ----------
    u, r
        The points and their difference from the inputs, (problems, n), scaled.
    violation, worst
        2-norm of the violations of all leads and linear constraints, and the largest of them as a distance, relative to
        that from x, (problems,).
    row, use, c, A
        Class of every slot, whether it is used, its lead and its gradient: (problems, slots) and (problems, slots, n).
        The first slot is the target's; the last are those of linear constraints, with -1, -2, ... for a class and what
        they have to spare for a lead. Gradients are zero in features that are held at a bound.
    normal
        The shortest step to where the linearised constraints hold, (problems, n).
    residual
        Sine of the angle between r and the cone of active rows: the KKT residual, (problems,).
    moving
        Features that no bound holds, (problems, n).
    """

    u: Array
    r: Array
    violation: Array
    worst: Array
    row: Array
    use: Array
    c: Array
    A: Array
    normal: Array
    residual: Array
    moving: Array

    @property
    def classes(self) -> Array:
        """Which slots are used by a class, (problems, slots)."""
        return np.asarray(self.use & (self.row >= 0))

    @property
    def projected(self) -> Array:
        """F = |r + normal|^2 / 2, (problems,): the objective that the nearest point of the boundary would have."""
        return np.asarray(((self.r + self.normal) ** 2).sum(axis=1) / 2)


class Linearizer:
    """Evaluates a batch of problems at points, through their network or through one that resembles it.

    A class is watched if its lead is below ``watched``, relative to the largest logit.
    """

    def __init__(self, batch: FlipBatch, watched: float, network: Network | None = None) -> None:
        setting = batch.setting
        self.network = batch.network if network is None else network
        self.watched = watched
        self.scale = np.sqrt(setting.weights)
        self.free = ~setting.frozen
        self.lower, self.upper = self.scale * setting.lower, self.scale * setting.upper
        self.bounded = setting.bounded
        self.slots = min(SLOTS, batch.network.n_classes - 1) if batch.others else 1
        self.linear, self.bound, equations = _unit_rows(setting.linear, self.free / self.scale)
        self.equations = np.concatenate([np.arange(self.slots) == 0, equations])

    def at(
        self, batch: FlipBatch, u: Array, watched: Array | None = None, distinct: Array | None = None
    ) -> Linearization:
        """The linearisation of ``batch`` at u (problems, n), with the classes in the mask ``watched`` in any case.

        With ``distinct`` (problems,), a mask, the others are where the one before them is.
        """
        own = np.arange(len(u)) if distinct is None else np.cumsum(distinct) - 1
        Y, pullback = linearize_rows(self.network, (u if distinct is None else u[distinct]) / self.scale)
        Y = Y if distinct is None else Y[own]
        leads, size = batch.leads(Y), np.abs(Y).max(axis=1)
        row, use = self._watch(batch, leads, size, watched)
        points, slot = np.nonzero(use)
        V = np.zeros((len(points), Y.shape[1]))
        each = np.arange(len(points))
        V[each, batch.classes[points, 0]] = 1.0
        V[each, row[points, slot]] = -1.0
        A = np.zeros((*row.shape, u.shape[1]))
        A[points, slot] = pullback(V, own[points]) * (self.free / self.scale)
        c = np.where(use, np.take_along_axis(leads, row, axis=1), 0.0)
        below = np.minimum(leads, 0.0)
        target = np.arange(len(u)), batch.classes[:, 1]
        below[target] = leads[target]
        rest = np.abs(below)
        np.put_along_axis(rest, row, 0.0, axis=1)  # classes without a slot count with the target
        if len(self.linear):
            row, use, c, A, below = self._with_linear(u, row, use, c, A, below)
        r = u - self.scale * batch.X
        length, far = np.linalg.norm(A, axis=2), np.linalg.norm(r, axis=1)
        off = np.where(use, np.where(self.equations, np.abs(c), -c), 0.0)
        off[:, 0] = np.maximum(off[:, 0], rest.max(axis=1))
        worst = self._worst(off, length, size, far + NOISE / ENOUGH * np.linalg.norm(u, axis=1))
        left, moving = self._projected(u, r, A, use & ((c <= ACTIVE * length * far[:, None]) | self.equations))
        if self.bounded:
            A *= moving[:, None]
        return Linearization(
            u=u,
            r=r,
            violation=np.linalg.norm(below, axis=1),
            worst=worst,
            row=row,
            use=use,
            c=c,
            A=A,
            normal=self._normal(u, A, c, use, moving),
            residual=np.linalg.norm(left, axis=1) / np.maximum(far, 1e-300),
            moving=moving,
        )

    def _with_linear(
        self, u: Array, row: Array, use: Array, c: Array, A: Array, below: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Slots of the linear constraints put after those of the classes, and their violations after those of leads."""
        m = len(self.linear)
        spare = times(u / self.scale, self.linear.T) - self.bound
        own = np.broadcast_to(-1 - np.arange(m), spare.shape)
        rows = np.broadcast_to(self.linear * (self.free / self.scale), (len(u), m, u.shape[1]))
        return (
            np.concatenate([row, own], axis=1),
            np.concatenate([use, np.ones(spare.shape, dtype=bool)], axis=1),
            np.concatenate([c, spare], axis=1),
            np.concatenate([A, rows], axis=1),
            np.concatenate([below, np.where(self.equations[-m:], spare, np.minimum(spare, 0.0))], axis=1),
        )

    def _worst(self, off: Array, length: Array, size: Array, far: Array) -> Array:
        """The largest of the violations ``off`` over what a step of the length ``far`` would change, (problems,).

        They and the ``length`` of the rows' gradients are (problems, slots).
        """
        noise = np.where(np.arange(off.shape[1]) < self.slots, NOISE * size[:, None], 0.0)
        off = np.maximum(off - noise, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(off == 0, 0.0, off / (length * far[:, None])).max(axis=1))

    def inside(self, u: Array) -> Array:
        """u (problems, n) put within the bounds."""
        return np.clip(u, self.lower, self.upper)

    def _watch(self, batch: FlipBatch, leads: Array, size: Array, watched: Array | None) -> tuple[Array, Array]:
        """Classes of the slots, the target first and then by their leads, and which slots are used."""
        close = leads < self.watched * size[:, None]
        order = leads.copy()
        if watched is not None:
            close |= watched
            # What has a multiplier must not lose its slot to what has a smaller lead.
            order -= np.where(watched, 4 * size[:, None], 0.0)
        order[np.arange(len(leads)), batch.classes[:, 1]] = -np.inf
        close[np.arange(len(leads)), batch.classes[:, 1]] = True
        row = np.argsort(order, axis=1, kind="stable")[:, : self.slots]
        return row, np.take_along_axis(close, row, axis=1)

    def _projected(self, u: Array, r: Array, A: Array, active: Array) -> tuple[Array, Array]:
        """What is left of r after the rows in ``active`` and the bounds, and the features that no bound holds."""
        left, moving = np.empty_like(r), np.broadcast_to(self.free, u.shape).copy()
        low, high = (u <= self.lower, u >= self.upper) if self.bounded else (moving[:0], moving[:0])
        projections.cone_distances(A, r, active, self.equations, low, high, np.empty(active.shape), moving, left)
        return left, moving

    def _normal(self, u: Array, A: Array, c: Array, use: Array, moving: Array) -> Array:
        """The shortest step to where the linearised constraints hold, within the bounds."""
        step, none = np.empty_like(u), np.empty(0)
        lower, upper = (self.lower, self.upper) if self.bounded else (none, none)
        projections.shortest_steps(A, c, use, self.equations, moving, u, lower, upper, step)
        return step


def _unit_rows(rows: LinearRows, scale: Array) -> tuple[Array, Array, Array]:
    """A, bound and equations of the rows that the variables, scaled by ``scale``, can change; they have unit length."""
    length = np.linalg.norm(rows.A * scale, axis=1)
    some = length > 0
    return rows.A[some] / length[some, None], rows.bound[some] / length[some], rows.equations[some]


def shortest_steps(steps: Steps, batch: FlipBatch, points: Array) -> tuple[Array, Array, Array]:
    """From ``points`` (problems, n_inputs) onto the boundary by Newton's method, each step the shortest one.

    Returns the points, which of them satisfy all constraints, and the forward passes that it took, (problems,).
    """
    linearizer, forward = Linearizer(batch, steps.watched), np.zeros(len(batch), dtype=np.int64)
    u, met, live = linearizer.inside(linearizer.scale * batch.clip(points)), forward > 0, np.arange(len(batch))
    for _ in range(ROUNDS):
        if len(live) == 0:
            break
        at = linearizer.at(batch.take(live), u[live])
        forward[live] += 1
        met[live] = at.worst <= ENOUGH
        going = ~met[live] & np.isfinite(at.normal).all(axis=1)
        live = live[going]
        u[live] = linearizer.inside(at.u[going] + at.normal[going])
    return batch.clip(u / linearizer.scale), met, forward
