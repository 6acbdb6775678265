"""How alike images of samples are: equations (2) and (3) of Jeon, Jeong and Choi (003)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.idc import bootstrap_interval
from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.generative.balls import Baselines
from flipopt.generative.discriminator import Discriminator
from flipopt.generative.generator import Generator

BLOCK = 1024
"""Images that are made at once."""


@dataclass(frozen=True, eq=False)
class Deviation:
    """Standard deviation of images.

    Attributes
    ----------
    value
        The mean over pixels.
    pixels
        Of every pixel, ``image_shape``.
    mean
        The mean image, ``image_shape``.
    """

    value: float
    pixels: Array = field(repr=False)
    mean: Array = field(repr=False)


def deviation(G: Generator, z: ArrayLike) -> Deviation:
    """sigma = sqrt(E [G(z) - E G(z)]^2) of samples z (rows, d), for every pixel: (3) with the square that it lost."""
    points = np.atleast_2d(G.latents(z))
    if len(points) == 0:
        raise InputError("z: expected at least one latent vector, found none")
    mean, squares, seen = np.zeros(G.image_shape), np.zeros(G.image_shape), 0
    for first in range(0, len(points), BLOCK):  # blocks joined as Chan, Golub and LeVeque do (Am. Stat. 37, 1983)
        images = G.forward(points[first : first + BLOCK]).astype(np.float64)
        centre, count = images.mean(axis=0), len(images)
        squares += ((images - centre) ** 2).sum(axis=0) + (centre - mean) ** 2 * (seen * count / (seen + count))
        mean += (centre - mean) * (count / (seen + count))
        seen += count
    pixels = np.sqrt(squares / seen)
    return Deviation(float(pixels.mean()), pixels, mean)


def similarity(D: Discriminator, G: Generator, z: ArrayLike, z0: ArrayLike, layer: int) -> float:
    """Equation (2): the mean cosine of what the discriminator's layer, with its activation, makes of the images of
    samples z (rows, d) and of the query's. 0 for an image of which it makes nothing but zeros."""
    points = np.atleast_2d(G.latents(z))
    if len(points) == 0:
        raise InputError("z: expected at least one latent vector, found none")
    if int(np.prod(G.image_shape)) != D.n_inputs:
        raise InputError(f"D: expected a discriminator of images {G.image_shape}, found one of {D.input_shape}")
    query = _unit(D.features(G.forward(G.latent(z0)[None]).reshape(1, -1), layer))[0]
    total = 0.0
    for first in range(0, len(points), BLOCK):
        images = G.forward(points[first : first + BLOCK])
        total += float((_unit(D.features(images.reshape(len(images), -1), layer)) @ query).sum())
    return total / len(points)


def _unit(rows: Array) -> Array:
    rows = rows.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


@dataclass(eq=False)
class Comparison(Table):
    """What baselines come to, a record a method.

    Attributes
    ----------
    method
        As in :class:`Baselines`.
    deviation
        Standard deviation of the images, the mean over pixels.
    inside
        Share of the points in the region.
    distance
        Mean distance from the centre.
    similarity
        Equation (2) for the discriminator's layers, (methods, layers); no columns without one.
    """

    method: Array
    deviation: Array
    inside: Array
    distance: Array
    similarity: Array


def compare(found: Baselines, D: Discriminator | None = None) -> Comparison:
    """Deviations, similarities, and shares inside the region of :func:`baselines` and of the samples themselves."""
    region = found.region
    G = region.generator
    names, layers = list(found.points), () if D is None else tuple(layer.number for layer in D.layers)
    rows = [found.points[name] for name in names]
    alike = [[similarity(D, G, z, region.query, k) for k in layers] if D is not None else [] for z in rows]
    return Comparison(
        np.array(names),
        np.array([deviation(G, z).value for z in rows]),
        np.array([region.contains(z).mean() for z in rows]),
        np.array([np.linalg.norm(z - found.centre, axis=1).mean() for z in rows]),
        np.array(alike, dtype=np.float64).reshape(len(rows), len(layers)),
    )


@dataclass(eq=False)
class Averages(Table):
    """Comparisons of several queries, a record a method.

    Attributes
    ----------
    method
        As in :class:`Baselines`.
    deviation, similarity
        Means over queries, (methods,) and (methods, layers).
    deviation_interval, similarity_interval
        Their 95% bootstrap intervals over queries, (methods, 2) and (methods, layers, 2).
    queries
        How many, (methods,).
    """

    method: Array
    deviation: Array
    deviation_interval: Array
    similarity: Array
    similarity_interval: Array
    queries: Array


def averaged(comparisons: Sequence[Comparison], seed: int = 0) -> Averages:
    """Means over queries, with intervals, of what :func:`compare` says of each: Tables 1 and 2 have such means."""
    if not comparisons:
        raise InputError("comparisons: expected at least one, found none")
    names = comparisons[0].method
    if any(not np.array_equal(one.method, names) for one in comparisons):
        raise InputError("comparisons: expected the same methods in all, found others")
    deviations, alike = (np.stack([getattr(one, name) for one in comparisons]) for name in ("deviation", "similarity"))
    return Averages(
        names,
        deviations.mean(axis=0),
        _intervals(deviations, seed),
        alike.mean(axis=0),
        _intervals(alike, seed),
        np.full(len(names), len(comparisons)),
    )


def _intervals(values: Array, seed: int) -> Array:
    """Of the means along the first axis of values (queries, ...), (..., 2)."""
    ends = [bootstrap_interval(column, seed) for column in values.reshape(len(values), -1).T]
    return np.array(ends, dtype=np.float64).reshape(*values.shape[1:], 2)
