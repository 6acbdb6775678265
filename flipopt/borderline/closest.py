"""Closest flip points as borderline instances, and how much farther from their sources all others are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.instances import Instances, Outcome, nothing_found
from flipopt.borderline.samples import Samples, pair_generator, predictions, scored
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.explain.matching import counted
from flipopt.flips.many import closest_flip_points
from flipopt.flips.one import closest_flip_point
from flipopt.networks.points import as_points
from flipopt.networks.softmax import softmax
from flipopt.networks.wrapping import as_network
from flipopt.paths.lines import exact
from flipopt.results import Status

OUTCOMES = {Status.CONVERGED: Outcome.CLOSEST, Status.ON_BOUNDARY: Outcome.FOUND}
SAME = 1e-9
"""Relative difference of two distances that may come from rounding."""


def closest(
    net: Any,
    X: Any,
    labels: ArrayLike | None,
    s: Any,
    t: Any,
    count: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Instances:
    """The closest flip points between s and t of the samples of class s: the nearest borderline instances there are.

    Parameters
    ----------
    net, X, labels, s, t
        As in :func:`rpbs`; samples of class t are not needed.
    count
        Sources, at most; by default all. Those of :func:`epbs` with the same seed and count, or the first of them.
    seed
        Of the choice of sources.
    options
        Of :func:`flipopt.closest_flip_points`: bounds, solver, run, executor, progress and others.

    Returns
    -------
    Instances
        With the status CLOSEST where the check found a closest flip point, and FOUND where it found the point on the
        boundary alone.
    """
    return closest_of(*Samples.between(net, X, labels, s, t), count, seed, options)


def closest_of(samples: Samples, s: int, t: int, count: int | None, seed: int, options: dict[str, Any]) -> Instances:
    """As :func:`closest`, of samples that are known."""
    rows = np.sort(samples.drawn(s, t, count, pair_generator(seed, s, t)))
    return _solved(samples, rows, np.tile([s, t], (len(rows), 1)), options)


def nearest_of(instances: Instances, net: Any, X: Any, **options: Any) -> Instances:
    """The closest flip point from the source of every borderline instance, between the same two classes.

    Where the solver ends farther away than the instance itself it starts again at the instance; if that does not help,
    the instance is the nearest point known, with the status FOUND.

    Parameters
    ----------
    instances
        What was found by any method.
    net, X
        The network, and the samples (rows, n_inputs) that ``instances.row`` counts.
    options
        Of :func:`flipopt.closest_flip_points`.

    Returns
    -------
    Instances
        One record for each of ``instances``.
    """
    if {"norm", "weights"} & options.keys():
        raise InputError("options: expected no norm and no weights, as instances are compared in the 2-norm")
    samples = _samples_of(instances, net, X)
    keys = np.column_stack([instances.row, instances.classes])
    unique, place = np.unique(keys, axis=0, return_inverse=True)
    found = _solved(samples, unique[:, 0], unique[:, 1:], options).take(place.reshape(-1))
    known = instances.measured_from(samples.X)
    late = known.success & found.searched & ~(found.distance <= known.distance * (1 + SAME))
    for k in np.flatnonzero(late):
        one = known.take(slice(k, k + 1))
        found.put(np.array([k]), _restarted(samples, one, _serial(options)))
    return found


def _restarted(samples: Samples, one: Instances, options: dict[str, Any]) -> Instances:
    """The closest flip point of the source of ``one`` instance, from a start there; itself if that is no nearer."""
    x, t = samples.X[one.row[0]], int(one.classes[0, 1])
    flip = closest_flip_point(samples.network, x, t, starts=one.x, **options)
    status = OUTCOMES.get(flip.status, Outcome.NO_FLIP)
    if status.success and flip.distance <= one.distance[0]:
        return _record(samples, one, flip.x[None], status)
    return replace(one, status=np.array([Outcome.FOUND], dtype=object))


@dataclass(frozen=True, eq=False)
class Farther(Table):
    """How much farther from their sources borderline instances are than the closest flip points.

    Attributes
    ----------
    row, classes
        Of every instance that has a closest flip point, (rows,) and (rows, 2).
    distance, closest
        Of the instance and of the closest flip point from the source, (rows,).
    ratio
        distance / closest, (rows,).
    """

    row: Array
    classes: Array
    distance: Array
    closest: Array
    ratio: Array

    @property
    def median(self) -> float:
        """Of the ratios; NaN without rows."""
        return float(np.median(self.ratio)) if len(self) else np.nan

    def summary(self) -> str:
        """In plain words."""
        if len(self) == 0:
            return "No instance has a closest flip point beside it: how much farther they are cannot be said."
        low, middle, high = np.quantile(self.ratio, [0.05, 0.5, 0.95])
        return (
            f"A borderline instance is {middle:.3g} times as far from its source as the closest flip point (median of "
            f"{counted(len(self), 'instance')}; {low:.3g} to {high:.3g} for nine in ten)."
        )

    def __str__(self) -> str:
        return self.summary()


def farther(instances: Instances, nearest: Instances) -> Farther:
    """Borderline instances beside the closest flip points of the same sources.

    Parameters
    ----------
    instances
        Of any method, with the distances from their sources.
    nearest
        What :func:`closest` or :func:`nearest_of` found for rows of the same X; instances of other rows or classes are
        left out.
    """
    some, best = instances.found, nearest.found
    keys = {(int(row), int(s), int(t)): k for k, (row, (s, t)) in enumerate(zip(best.row, best.classes, strict=True))}
    place = [keys.get((int(row), int(s), int(t)), -1) for row, (s, t) in zip(some.row, some.classes, strict=True)]
    there = np.array(place, dtype=np.int64)
    some, least = some.take(there >= 0), best.distance[there[there >= 0]]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(least > 0, some.distance / least, np.where(some.distance > 0, np.inf, 1.0))
    return Farther(some.row, some.classes, some.distance, least, ratio)


def _solved(samples: Samples, rows: Array, classes: Array, options: dict[str, Any]) -> Instances:
    """The closest flip points of rows of the samples between their classes, (rows, 2)."""
    predicted = samples.predicted[rows]
    status = np.full(len(rows), Outcome.NO_FLIP, dtype=object)
    status[predicted != classes[:, 0]] = Outcome.NOT_S
    status[predicted < 0] = Outcome.NOT_FINITE
    found = nothing_found(rows, np.full(len(rows), -1), classes, status, samples.network.n_inputs)
    asked = np.flatnonzero(status == Outcome.NO_FLIP)
    if len(asked) == 0:
        return found
    flips = closest_flip_points(samples.network, samples.X[rows[asked]], targets=classes[asked, 1], **options)
    ended = np.array([OUTCOMES.get(state, Outcome.NO_FLIP) for state in flips.status], dtype=object)
    some = np.array([outcome.success for outcome in ended], dtype=bool) & (flips.classes == classes[asked]).all(axis=1)
    kept = asked[some]
    found.put(kept, _record(samples, found.take(kept), flips.x[some], ended[some]))
    found.evaluations[asked] = flips.evaluations
    return found


def _record(samples: Samples, of: Instances, x: Array, status: Any) -> Instances:
    """The instances ``of`` with points on the boundary, (pairs, n_inputs)."""
    z = softmax(scored(exact(samples.network), x))
    k = np.arange(len(x))
    gap = np.abs(z[k, of.classes[:, 0]] - z[k, of.classes[:, 1]])
    distance = np.linalg.norm(x - samples.X[of.row], axis=1)
    alone, none = np.full(len(x), -1), np.full(len(x), np.nan)
    status = np.broadcast_to(np.asarray(status, dtype=object), (len(x),))
    return replace(of, partner=alone, x=x, alpha=none, distance=distance, gap=gap, status=status, third=alone)


def _samples_of(instances: Instances, net: Any, X: Any) -> Samples:
    """The sources of instances among X."""
    network = as_network(net, X, many=True)
    points = np.atleast_2d(as_points(X, network, "X", finite=False))
    if instances.row.max(initial=-1) >= len(points):
        raise InputError(
            f"X: expected all {instances.row.max() + 1} rows that the instances are of, found {len(points)}"
        )
    if instances.classes.max(initial=-1) >= network.n_classes:
        raise InputError(f"net: expected a network of the instances' classes, found one of {network.n_classes} classes")
    predicted = predictions(network, points, np.unique(instances.row))
    return Samples(network, points, predicted, predicted)


def _serial(options: dict[str, Any]) -> dict[str, Any]:
    """The options that a single flip has too."""
    return {name: value for name, value in options.items() if name not in ("progress", "run", "executor", "starts")}
