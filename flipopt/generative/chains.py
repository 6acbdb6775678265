"""Hit-and-run in generative regions: exact in polytopes, by slices elsewhere, and whether it has mixed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_whole, one_of
from flipopt.common.errors import InputError
from flipopt.generative.diagnostics import LEAST, effective_size, split_rhat
from flipopt.generative.exploration import Exploration
from flipopt.generative.polytope import chebyshev, exact_chains, faces_of
from flipopt.generative.regions import Region

Within = Literal["box", "ball", "prior"]
MIXED = 1.05
"""R-hat up to which chains count as mixed."""
SWEEPS, MOVES = 50, 10
"""Between two points of a chain: with 50, a thousand points of a region of 400 faces in 100 dimensions are worth 400
independent ones."""
SHRINKS = 200
"""Trials of a step: the segment has then shrunk to rounding, and the chain stays where it is."""
WIDEST = 10.0
"""Sides of the box in which a ball is looked for under the prior, which hardly reaches farther."""


@dataclass(frozen=True, eq=False)
class Chains:
    """Points of a region by Markov chains.

    Attributes
    ----------
    samples
        (chains, draws, d).
    rhat
        Split R-hat of every latent number, (d,).
    ess
        Effective sample size of every latent number, (d,).
    within, radius
        What the region was cut by, as in :func:`hit_and_run`.
    polytope
        Whether the chains are those of an exact polytope.
    evaluations
        Rows that the network was evaluated for.
    region
        The region.
    """

    samples: Array = field(repr=False)
    rhat: Array = field(repr=False)
    ess: Array = field(repr=False)
    within: str
    radius: float
    polytope: bool
    evaluations: int
    region: Region = field(repr=False)

    @property
    def mixed(self) -> bool:
        """Whether R-hat is below 1.05 for every latent number. If not, the points are in the region but not spread
        over it as they should be."""
        return bool(self.rhat.max() < MIXED)

    @property
    def points(self) -> Array:
        """All samples, (chains * draws, d)."""
        return self.samples.reshape(-1, self.samples.shape[2])

    @property
    def reach(self) -> tuple[float, float]:
        """Mean and largest distance of the samples from the query."""
        distances = np.linalg.norm(self.points - self.region.query, axis=1)
        return float(distances.mean()), float(distances.max())

    def summary(self) -> str:
        """In plain words."""
        prior = self.within == "prior"
        law = "the prior's density" if prior else f"uniform within a {self.within} of {self.radius:g}"
        claim, doubt = ("have", "need not have") if prior else ("are", "need not be")
        verdict = f"mixed: the points {claim} {law}" if self.mixed else f"not mixed: the points {doubt} {law}"
        what = "exact polytope" if self.polytope else "slices"
        return (
            f"{len(self.points):,} points of {len(self.samples)} chains ({what}): R-hat at most {self.rhat.max():.3f}, "
            f"effective size at least {self.ess.min():.0f}, {verdict}. They are {self.reach[0]:.3g} from the query on "
            f"average. {self.evaluations:,} network evaluations."
        )

    def __str__(self) -> str:
        return self.summary()


def hit_and_run(
    region: Region,
    count: int = 1000,
    within: Within = "box",
    radius: float = 1.0,
    chains: int = 4,
    sweeps: int | None = None,
    starts: ArrayLike | Exploration | None = None,
    seed: int = 0,
) -> Chains:
    """Points of a region by hit-and-run: in the whole of it, where GB-RRT stays near the query.

    A region reaches to infinity as a rule, so it is cut. Of an affine layer it is a polytope, and chains from far apart
    run in compiled loops without the network. Of a deeper layer the points of a line that are inside are found by
    slices: a place on the line is drawn, and while it is outside the line is cut there, for all chains at once. Such
    chains may be in parts of the region that are not joined. R-hat and the effective size say what came of it.

    Parameters
    ----------
    region
        What :func:`region` returns.
    count
        Points, of all chains together.
    within
        "box": uniform in the region within query +- ``radius``, as targets of :func:`explore` are; "ball": uniform in
        it within ``radius`` of the query; "prior": with the density of N(0, I), which needs no radius.
    radius
        Half the side of the box, or the radius of the ball.
    chains
        How many; each has count / chains points, after others that are dropped.
    sweeps
        Between two points of a chain: of a polytope sweeps of d moves, by default 50; else moves, by default 10.
    starts
        For slices: points inside that the chains start at, such as an :class:`Exploration`, of which those that are
        farthest apart are taken; by default all start at the query, and R-hat sees less.
    seed
        Of all choices.
    """
    if not isinstance(region, Region):
        raise InputError(f"region: expected a Region, found {type(region).__name__}")
    one_of(within, ("box", "ball", "prior"), "within")
    radius = np.inf if within == "prior" else as_number(radius, "radius", least=0.0)
    chains = as_whole(chains, "chains", least=1)
    sweeps = (SWEEPS if region.affine is not None else MOVES) if sweeps is None else sweeps
    shape = (
        chains,
        -(-as_whole(count, "count", least=chains * LEAST) // chains),
        as_whole(sweeps, "sweeps", least=1),
    )
    if radius == 0:
        raise InputError("radius: expected a number > 0, found 0")
    seed = as_whole(seed, "seed")
    if region.affine is not None:
        samples, evaluations = _in_polytope(region, within, radius, shape, seed), 0
    else:
        samples, evaluations = _by_slices(
            region, within, radius, shape, _starts(region, starts, within, radius, chains), seed
        )
    return Chains(
        samples,
        split_rhat(samples),
        effective_size(samples),
        within,
        radius,
        region.affine is not None,
        evaluations,
        region,
    )


def _in_polytope(region: Region, within: str, radius: float, shape: tuple[int, int, int], seed: int) -> Array:
    A, b = faces_of(region)
    z0, d = region.query, len(region.query)
    half = {"box": radius, "ball": radius / d**0.5, "prior": WIDEST}[within]
    start, _ = chebyshev(A, b, z0 - half, z0 + half)
    if within == "box":
        A = np.concatenate([A, np.eye(d), -np.eye(d)])
        b = np.concatenate([b, radius - z0, radius + z0])
    ball = radius if within == "ball" else np.inf
    return exact_chains(A, b, start, z0, ball, within == "prior", shape, seed)


def _starts(region: Region, starts: Any, within: str, radius: float, chains: int) -> Array:
    """Points (chains, d) far from each other, or the query for each."""
    if starts is None:
        return np.repeat(region.query[None], chains, axis=0)
    given = starts.accepted if isinstance(starts, Exploration) else starts
    points = np.atleast_2d(region.generator.latents(given, "starts")).astype(np.float64)
    offsets = points - region.query
    size = np.abs(offsets).max(axis=1) if within == "box" else np.linalg.norm(offsets, axis=1)
    points = points[region.contains(points) & (size <= radius)]
    if len(points) == 0:
        raise InputError(f"starts: expected points of the region within the {within}, found none")
    chosen = [int(np.linalg.norm(points - region.query, axis=1).argmax())]
    apart = np.full(len(points), np.inf)
    while len(chosen) < chains:  # the farthest from those chosen so far; again from the beginning when they run out
        apart = np.minimum(apart, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(apart.argmax()))
    return np.asarray(points[chosen])


def _by_slices(
    region: Region, within: str, radius: float, shape: tuple[int, int, int], Z: Array, seed: int
) -> tuple[Array, int]:
    """Chains (chains, draws, d), a line in a random direction a move, and how many rows were evaluated."""
    chains, draws, moves = shape
    rng, evaluations = np.random.default_rng(seed), 0
    found = np.empty((2 * draws, chains, Z.shape[1]))
    for draw in range(2 * draws):
        for _ in range(moves):
            U = rng.standard_normal(Z.shape)
            U /= np.linalg.norm(U, axis=1, keepdims=True)
            low, high = _line(region.query, Z, U, within, radius, rng)
            Z, looked = _move(region, Z, U, low, high, rng)
            evaluations += looked
        found[draw] = Z
    return found[draws:].transpose(1, 0, 2).copy(), evaluations


def _line(
    query: Array, Z: Array, U: Array, within: str, radius: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """How far each point can move backwards and forwards along its direction, (chains,) each."""
    if within == "box":
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (query - radius - Z) / U, (query + radius - Z) / U
        low, high = np.minimum(first, second).max(axis=1), np.maximum(first, second).min(axis=1)
        return np.minimum(low, 0.0), np.maximum(high, 0.0)
    offset = Z - query if within == "ball" else Z
    along, square = (U * offset).sum(axis=1), (offset**2).sum(axis=1)
    level = radius**2 if within == "ball" else square - 2 * np.log1p(-rng.random(len(Z)))
    reach = np.sqrt(np.maximum(along**2 - square + level, 0))
    return np.minimum(-along - reach, 0), np.maximum(-along + reach, 0)


def _move(region: Region, Z: Array, U: Array, low: Array, high: Array, rng: np.random.Generator) -> tuple[Array, int]:
    """A step of every chain: places are drawn between the ends until one is inside; the ends move to those outside."""
    Z, evaluations, left = Z.copy(), 0, np.arange(len(Z))
    low, high = low.copy(), high.copy()
    for _ in range(SHRINKS):
        t = rng.uniform(low[left], high[left])
        points = Z[left] + t[:, None] * U[left]
        inside = region.contains(points)
        evaluations += len(left)
        Z[left[inside]] = points[inside]
        out, at = left[~inside], t[~inside]
        low[out], high[out] = np.where(at < 0, at, low[out]), np.where(at < 0, high[out], at)
        left = out
        if len(left) == 0:
            break
    return Z, evaluations
