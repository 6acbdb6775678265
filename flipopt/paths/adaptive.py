"""Where classes change along lines, by samples: as many as the curvature between them asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.paths.lines import Lines
from flipopt.paths.location import Brackets, Intervals, Search


@dataclass(frozen=True)
class Sampling:
    """How lines are sampled in adaptive mode. ``python -m benchmarks paths`` has what other values cost and miss."""

    points: int = 9
    """Samples that a line from a to b begins with; longer ones have more."""
    safety: float = 4.0
    """By how much the curvature between two samples may exceed what their neighbours' differences show."""
    finest: float = 2.0**-12
    """Distance of samples, in alpha, below which an interval is left as it is."""


@dataclass(frozen=True)
class Samples(Columns):
    """Points of lines: ``line`` and ``alpha`` (points,), their logits ``Y`` (points, n_classes)."""

    line: Array
    alpha: Array
    Y: Array

    @classmethod
    def of(cls, lines: Lines, line: Array, alpha: Array) -> Samples:
        """The network asked there."""
        return cls(line, alpha, lines.logits(line, alpha))

    def sorted(self) -> Samples:
        """By line and alpha."""
        return self.take(np.lexsort((self.alpha, self.line)))

    def with_middles(self, lines: Lines, low: Array) -> Samples:
        """And samples in the middle of the intervals from the samples ``low`` (k,) to the next."""
        middle = (self.alpha[low] + self.alpha[low + 1]) / 2
        return Samples.join([self, Samples.of(lines, self.line[low], middle)]).sorted()

    def between(self, low: Array) -> Brackets:
        """The intervals from the samples ``low`` (k,) to the next."""
        high = low + 1
        return Brackets(self.line[low], self.alpha[low], self.alpha[high], self.Y[low], self.Y[high])


def sample(lines: Lines, options: Sampling) -> Search:
    """Halve intervals between samples until a second change of class between them would need more curvature than
    ``options.safety`` times what is seen around them."""
    samples = _evenly(lines, options)
    while True:
        low, open_ = _open(samples, options)
        wide = open_[samples.alpha[open_ + 1] - samples.alpha[open_] > options.finest]
        if not len(wide):
            break
        samples = samples.with_middles(lines, wide)
    classes = samples.Y.argmax(axis=1)
    first = np.searchsorted(samples.line, np.arange(len(lines)))
    return Search(
        samples.between(low[classes[low] != classes[low + 1]]),
        Intervals(samples.line[open_], samples.alpha[open_], samples.alpha[open_ + 1]),
        classes[first],
    )


def leaving(lines: Lines, k: int, Y_ends: tuple[Array, Array], options: Sampling) -> Array:
    """Which lines leave class k somewhere, (lines,) bool, by the same rule; given the logits at their two ends.

    A line that has left is not looked at again, nor one in which no interval is in doubt.
    """
    count, left = len(lines), np.zeros(len(lines), dtype=bool)
    ends = [Samples(np.arange(count), np.full(count, end), Y) for end, Y in zip((0.0, 1.0), Y_ends, strict=True)]
    samples = Samples.join(ends).sorted()
    for _ in range(max(2, int(np.ceil(np.log2(options.points - 1))))):
        every = np.flatnonzero(samples.line[1:] == samples.line[:-1])
        samples = _still_inside(samples.with_middles(lines, every), k, left)
    while len(samples):
        _, open_ = _open(samples, options)
        wide = open_[samples.alpha[open_ + 1] - samples.alpha[open_] > options.finest]
        going_on = np.zeros(count, dtype=bool)
        going_on[samples.line[wide]] = True
        kept = going_on[samples.line]
        moved = np.cumsum(kept) - 1
        samples = _still_inside(samples.take(kept).with_middles(lines, moved[wide]), k, left)
    return left


def _still_inside(samples: Samples, k: int, left: Array) -> Samples:
    """Without the lines that have a sample of another class than k, which are marked in ``left``."""
    left[samples.line[samples.Y.argmax(axis=1) != k]] = True
    return samples.take(~left[samples.line])


def _evenly(lines: Lines, options: Sampling) -> Samples:
    count = max(5, round((options.points - 1) * (lines.high - lines.low)) + 1)
    alpha = np.tile(np.linspace(lines.low, lines.high, count), len(lines))
    return Samples.of(lines, np.repeat(np.arange(len(lines)), count), alpha)


def _open(samples: Samples, options: Sampling) -> tuple[Array, Array]:
    """The lower ends of all intervals, and of those in doubt, as indices of samples."""
    low = np.flatnonzero(samples.line[1:] == samples.line[:-1])
    return low, low[doubtful(samples, low, options.safety)]


def doubtful(samples: Samples, low: Array, safety: float) -> Array:
    """Which of the intervals from sample ``low`` (k,) to the next could hide a change of class, (k,) bool.

    Between samples at a distance h, a function of curvature at most C stays within C h^2 / 8 of its chord, and its
    slope within C h / 2 of the chord's. If one class i leads at both ends, all its leads must stay positive so. If
    another one, j, leads at the upper end, y_i - y_j must be monotone, and the mean of the two must stay above all
    others.
    """
    line, alpha, Y = samples.line, samples.alpha, samples.Y
    bend = _curvatures(line, alpha, Y)
    rows, h = np.arange(len(low)), (alpha[low + 1] - alpha[low])[:, None]
    i, j = Y[low].argmax(axis=1), Y[low + 1].argmax(axis=1)

    def pair(values: Array) -> tuple[Array, Array]:
        """The first class's entry, and the mean of the two classes, as columns."""
        first = values[rows, i][:, None]
        return first, (first + values[rows, j][:, None]) / 2

    ends = [Y[low], Y[low + 1]]
    leads = np.minimum(*(pair(values)[1] - values for values in ends))
    curved = np.maximum(*(np.abs(pair(values)[1] - values) for values in (bend[low], bend[low + 1])))
    beaten = leads - safety * curved * h * h / 8 > 0
    beaten[rows, i] = beaten[rows, j] = True
    fall = np.abs((pair(ends[0])[0] - ends[0])[rows, j] - (pair(ends[1])[0] - ends[1])[rows, j])
    turn = np.maximum(*(np.abs(pair(values)[0] - values)[rows, j] for values in (bend[low], bend[low + 1])))
    monotone = fall > safety * turn * h[:, 0] ** 2 / 2
    return np.asarray(~(beaten.all(axis=1) & ((i == j) | monotone)))


def _curvatures(line: Array, alpha: Array, Y: Array) -> Array:
    """Second derivatives at all samples by differences with their neighbours; at an end those of the next."""
    slope = np.diff(Y, axis=0) / np.where(np.diff(line) == 0, np.diff(alpha), 1.0)[:, None]
    inner = np.flatnonzero((line[:-2] == line[1:-1]) & (line[1:-1] == line[2:])) + 1
    bend = np.zeros_like(Y)
    bend[inner] = 2 * (slope[inner] - slope[inner - 1]) / (alpha[inner + 1] - alpha[inner - 1])[:, None]
    first, last = np.flatnonzero(np.diff(line, prepend=-1)), np.flatnonzero(np.diff(line, append=-1))
    bend[first], bend[last] = bend[first + 1], bend[last - 1]
    return bend
