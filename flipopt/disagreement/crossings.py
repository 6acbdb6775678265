"""Where models change their mind on a line between two latent vectors, and how far their places are apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from flipopt.common.checks import Array, as_number, as_whole
from flipopt.common.progress import progress_bar
from flipopt.common.tables import Table
from flipopt.disagreement.interpolation import Interpolations
from flipopt.disagreement.study import networks_on
from flipopt.explain.matching import counted
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.paths.lines import Lines


@dataclass(frozen=True, eq=False)
class Crossings(Table):
    """Where each model crosses from class to class, one record a model and a line.

    Attributes
    ----------
    model, line
        Which, (records,).
    classes
        (s, t): what the model predicts at the first end and at the last, (records, 2).
    alpha
        The place on the line where s and t tie, to within the tolerance; NaN where the model says one class at both
        ends.
    third
        A class that is above both there; -1 where there is none, and the model changes from s to t.
    first, into
        Where the class s is first left, and for which class, as far as samples of the line show: a class that comes and
        goes between two of them is missed. NaN and -1 where it never is.
    """

    model: Array
    line: Array
    classes: Array
    alpha: Array
    third: Array
    first: Array
    into: Array

    @property
    def success(self) -> Array:
        """Whether the model changes there from s to t, (records,)."""
        return np.asarray(np.isfinite(self.alpha) & (self.third < 0))

    def spread(self, first: bool = False) -> Spread:
        """How far the places of models are apart on every line: alpha, or where they ``first`` change their mind.

        Counted are models that cross directly, or change at all, between the two classes that most of these have.
        """
        counts, places = (np.isfinite(self.first), self.first) if first else (self.success, self.alpha)
        classes = np.column_stack([self.classes[:, 0], self.into]) if first else self.classes
        lines = np.unique(self.line)
        records: list[tuple[Any, ...]] = []
        for line in lines:
            rows = np.flatnonzero((self.line == line) & counts)
            kinds = np.unique(classes[rows], axis=0, return_inverse=True)[1].reshape(-1)
            kept = rows[kinds == np.bincount(kinds).argmax()] if len(rows) else rows
            alpha = places[kept]
            numbers = (alpha.mean(), alpha.std(), alpha.min(), alpha.max()) if len(kept) else (np.nan,) * 4
            records.append((classes[kept[0]] if len(kept) else (-1, -1), len(kept), *numbers))
        pairs, *columns = zip(*records, strict=True)
        return Spread(lines, np.array(pairs), *(np.array(column) for column in columns))

    def summary(self) -> str:
        """In plain words."""
        spread = self.spread()
        known = spread.models > 1
        text = f"{counted(len(np.unique(self.model)), 'model')}, {counted(len(spread.line), 'line')}: "
        text += f"{int(self.success.sum()):,} of {len(self):,} crossings lead directly from one class to the other."
        if not known.any():
            return text
        width = (spread.highest - spread.lowest)[known]
        return (
            f"{text} On a line the places have a standard deviation of {np.median(spread.deviation[known]):.3f} of its "
            f"length (median), and the widest are {width.max():.3f} apart."
        )

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False)
class Spread(Table):
    """Places of models on every line, one record a line.

    Attributes
    ----------
    line, classes
        Which, and the two classes, (lines,) and (lines, 2); -1 where no model crosses directly.
    models
        How many cross there directly between these.
    mean, deviation, lowest, highest
        Of their alpha.
    """

    line: Array
    classes: Array
    models: Array
    mean: Array
    deviation: Array
    lowest: Array
    highest: Array


@dataclass(frozen=True)
class _OnLatents:
    """A model as a function of latent vectors, of which Lines need no more than this."""

    images: Interpolations
    network: Network

    @property
    def n_classes(self) -> int:
        return self.network.n_classes

    def logits(self, Z: Array) -> Array:
        return self.seen(self.images.at(Z))

    def seen(self, X: Array) -> Array:
        """Of images that there are, a row an image."""
        return np.asarray(self.network.logits(as_points(X.reshape(len(X), -1), self.network, "images")))


def crossings(
    models: Any, images: Interpolations, tol: float = 1e-6, samples: int = 33, progress: bool = False
) -> Crossings:
    """alpha* of every model on every line of ``images``, by bisection: all lines of a model take a step together.

    Lines are sampled first, at the same places for all models, so that the generator makes these images once; what
    is narrowed down is the first change that the samples show. Where a model has a third class in between, alpha is
    where its classes at the ends tie; see ``third``.

    Parameters
    ----------
    models
        Classifiers, one or several.
    images
        What :func:`interpolations` returned; the lines are those between its latent vectors.
    tol
        How near alpha must be.
    samples
        Of every line, both ends among them.
    progress
        Whether to show a bar.
    """
    grid = np.linspace(0, 1, as_whole(samples, "samples", least=2))
    steps = max(1, ceil(log2(grid[1] / as_number(tol, "tol", least=1e-15))))
    nets, _ = networks_on(models, images.images[:1])
    A, B = images.ends
    every, parts = np.arange(len(A)), []
    seen = images.at(_points(A, B, grid))
    with progress_bar("crossings", len(nets), "models", progress) as advance:
        for number, net in enumerate(nets):
            model = _OnLatents(images, getattr(net, "forward_only", net))
            lines = Lines.between(model, A, B)  # type: ignore[arg-type]
            columns = _changes(lines, model.seen(seen).reshape(len(A), len(grid), -1), grid, steps)
            parts.append(Crossings(np.full(len(A), number), every, *columns))
            advance(number + 1)
    return Crossings.join(parts)


def _points(A: Array, B: Array, grid: Array) -> Array:
    """On all lines at all places, (lines * places, d), line by line."""
    return np.asarray((1 - grid)[:, None] * A[:, None] + grid[:, None] * B[:, None]).reshape(-1, A.shape[1])


def _changes(lines: Lines, Y: Array, grid: Array, steps: int) -> tuple[Array, ...]:
    """Classes, alpha, third, first and into of lines whose logits on the grid are Y (lines, places, classes)."""
    top, every = Y.argmax(axis=2), np.arange(len(lines))
    s, t = top[:, 0], top[:, -1]
    alpha, third = np.full(len(lines), np.nan), np.full(len(lines), -1)
    lead = Y[every, :, s] - Y[every, :, t]
    met = np.flatnonzero(s != t)
    place = (lead[met] <= 0).argmax(axis=1)
    _, alpha[met] = _narrowed(
        lines, met, (grid[place - 1], grid[place]), steps, lambda some, at: some[at, s[met]] > some[at, t[met]]
    )
    if len(met):
        found = lines.logits(met, alpha[met]).argmax(axis=1)
        third[met] = np.where((found == s[met]) | (found == t[met]), -1, found)
    left = top != s[:, None]
    first, into = np.full(len(lines), np.nan), np.full(len(lines), -1)
    live = np.flatnonzero(left.any(axis=1))
    place = left.argmax(axis=1)
    direct = np.zeros(len(lines), dtype=bool)  # the tie of s and t is the first change: it is known already
    direct[met] = (third[met] < 0) & (alpha[met] > grid[place[met] - 1]) & (alpha[met] <= grid[place[met]])
    direct &= top[every, place] == t
    first[direct], into[direct] = alpha[direct], t[direct]
    live = live[~direct[live]]
    ends = grid[place[live] - 1], grid[place[live]]
    _, first[live] = _narrowed(lines, live, ends, steps, lambda some, at: some.argmax(axis=1) == s[live])
    if len(live):
        found = lines.logits(live, first[live]).argmax(axis=1)
        into[live] = np.where(found == s[live], top[live, place[live]], found)
    return np.column_stack([s, t]), alpha, third, first, into


def _narrowed(
    lines: Lines, live: Array, ends: tuple[Array, Array], steps: int, stays: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Halve the intervals ``ends`` of the lines ``live``: a middle whose logits say it ``stays`` replaces the first."""
    low, high = ends
    for _ in range(steps if len(live) else 0):
        middle = low + (high - low) / 2
        before = stays(lines.logits(live, middle), np.arange(len(live)))
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return low, high
