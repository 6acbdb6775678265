"""Generative regions: latent vectors at which chosen units of a layer have the signs that they have at a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.generative.exact import affine, in_float64
from flipopt.generative.generator import Generator, as_mask
from flipopt.generative.graphs import in_blocks
from flipopt.generative.layers import Layer

UNSURE = 2e-5
"""Share of a row's largest unit below which float32 does not decide a sign: ten times what convolutions of a thousand
terms round by."""
ROUNDING = 1e-12
"""The same for products in float64."""
POINTS, STEPS, CHUNK = 33, 40, 1024
"""Points of a segment that are looked at, halvings of what is between two, and points computed together."""


@dataclass(frozen=True, eq=False)
class Region:
    """The region GR_V of Definition 3: { z : V^i f^i_l:1(z) >= 0 for all units i with V^i != 0 }.

    Attributes
    ----------
    generator, layer
        The generator and the layer.
    query
        The latent vector z0 that has the signs, (d,).
    signs
        The halfspace indicator V of Definition 2: -1, 0 or 1 for every unit of the layer, (units,). 0 for units that
        were not chosen, and where a unit is 0 at the query.
    """

    generator: Generator
    layer: Layer
    query: Array
    signs: Array

    @classmethod
    def of(cls, generator: Generator, z0: Any, layer: int, mask: Any = None) -> Region:
        """The region of z0 (d,) by the units in ``mask``; see :func:`region`."""
        found, point = generator.layer(layer), generator.latent(z0)
        chosen = as_mask(mask, found)
        values = in_float64(generator, found.number)(point[None])[0]
        return cls(generator, found, point, np.where(chosen, np.sign(values), 0).astype(np.int8))

    @property
    def units(self) -> Array:
        """The units whose signs are kept, (faces,)."""
        return np.flatnonzero(self.signs)

    def margins(self, z: ArrayLike) -> Array:
        """V^i f^i(z) of the chosen units, (rows, faces), in the generator's precision: negative beyond a boundary."""
        points = np.atleast_2d(self.generator.latents(z))
        return self._signed(self.generator.forward(points, to=self.layer.number))

    def contains(self, z: ArrayLike) -> Array:
        """Whether latent vectors z (rows, d) are in the region, (rows,); a bool for one (d,).

        Of an affine layer the faces of the polytope decide, else forward passes in the generator's precision; and where
        that leaves it open because a unit is all but 0, :meth:`check`.
        """
        points = self.generator.latents(z)
        inside = in_blocks(self._contains, np.atleast_2d(points))
        return inside if points.ndim == 2 else np.asarray(inside[0])

    def _contains(self, rows: Array) -> Array:
        """As :meth:`contains`, of a few rows: their units take memory."""
        if self.faces is None:
            values = self.generator.forward(rows, to=self.layer.number)
            margins, share = self._signed(values), UNSURE
        else:
            A, b = self.faces
            values = margins = rows @ A.T + b
            share = ROUNDING
        least = margins.min(axis=1, initial=np.inf)
        unsure = share * np.abs(values).max(axis=1, initial=0.0)
        inside: Array = least >= 0
        near = np.flatnonzero(np.abs(least) <= unsure)
        if len(near):
            inside[near] = self.check(rows[near])
        return inside

    def check(self, z: ArrayLike) -> Array:
        """Whether latent vectors (rows, d) are in the region by float64 alone, (rows,).

        That is another computation than that of :meth:`contains`: by torch, or without it by onnx's reference.
        """
        points = np.atleast_2d(self.generator.latents(z))
        return in_blocks(lambda rows: np.asarray((self._signed(self.exact(rows)) >= 0).all(axis=1)), points)

    @cached_property
    def exact(self) -> Callable[[Array], Array]:
        """The layer's pre-activations (rows, units) at points (rows, d), in float64."""
        return in_float64(self.generator, self.layer.number)

    @cached_property
    def affine(self) -> tuple[Array, Array] | None:
        """A (units, d) and b (units,) where the layer is A z + b, as the first is of most generators; else None.

        The region is then a convex polytope.
        """
        return affine(self.generator, self.layer.number)

    @cached_property
    def faces(self) -> tuple[Array, Array] | None:
        """A (faces, d) and b (faces,) of the polytope { z : A z + b >= 0 } that the region of an affine layer is."""
        if self.affine is None:
            return None
        A, b = self.affine
        units, signs = self.units, self.signs[self.units].astype(np.float64)
        return np.ascontiguousarray(signs[:, None] * A[units]), signs * b[units]

    def stays(self, A: ArrayLike, B: ArrayLike, points: int = POINTS) -> Array:
        """Whether ``points`` points of each segment from a row of A to one of B, with the ends, are in the region,
        (segments,)."""
        starts, ends = self._segments(A, B)
        at = np.linspace(0, 1, as_whole(points, "points", least=2))
        inside = np.ones(len(starts), dtype=bool)
        for first in range(0, len(starts), max(1, CHUNK // len(at))):
            part = slice(first, first + max(1, CHUNK // len(at)))
            a, b = starts[part, None], ends[part, None]
            between = (a + at[:, None] * (b - a)).reshape(-1, starts.shape[1])
            inside[part] = self.contains(between).reshape(-1, len(at)).all(axis=1)
        return inside

    def crossings(self, A: ArrayLike, B: ArrayLike, points: int = POINTS) -> Crossings:
        """Which of the region's boundaries segments from the rows of A to those of B cross, and where.

        ``points`` of each are looked at; between neighbours at which a unit's sign differs, it is halved in float64
        until its place is known to 1e-12 of the segment. A unit that changes its sign twice between two points is
        missed.
        """
        starts, ends = self._segments(A, B)
        at, units = np.linspace(0, 1, as_whole(points, "points", least=2)), self.units
        found: list[tuple[Array, Array, Array, Array]] = []
        for first in range(0, max(1, len(starts)), max(1, CHUNK // len(at))):
            rows = np.arange(first, min(first + max(1, CHUNK // len(at)), len(starts)))
            between = starts[rows, None] + at[:, None] * (ends - starts)[rows, None]
            positive = self.exact(between.reshape(-1, starts.shape[1]))[:, units] >= 0
            positive = positive.reshape(len(rows), len(at), len(units))
            where, before, which = np.nonzero(positive[:, 1:] != positive[:, :-1])
            found.append((rows[where], before, which, positive[where, before, which]))
        row, before, which, positive = (np.concatenate(column) for column in zip(*found, strict=True))
        alpha = self._halved(starts[row], ends[row], at[before], at[before + 1], units[which], positive)
        order = np.lexsort((alpha, row))
        sign = np.where(positive, 1, -1)
        return Crossings(row[order], units[which][order], alpha[order], sign[order])

    def _halved(self, A: Array, B: Array, low: Array, high: Array, unit: Array, positive: Array) -> Array:
        """Where between ``low`` and ``high`` of the segments a unit's sign changes from ``positive``, (crossings,)."""
        for _ in range(STEPS if len(A) else 0):
            middle = (low + high) / 2
            values = np.empty(len(A))
            for first in range(0, len(A), CHUNK):
                some = slice(first, first + CHUNK)
                values[some] = self.exact(A[some] + middle[some, None] * (B - A)[some])[
                    np.arange(len(unit[some])), unit[some]
                ]
            same = (values >= 0) == positive
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return np.asarray((low + high) / 2)

    def _segments(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, Array]:
        starts, ends = (np.atleast_2d(self.generator.latents(X, name)) for X, name in ((A, "A"), (B, "B")))
        if len(starts) != len(ends) and 1 not in (len(starts), len(ends)):
            raise InputError(f"B: expected {len(starts)} points, as A has, or one, found {len(ends)}")
        shape = np.broadcast_shapes(starts.shape, ends.shape)
        return np.broadcast_to(starts, shape).astype(np.float64), np.broadcast_to(ends, shape).astype(np.float64)

    def _signed(self, values: Array) -> Array:
        units = self.units
        return np.asarray(values[:, units] * self.signs[units])

    def __str__(self) -> str:
        return (
            f"The region of layer {self.layer.number} in which {len(self.units):,} of {self.layer.units:,} units keep "
            "their sign."
        )


@dataclass(eq=False)
class Crossings(Table):
    """Where segments cross generative boundaries, a record a crossing, in the order of segments and along each.

    Attributes
    ----------
    segment
        Index of the segment.
    unit
        The unit of the layer whose boundary is crossed.
    alpha
        Where, from 0 (the start) to 1.
    sign
        The unit's sign before, 1 or -1.
    """

    segment: Array
    unit: Array
    alpha: Array
    sign: Array


def region(G: Generator, z0: ArrayLike, layer: int, mask: ArrayLike | None = None) -> Region:
    """The generative region of a query: where units of a layer have the signs that they have at z0 (Definitions 2, 3).

    Parameters
    ----------
    G
        The generator.
    z0
        The query, a latent vector (d,).
    layer
        The layer's number, from 1.
    mask
        The units that count, (units,) bool or their indices, such as the ``mask`` of :func:`essential`; by default all.
    """
    return Region.of(G, z0, layer, mask)


def shares(G: Generator, z: ArrayLike, z0: ArrayLike, layer: int, mask: ArrayLike | None = None) -> Array:
    """Whether latent vectors z (rows, d) share the neural representation of z0 in a layer, (rows,).

    The signs of all units must agree, in which 0 is a sign of its own (Definition 4), or with ``mask`` those of the
    units in it (the relaxed form, Definition 5). Computed in float64.
    """
    found = G.layer(layer)
    chosen, exact = as_mask(mask, found), in_float64(G, found.number)
    points = G.latents(z)
    values = np.sign(exact(np.atleast_2d(points))) == np.sign(exact(G.latent(z0)[None]))
    same = np.asarray(values[:, chosen].all(axis=1))
    return same if points.ndim == 2 else np.asarray(same[0])
