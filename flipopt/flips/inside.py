"""Points just past the boundary, where the network says the other class.

At a flip point two classes tie, so that the network itself gives the other one about every second time. A point that
can be used, ``valid``, is inside the other class: from the flip point the shortest way to where the other class leads
by a little, doubled until the network agrees, in its own precision as well, whatever order it adds numbers up in.
Bounds, frozen features and linear constraints hold on that way as they do at the flip point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.protocol import Network
from flipopt.problem import FlipBatch, Setting
from flipopt.results import FlipResult, Status
from flipopt.verification import ON_BOUNDARY, STATIONARY, verify

ROUNDING = 32
"""Units in the last place of the largest logit, or of the largest term of its sum where that is known, by which the
other class must lead: sums taken in another order do not undo it."""
LARGEST = 1.0
"""Lead that is tried at most, in logits."""
NEWTON = 3
"""Steps to where a lead is reached: the way is so short that the boundary is all but flat."""
LAST = 2e-16
"""A unit in the last place of a sum, relative to the sum of the sizes."""
NOT_INSIDE = "a flip point, but near it the network puts no allowed point in the other class"
WATCHED = 1e-2
"""A third class has a say if its lead is below this, relative to the largest logit."""


def lead_of(valid: bool | float) -> float:
    """By how many logits the other class must lead where it must have the probability ``valid``; 0 if it is a bool.

    Of two classes' probabilities z_j / (z_j + z_k) >= p is y_j - y_k >= log(p / (1 - p)).
    """
    if isinstance(valid, bool | np.bool_):
        return 0.0
    if not isinstance(valid, int | float | np.floating) or not 0.5 <= valid < 1:
        raise InputError(f"valid: expected True, False or a probability from 0.5 to below 1, found {valid!r}")
    return float(np.log(valid / (1 - valid)))


def onto(batch: FlipBatch, X_hat: Array, steps: int) -> Array:
    """From X_hat (problems, n_inputs) the shortest ways to where goals, bounds and linear constraints hold."""
    from flipopt.solvers.batch.linearization import Linearizer

    if len(batch) == 0:
        return X_hat
    linearizer = Linearizer(batch, WATCHED)
    u = linearizer.inside(linearizer.scale * X_hat)
    for _ in range(steps):
        u = linearizer.inside(u + linearizer.at(batch, u).normal)
    return settled(batch, batch.clip(u / linearizer.scale))


def settled(batch: FlipBatch, X_hat: Array) -> Array:
    """X_hat (problems, n_inputs), at which linear constraints nearly hold, moved so that they do to the last digit."""
    if not (len(batch.setting.linear.bound) and len(X_hat)):
        return X_hat
    return np.stack([_settled(batch.setting, x_hat, x) for x_hat, x in zip(X_hat, batch.X, strict=True)])


def _settled(setting: Setting, x_hat: Array, x: Array) -> Array:
    """One of them: rows that are violated, or all but, are put inside by a few units in the last place."""
    rows, root = setting.linear, np.sqrt(setting.weights)
    for _ in range(NEWTON):
        spare = rows.A @ x_hat - rows.bound
        pad = np.where(rows.equations, 0.0, LAST * (np.abs(rows.A) @ np.abs(x_hat) + np.abs(rows.bound)))
        held = np.flatnonzero(rows.equations | (spare < 2 * pad))
        if not (np.where(rows.equations, np.abs(spare), -spare) > 0)[held].any():
            break
        moving = ~setting.frozen & (x_hat > setting.lower) & (x_hat < setting.upper)
        step = np.linalg.lstsq(np.where(moving, rows.A[held] / root, 0.0), (pad - spare)[held], rcond=None)[0]
        x_hat = setting.clip(x_hat + step / root, x)
    return x_hat


def agrees(network: Network, X: Array, j: Array, beyond: float = 0.0) -> Array:
    """Whether the network puts X (points, n_inputs) in the classes j (points,), by the lead ``beyond``, for certain.

    It must do so at X and at X rounded to its own precision.
    """
    sure = np.ones(len(X), dtype=bool)
    kinds: Any = {np.dtype(np.float64), np.dtype(network.dtype)}
    for points in (X.astype(kind) for kind in kinds):
        Y = _logits(network, points)
        rows = np.arange(len(Y))
        size = np.maximum(1.0, np.abs(Y).max(axis=1))
        if hasattr(network, "term_sizes"):  # of the terms that the logits are sums of
            size = np.maximum(size, network.term_sizes(points))
        other = np.where(np.arange(Y.shape[1]) == j[:, None], -np.inf, Y).max(axis=1)
        rounding = ROUNDING * np.finfo(Y.dtype).eps * size
        sure &= Y[rows, j] - other >= beyond + rounding
        sure &= Y[rows, j] >= getattr(network, "winning", -np.inf) + rounding
    return sure


def _logits(network: Network, X: Array) -> Array:
    """At X (points, n_inputs); in single precision one by one, where they depend on what is computed with them."""
    if X.dtype == np.float64 or len(X) == 0:
        return network.logits(X)
    return np.stack([network.logits(x) for x in X])


def facing(batch: FlipBatch, X_hat: Array) -> FlipBatch:
    """Where j must lead by ``beyond``, the batch with the runner-up at X_hat (problems, n_inputs) in the place of i."""
    if batch.beyond == 0 or len(batch) == 0:
        return batch
    Y, j = batch.network.logits(X_hat), batch.classes[:, 1]
    others = np.where(np.arange(Y.shape[1]) == j[:, None], -np.inf, Y)
    return replace(batch, classes=np.column_stack([others.argmax(axis=1), j]))


def crossed(network: Network, batch: FlipBatch, X_hat: Array) -> tuple[Array, Array]:
    """Points past the flips X_hat (problems, n_inputs) of the batch that the network puts in their classes j.

    Also a mask (problems,): False where there is none within reach, and the flip point is returned.
    """
    batch = facing(batch, X_hat)
    X, j = settled(batch, X_hat.copy()), batch.classes[:, 1]
    done = agrees(network, X, j, batch.beyond)
    lead = float(np.finfo(network.dtype).eps) * ROUNDING
    while lead < LARGEST and not done.all():
        rows = np.flatnonzero(~done)
        trial = onto(replace(batch.take(rows), beyond=batch.beyond + lead), X_hat[rows], NEWTON)
        there = agrees(network, trial, j[rows], batch.beyond) & np.isfinite(trial).all(axis=1)
        X[rows[there]], done[rows[there]] = trial[there], True
        lead *= 4
    return X, done


def step_inside(network: Network, batch: FlipBatch, flip: FlipResult) -> FlipResult:
    """The result of the only problem of a batch with its point moved inside the class j."""
    if not np.isfinite(flip.distance):
        return flip
    (x,), sure = crossed(network, batch, flip.x[None])
    problem = facing(batch, x[None]).problem(0)
    check = verify(problem, x, network)
    if not sure[0] or check.constraint_violation > ON_BOUNDARY:
        status = Status.ON_BOUNDARY if flip.success else flip.status
        return replace(flip, status=status, message=NOT_INSIDE)
    return replace(flip, x=x, distance=problem.distance(x), check=check)


def corrected(network: Network, batch: FlipBatch, flip: FlipResult) -> FlipResult:
    """The result of the only problem of a batch with its linear constraints satisfied to rounding, if it can be."""
    problem, x = batch.problem(0), onto(batch, flip.x[None], 1)[0]
    check = verify(problem, x, network)
    if flip.check is None or check.constraint_violation > flip.check.constraint_violation:
        return flip
    if flip.success and not check.closest(max(flip.check.kkt_residual, STATIONARY)):
        return flip
    return replace(flip, x=x, distance=problem.distance(x), check=check)
