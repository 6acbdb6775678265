"""Where classes change along lines, by samples: as many as the curvature between them asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array, as_number, as_whole
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

    def __post_init__(self) -> None:
        as_whole(self.points, "points", least=3)
        as_number(self.safety, "safety", least=1.0)
        as_number(self.finest, "finest", least=1e-12)


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

    Between samples at a distance h, a function of curvature at most C stays within C h^2 / 8 of its chord, and is
    monotone if its values at the two ends differ by more than C h^2 / 2. If one class i leads at both ends, each of its
    leads must stay positive by that, or be monotone. If another one, j, leads at the upper end, y_i - y_j must be
    monotone, and the same hold of the leads of the mean of y_i and y_j.
    """
    bend = _curvatures(samples.line, samples.alpha, samples.Y)
    rows, high = np.arange(len(low)), low + 1
    reach = safety * (samples.alpha[high] - samples.alpha[low])[:, None] ** 2 / 2
    i, j = samples.Y[low].argmax(axis=1), samples.Y[high].argmax(axis=1)

    def leads(values: Array) -> tuple[Array, Array]:
        """Of the mean of i and j over every class, (k, n_classes), and of i over j, (k,)."""
        of_i, of_j = values[rows, i], values[rows, j]
        return ((of_i + of_j) / 2)[:, None] - values, of_i - of_j

    (first, lead_first), (last, lead_last) = leads(samples.Y[low]), leads(samples.Y[high])
    (bend_low, turn_low), (bend_high, turn_high) = leads(bend[low]), leads(bend[high])
    curved = reach * np.maximum(np.abs(bend_low), np.abs(bend_high))
    ahead = np.minimum(first, last)
    beaten = (ahead > curved / 4) | ((ahead >= 0) & (np.abs(first - last) > curved))
    beaten[rows, i] = beaten[rows, j] = True
    once = np.abs(lead_first - lead_last) > reach[:, 0] * np.maximum(np.abs(turn_low), np.abs(turn_high))
    return np.asarray(~(beaten.all(axis=1) & ((i == j) | once)))


def _curvatures(line: Array, alpha: Array, Y: Array) -> Array:
    """Second derivatives at all samples by differences with their neighbours; at an end those of the next."""
    slope = np.diff(Y, axis=0) / np.where(np.diff(line) == 0, np.diff(alpha), 1.0)[:, None]
    inner = np.flatnonzero((line[:-2] == line[1:-1]) & (line[1:-1] == line[2:])) + 1
    bend = np.zeros_like(Y)
    bend[inner] = 2 * (slope[inner] - slope[inner - 1]) / (alpha[inner + 1] - alpha[inner - 1])[:, None]
    first, last = np.flatnonzero(np.diff(line, prepend=-1)), np.flatnonzero(np.diff(line, append=-1))
    bend[first], bend[last] = bend[first + 1], bend[last - 1]
    return bend
