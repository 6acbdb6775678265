"""What the paper compares with: balls of equal volume around a query or a mean, and controls (003, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, lgamma, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_rows, as_whole, one_of
from flipopt.common.errors import InputError
from flipopt.generative.exploration import Exploration
from flipopt.generative.regions import Region

BLOCK = 4096
"""Points that rejection draws at once."""


def epsilon_2(centre: ArrayLike, rejected: ArrayLike) -> float:
    """epsilon_L2 of section 4: the mean of the least and the largest distance of rejected points (r, d) from a centre
    (d,)."""
    point = np.asarray(centre, dtype=np.float64)
    points = np.atleast_2d(as_rows(rejected, len(point), "rejected"))
    if len(points) == 0:
        raise InputError("rejected: expected at least one point, found none: the region was not left")
    distances = np.linalg.norm(points - point, axis=1)
    return float((distances.min() + distances.max()) / 2)


def epsilon_inf(epsilon: float, d: int) -> float:
    """Half the side of the cube in d dimensions that has the volume of the ball of radius ``epsilon``.

    The ball's volume is pi^(d/2) epsilon^d / Gamma(d/2 + 1), the cube's (2 epsilon_inf)^d.
    """
    as_whole(d, "d", least=1)
    return as_number(epsilon, "epsilon", least=0.0) * sqrt(pi) / 2 * exp(-lgamma(d / 2 + 1) / d)


def in_ball(centre: ArrayLike, radius: float, count: int, norm: str = "2", seed: int = 0) -> Array:
    """Points uniform in the ball of the 2-norm ("2") or of the infinity norm ("inf") around a centre, (count, d)."""
    point = np.asarray(centre, dtype=np.float64)
    one_of(norm, ("2", "inf"), "norm")
    rng, radius = np.random.default_rng(seed), as_number(radius, "radius", least=0.0)
    if norm == "inf":
        return np.asarray(point + radius * rng.uniform(-1, 1, (count, len(point))))
    share = rng.random((count, 1)) ** (1 / len(point))
    return np.asarray(point + radius * share * _directions(rng, count, len(point)))


def at_radii(centre: ArrayLike, radii: ArrayLike, seed: int = 0) -> Array:
    """A point in a random direction at each of the distances ``radii`` (count,) from a centre, (count, d)."""
    point, lengths = np.asarray(centre, dtype=np.float64), np.asarray(radii, dtype=np.float64)
    return np.asarray(point + lengths[:, None] * _directions(np.random.default_rng(seed), len(lengths), len(point)))


def _directions(rng: np.random.Generator, count: int, d: int) -> Array:
    U = rng.standard_normal((count, d))
    return np.asarray(U / np.linalg.norm(U, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Baselines:
    """Samples to compare with those of GB-RRT.

    Attributes
    ----------
    region
        The region that was explored.
    points
        By name, (count, d) each: "e-gbas", samples of the exploration; "l2" and "linf", the paper's balls of equal
        volume; "matched", points at the distances of the samples from the centre, in random directions. Equal volume is
        not equal size: in 100 dimensions the cube's points are 1.16 times as far out as the ball's. So what "matched"
        has in common with the samples is the size, and what the samples have beyond it is the region.
    centre
        Around which, (d,).
    epsilon_2, epsilon_inf
        The two radii.
    """

    region: Region = field(repr=False)
    points: dict[str, Array] = field(repr=False)
    centre: Array = field(repr=False)
    epsilon_2: float
    epsilon_inf: float


def baselines(exploration: Exploration, count: int = 1000, centre: str = "mean", seed: int = 0) -> Baselines:
    """The paper's baselines for an exploration, and a control of equal size.

    Parameters
    ----------
    exploration
        What :func:`explore` has found; it must have left the region at least once.
    count
        Points of each, at most as many as there are samples of the region.
    centre
        "mean" of the samples or the "query": the paper says both.
    seed
        Of the points, and of the choice among the samples.
    """
    one_of(centre, ("mean", "query"), "centre")
    samples, rng = exploration.accepted, np.random.default_rng(as_whole(seed, "seed"))
    middle = samples.mean(axis=0) if centre == "mean" else exploration.region.query
    radius = epsilon_2(middle, exploration.rejected)
    side = epsilon_inf(radius, len(middle))
    few = samples[np.sort(rng.permutation(len(samples))[: as_whole(count, "count", least=1)])]
    points = {
        "e-gbas": few,
        "l2": in_ball(middle, radius, len(few), "2", seed),
        "linf": in_ball(middle, side, len(few), "inf", seed),
        "matched": at_radii(middle, np.linalg.norm(few - middle, axis=1), seed),
    }
    return Baselines(exploration.region, points, middle, radius, side)


@dataclass(frozen=True, eq=False)
class Rejection:
    """Points of a region among random ones.

    Attributes
    ----------
    points
        Those inside, (found, d).
    drawn
        How many were drawn.
    """

    points: Array = field(repr=False)
    drawn: int

    @property
    def share(self) -> float:
        """Of the points drawn that are inside."""
        return len(self.points) / self.drawn


def rejection(
    region: Region, count: int = 100, interval: float | None = None, most: int = 100_000, seed: int = 0
) -> Rejection:
    """Independent points of a region by rejection: from the prior N(0, I), or from the box query +- ``interval``.

    It ends with ``count`` points inside or when ``most`` were drawn, which in many dimensions comes first.
    """
    count, most = as_whole(count, "count", least=1), as_whole(most, "most", least=1)
    size = None if interval is None else as_number(interval, "interval", least=0.0)
    rng, drawn, d = np.random.default_rng(as_whole(seed, "seed")), 0, len(region.query)
    found = [np.empty((0, d))]
    while drawn < most and sum(map(len, found)) < count:
        few = min(BLOCK, most - drawn)
        Z = rng.standard_normal((few, d)) if size is None else region.query + rng.uniform(-size, size, (few, d))
        inside = np.flatnonzero(region.contains(Z))
        lacking = count - sum(map(len, found))
        drawn += few if len(inside) < lacking else int(inside[lacking - 1]) + 1
        found.append(Z[inside[:lacking]])
    return Rejection(np.concatenate(found), drawn)
