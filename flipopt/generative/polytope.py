"""The region of an affine layer is a convex polytope: its faces, the largest ball in it, and exact chains."""

from __future__ import annotations

from functools import partial

import numpy as np

from flipopt.common.checks import Array, as_number
from flipopt.common.errors import InputError
from flipopt.generative.regions import Region
from flipopt.runs.threads import in_order

BLOCK = 64
"""Sweeps whose random numbers are drawn together."""
LEARNING = (0.25, 0.25)
"""Parts of what is dropped, as shares of the draws."""
FAR = 0.9
"""Chains start at that share of the way from the centre to the boundary, so that they are far from each other."""


def faces_of(region: Region) -> tuple[Array, Array]:
    """A (faces, d) and b (faces,) of the region { z : A z + b >= 0 } of an affine layer."""
    if region.faces is None:
        raise InputError(f"region: expected one of a layer that is affine in z, found layer {region.layer.number}")
    return region.faces


def chebyshev(A: Array, b: Array, low: Array, high: Array) -> tuple[Array, float]:
    """Centre (d,) and radius of the largest ball in { A z + b >= 0 } within the box, by linear programming (HiGHS)."""
    from scipy.optimize import linprog

    d = A.shape[1]
    every = np.concatenate([A, np.eye(d), -np.eye(d)])
    offsets = np.concatenate([b, -low, high])
    lengths = np.linalg.norm(every, axis=1)
    found = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-every, lengths]),
        b_ub=offsets,
        bounds=[*[(None, None)] * d, (0, None)],
        method="highs",
    )
    if found.status != 0:
        raise InputError(f"region: expected one with points inside, found none: {found.message}")
    return np.asarray(found.x[:d]), float(found.x[d])


def largest_ball(region: Region, interval: float = 1.0) -> tuple[Array, float]:
    """Centre (d,) and radius of the largest ball in the region of an affine layer, as far as the box query +- interval
    reaches: the room that there is, where the nearest boundary says how near the query is to its end."""
    size = as_number(interval, "interval", least=0.0)
    return chebyshev(*faces_of(region), region.query - size, region.query + size)


def exact_chains(
    A: Array, b: Array, start: Array, centre: Array, radius: float, normal: bool, shape: tuple[int, int, int], seed: int
) -> Array:
    """Chains (chains, draws, d) in { A z + b >= 0 } and the ball around ``centre``, from an inner point ``start``.

    ``shape`` is (chains, draws, sweeps from one draw to the next). Half as many draws are dropped before, in the parts
    of LEARNING: first the chains move along the axes, then along the principal axes of what all of them drew so far. Of
    a long thin polytope these are those along it and those across.
    """
    chains, draws, sweeps = shape
    rngs = [np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(chains)]
    points = [_dispersed(A, b, start, centre, radius, rng) for rng in rngs]
    d = len(start)

    def run(directions: Array, count: int, k: int) -> Array:
        return _chain((A, b), points[k], centre, radius, normal, directions, count, sweeps, rngs[k])

    directions = np.eye(d)
    for share in LEARNING:
        first = list(in_order(partial(run, directions, max(2, round(share * draws))), range(chains)))
        points = [chain[-1] for chain in first]
        later = np.concatenate([chain[len(chain) // 2 :] for chain in first])
        if len(later) > 1:
            directions = np.ascontiguousarray(np.linalg.eigh(np.cov(later.T).reshape(d, d))[1].T)
    return np.stack(list(in_order(partial(run, directions, draws), range(chains))))


def _dispersed(A: Array, b: Array, start: Array, centre: Array, radius: float, rng: np.random.Generator) -> Array:
    """A point on a random ray from ``start``, at FAR of the way to the boundary, or one away if there is none."""
    u = rng.standard_normal(len(start))
    u /= np.linalg.norm(u)
    slope, slack, offset = A @ u, A @ start + b, start - centre
    with np.errstate(divide="ignore", invalid="ignore"):
        way = np.where(slope < 0, -slack / slope, np.inf).min(initial=np.inf)
    if np.isfinite(radius):
        along = u @ offset
        way = min(way, -along + np.sqrt(max(along**2 - offset @ offset + radius**2, 0.0)))
    return np.asarray(start + FAR * (way if np.isfinite(way) else 1.0) * u)


def _chain(
    faces: tuple[Array, Array],
    start: Array,
    centre: Array,
    radius: float,
    normal: bool,
    directions: Array,
    draws: int,
    sweeps: int,
    rng: np.random.Generator,
) -> Array:
    """One chain (draws, d)."""
    from flipopt.kernels.hit_and_run import SMALLEST
    from flipopt.kernels.hit_and_run import sweeps as move

    A, b = faces
    slopes, offset = np.ascontiguousarray(directions @ A.T), start - centre
    found = np.empty((draws, len(start)))
    for draw in range(draws):
        slack = np.maximum(A @ (centre + offset) + b, SMALLEST)  # afresh, so that rounding does not add up
        for first in range(0, sweeps, BLOCK):
            uniforms = rng.random((min(BLOCK, sweeps - first), len(directions), 2))
            move(directions, slopes, slack, offset, centre, radius, normal, uniforms)
        found[draw] = centre + offset
    return found
