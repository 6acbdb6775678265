"""Every change of class along lines through piecewise linear networks: their pieces, one layer after the other.

Along a line the pre-activations of the first layer are affine. Between the places where one of them passes its kink, so
are those of the second, and so on: a layer's kinks between two neighbouring places are where its affine functions have
their zeros. Between all places of all layers the logits are affine, and a class that is ahead at both ends of a piece
is ahead in all of it.

Rounding moves a kink's place by so little that c is off by no more than what its own rounding does; what that comes to
in the logits is bounded by the norms of the layers after it (``margin``). Leads within the margin of zero are not
trusted.
"""

from __future__ import annotations

import numpy as np

from flipopt.bounds.matrices import OUTWARD, ROUNDING, spectral_norm
from flipopt.common.checks import Array
from flipopt.networks.blocks import times
from flipopt.networks.dense import DenseNetwork
from flipopt.paths.adaptive import Samples
from flipopt.paths.lines import Lines
from flipopt.paths.location import Intervals, Search

NUMBERS_AT_ONCE = 2**24
"""Entries of the pre-activations at all places that are held together, if every neuron passes its kink once."""


class Pieces:
    """The pieces of one network along lines."""

    def __init__(self, network: DenseNetwork) -> None:
        self.network = network.in_float64
        norms = [spectral_norm(W).upper for W in self.network.weights]
        steepest = [float(np.max(activation.lipschitz)) for activation in self.network.activations]
        gains = [slope * norm for slope, norm in zip(steepest, norms[1:], strict=True)]
        self._gains = np.append(np.cumprod(gains[::-1])[::-1], 1.0)
        """By how much an error of c(k) may grow on its way to the logits, for every layer."""
        neurons, widest = sum(self.network.widths[1:-1]), max(self.network.widths)
        self._at_once = max(1, NUMBERS_AT_ONCE // ((neurons + 2) * widest))

    def search(self, lines: Lines) -> Search:
        """All pieces of all lines, and what happens in them."""
        parts = [slice(first, first + self._at_once) for first in range(0, len(lines), self._at_once)]
        found = [self._places(lines.take(part)) for part in parts]
        line = np.concatenate([places[0] + part.start for places, part in zip(found, parts, strict=True)])
        alpha, margin = (np.concatenate([places[k] for places in found]) for k in (1, 2))
        samples = _with_thirds(lines, Samples.of(lines, line, alpha))
        classes = samples.Y.argmax(axis=1)
        low = np.flatnonzero(samples.line[1:] == samples.line[:-1])
        first = np.searchsorted(samples.line, np.arange(len(lines)))
        changes = low[classes[low] != classes[low + 1]]
        return Search(samples.between(changes), _touching(samples, margin), classes[first])

    def _places(self, lines: Lines) -> tuple[Array, Array, Array]:
        """line and alpha of all kinks and both ends, sorted, and the margin of every line's leads."""
        net, every = self.network, np.arange(len(lines))
        line, alpha = np.repeat(every, 2), np.tile([lines.low, lines.high], len(lines))
        y, margin = lines.at(line, alpha), np.zeros(len(lines))
        for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True)):
            c = times(y, W) + b
            size = np.zeros(len(lines))
            np.maximum.at(size, line, np.abs(c).max(axis=1))
            margin += 2 * ROUNDING * self._gains[k] * np.sqrt(c.shape[1]) * (1 + size)
            if k == net.n_layers - 1:
                break
            line, alpha, c = _with_kinks(line, alpha, c, np.not_equal(*net.one_sided_slopes[k]))
            y = net.activations[k].value(c)
        return line, alpha, margin * OUTWARD


def _with_kinks(line: Array, alpha: Array, c: Array, kinked: Array) -> tuple[Array, Array, Array]:
    """The places and pre-activations with those where a neuron passes its kink, which c is interpolated at."""
    low = np.flatnonzero(line[1:] == line[:-1])
    passing = (c[low] > 0) != (c[low + 1] > 0)
    piece, neuron = np.nonzero(passing & kinked)
    p = low[piece]
    before, after = c[p, neuron], c[p + 1, neuron]
    t = before / (before - after)
    new = alpha[p] + t * (alpha[p + 1] - alpha[p])
    inside = (new > alpha[p]) & (new < alpha[p + 1])
    p, t, new = p[inside], t[inside, None], new[inside]
    line, alpha = np.append(line, line[p]), np.append(alpha, new)
    c = np.concatenate([c, (1 - t) * c[p] + t * c[p + 1]])
    order = np.lexsort((alpha, line))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (np.diff(line[order]) != 0) | (np.diff(alpha[order]) != 0)
    order = order[fresh]
    return line[order], alpha[order], c[order]


def _with_thirds(lines: Lines, samples: Samples) -> Samples:
    """And samples where two classes that lead at the ends of a piece tie, as long as a third one is ahead there."""
    while True:
        classes = samples.Y.argmax(axis=1)
        low = np.flatnonzero((samples.line[1:] == samples.line[:-1]) & (classes[1:] != classes[:-1]))
        rows, i, j = np.arange(len(low)), classes[low], classes[low + 1]
        before = samples.Y[low, i] - samples.Y[low, j]
        after = samples.Y[low + 1, i] - samples.Y[low + 1, j]
        t = (before / np.where(before > after, before - after, 1.0))[:, None]
        Y = (1 - t) * samples.Y[low] + t * samples.Y[low + 1]
        third = Y.max(axis=1) > np.maximum(Y[rows, i], Y[rows, j])
        p, t = low[third], t[third, 0]
        alpha = samples.alpha[p] + t * (samples.alpha[p + 1] - samples.alpha[p])
        inside = (alpha > samples.alpha[p]) & (alpha < samples.alpha[p + 1])
        if not inside.any():
            return samples
        samples = Samples.join([samples, Samples.of(lines, samples.line[p[inside]], alpha[inside])]).sorted()


def _touching(samples: Samples, margin: Array) -> Intervals:
    """Around places at which two classes tie within the margin, unless one of them is clearly ahead before, and the
    other after, or an end of the line is there and one is clearly ahead next to it."""
    Y, line = samples.Y, samples.line
    two = np.argsort(Y, axis=1)[:, :-3:-1]
    i, j = two.T
    rows = np.arange(len(Y))
    close = margin[line]
    tied = np.flatnonzero(Y[rows, i] - Y[rows, j] <= close)
    if not len(tied):
        return Intervals(line[:0], samples.alpha[:0], samples.alpha[:0])
    i, j, close = i[tied], j[tied], close[tied]
    before = np.where(np.diff(line, prepend=-1)[tied] == 0, tied - 1, tied)
    after = np.where(np.diff(line, append=-1)[tied] == 0, tied + 1, tied)
    leads = [Y[at, i] - Y[at, j] for at in (before, after)]
    signs = [np.where(np.abs(lead) > close, np.sign(lead), 0.0) for lead in leads]
    at_end = (before == tied) | (after == tied)
    clear = np.where(at_end, signs[0] + signs[1] != 0, signs[0] * signs[1] < 0)
    if Y.shape[1] > 2:
        third = np.sort(Y[tied], axis=1)[:, -3]
        clear &= Y[tied, i] - third > close
    doubt = ~clear
    return Intervals(line[tied[doubt]], samples.alpha[before[doubt]], samples.alpha[after[doubt]])
