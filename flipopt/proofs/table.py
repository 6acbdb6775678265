"""What is proved, in the table of flips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.bounds import lower as lower_bounds
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.points import as_points
from flipopt.networks.wrapping import as_network
from flipopt.problem import FlipBatch, Setting
from flipopt.proofs.instance import is_piecewise_linear
from flipopt.proofs.prove import prove_many
from flipopt.results import PROVED, FlipTable, Status
from flipopt.verification import verify_batch

TOLERANCE = PROVED / 2
"""Of the proofs, and by how much a flip must be nearer to take the place of another: both fit into PROVED."""


def prove_flips(
    network: Any,
    X: ArrayLike,
    flips: FlipTable,
    seconds: float = 60.0,
    weights: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    bounds: Any = None,
    progress: bool = False,
    run: str | Path | None = None,
    executor: Any = None,
) -> FlipTable:
    """The table with ``lower_bound``, and with it ``proved``; where a nearer flip is found it takes the entry's place.

    For dense networks with ReLU or PReLU by :func:`prove_many`, and for other dense networks the bounds of
    :func:`flipopt.bounds.lower`, which prove no distance but hold.

    Parameters
    ----------
    network, X
        As in :func:`~flipopt.closest_flip_points`.
    flips
        The nearest flip of every row of X, in order, in the 2-norm and without constraints.
    seconds
        Time limit of a row, where there is a search.
    weights, frozen, bounds
        Those of the flips.
    progress, run, executor
        As in :func:`prove_many`.
    """
    net = as_network(network, X, many=True)
    rows = np.atleast_2d(as_points(X, net, "X", finite=False)).astype(np.float64)
    if len(flips) != len(rows) or not np.array_equal(flips.row, np.arange(len(rows))):
        raise InputError(f"flips: expected the nearest for each of {len(rows)} rows of X, in order, found {len(flips)}")
    if len(rows) == 0:
        return flips
    setting = Setting.of(net, bounds=bounds, weights=weights, frozen=frozen)
    known = np.isfinite(flips.x).all(axis=1)
    if not np.array_equal(np.clip(flips.x, setting.lower, setting.upper)[known], flips.x[known]):
        raise InputError("flips: expected points within the bounds, found others")
    known &= np.isfinite(flips.distance)
    _require_distances(setting, rows[known], flips.x[known], flips.distance[known])
    if not is_piecewise_linear(net):
        stretch = np.sqrt(setting.weights[~setting.frozen].min(initial=np.inf))
        return _with_bounds(flips, stretch * lower_bounds(net, rows))
    proofs = prove_many(
        net, rows, flips, TOLERANCE, seconds, weights, frozen, bounds, progress=progress, run=run, executor=executor
    )
    nearer = np.isfinite(proofs.upper) & ~(proofs.upper >= flips.distance * (1 - TOLERANCE))
    return _replaced(setting, rows, _with_bounds(flips, proofs.lower), np.flatnonzero(nearer), proofs.classes, proofs.x)


def _require_distances(setting: Setting, X: Array, points: Array, distance: Array) -> None:
    """Raise if the flips are not of this problem: other weights, or frozen features that have changed."""
    change = points - X
    length = np.sqrt((setting.weights * change**2).sum(axis=1))
    other = ~np.isclose(length, distance, rtol=TOLERANCE, atol=0.0) | (change[:, setting.frozen] != 0).any(axis=1)
    if other.any():
        k = int(other.argmax())
        raise InputError(
            f"flips: expected flips with these weights and frozen features, found one at a distance of "
            f"{distance[k]:.6g} which has {length[k]:.6g} here or changes a frozen feature"
        )


def _with_bounds(flips: FlipTable, lower: Array) -> FlipTable:
    results = tuple(
        replace(result, lower_bound=float(bound)) for result, bound in zip(flips.results, lower, strict=False)
    )
    return replace(flips, lower_bound=lower, results=results)


def _replaced(setting: Setting, X: Array, flips: FlipTable, rows: Array, classes: Array, points: Array) -> FlipTable:
    """The table with other points in some rows, as far as the check finds them on the boundary. They have no result of
    their own, so then the table has none."""
    if len(rows) == 0:
        return flips
    assert isinstance(setting.network, DenseNetwork)
    setting = replace(setting, network=setting.network.in_float64)
    found = verify_batch(FlipBatch(setting, X[rows], classes[rows]), points[rows])
    on, closest = found.on_boundary, found.closest()
    part = replace(
        flips.take(rows),
        classes=classes[rows],
        x=points[rows],
        distance=np.sqrt((setting.weights * (points[rows] - X[rows]) ** 2).sum(axis=1)),
        status=np.array([Status.CONVERGED if yes else Status.ON_BOUNDARY for yes in closest], dtype=object),
        kkt_residual=found.kkt_residual,
        boundary_gap=found.boundary_gap,
        message=np.array(["found by branch and bound"] * len(rows), dtype=object),
        solver=np.array(["proofs"] * len(rows), dtype=object),
    )
    table = replace(flips.take(np.arange(len(flips))), results=())
    table.put(rows[on], part.take(on))
    return table
